"""Asset checks: what each looks at, what it means when it fails, and what to do then.

None blocks: the guards of the warehouse do the stopping, a check shows it. Here: the words, and how
a result is made. Not here: the numbers, which each link of the chain has.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from assets.previews import told

WARN, ERROR = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
MOST = 100  # lines shown; the tables in meta have all
Number = int | float | str | list[str] | dg.MarkdownMetadataValue
Numbers = Mapping[str, Number]


@dataclass(frozen=True)
class Check:
    """One check of an asset: what it looks at, what a failure means, what to do about it."""

    name: str
    looks_at: str
    means: str
    to_do: str
    severity: dg.AssetCheckSeverity = WARN

    @property
    def words(self) -> str:
        """What it looks at, what a failure means and what to do, for who never saw it."""
        return f"{self.looks_at} Where it fails: {self.means} {self.to_do}"

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Return what Dagster is told of it before it ever ran."""
        return dg.AssetCheckSpec(self.name, asset=key, description=self.words, blocking=False)

    def result(
        self,
        key: dg.AssetKey,
        numbers: Numbers,
        *,
        passed: bool,
        severity: dg.AssetCheckSeverity | None = None,
    ) -> dg.AssetCheckResult:
        """Return what was found; where it failed, with what that means and what to do."""
        words = {} if passed else {"what it means": self.means, "what to do": self.to_do}
        return dg.AssetCheckResult(
            asset_key=key,
            check_name=self.name,
            passed=passed,
            severity=severity or self.severity,
            description=self.looks_at if passed else f"{self.means} {self.to_do}",
            metadata={**{label: _shown(each) for label, each in numbers.items()}, **words},
        )


def _shown(number: Number) -> Number:
    return told(number) if isinstance(number, list) else number


READ = Check(
    "read_to_its_end",
    "Every list asked for was read to its end.",
    "The last published rows stay; nothing of a reading that broke off is in the tables.",
    "See what failed. Run the day again while it is today: it goes on where it stopped.",
    ERROR,
)
PROVEN = Check(
    "proven",
    "The proof of completeness of each reading: SNAPSHOT, COMPLETE or COMPLETE BY COUNT.",
    "The list is not proven complete. PARTIAL: the rows that were read are loaded. Rows may be "
    "lacking, and none counts as missing.",
    "Compare the distinct rows with the places of the list. Read it again at a quieter hour. If it "
    "stays PARTIAL, ask the service to sort the list by a unique field (docs/completeness.md).",
)
NO_REPEATS = Check(
    "no_repeated_rows",
    "Rows that the list contains more than once under the same key.",
    "The service returns some records more than once. Each key is loaded once, so amounts are not "
    "counted twice.",
    "Report it to the service. A total that is computed from the list itself is too high.",
)
UNCHANGED = Check(
    "interface_unchanged",
    "The interface description against the one before.",
    "A field, a type, a page or a list that something relied on has changed.",
    "Read the lines; `partner-sync schema` says what it did to the columns.",
)
FOLDED = Check(
    "folded",
    "Every reading of the run became rows.",
    "The stream keeps the rows that were published last, and meta.proofs marks them; the pages "
    "are archived.",
    "See what failed: where a person has to decide, the command is named there.",
    ERROR,
)
NOTHING_LOST = Check(
    "nothing_lost",
    "The loss check: of every path as many values in the columns as in the records.",
    "A defect of partner-sync: the reading was not folded, so that nothing is lost.",
    "Please report it. The archive has the pages; replay the day with the version that mends it.",
    ERROR,
)
ROW_DROP = Check(
    "row_count_kept",
    "How many rows fewer a reading has than the one before.",
    "More rows are gone than `may_disappear` lets go; it is held back until a person decides, or "
    "was let through by one.",
    "Ask the service's people whether they are gone. If so: `partner-sync disappeared accept`; "
    "if not, the next reading puts it right.",
)
UNIQUE = Check(
    "keys_are_unique",
    "Each key once in the table, and once in a page.",
    "Records repeat a key with different values. One copy of each key is loaded: the one loaded "
    "before, otherwise the later one in the list.",
    "Look at the other copies in quarantine. Ask the service which copy is right. meta.folds has "
    "the numbers of every run.",
)
REQUIRED = Check(
    "required_fields",
    "Fields that the interface description says are always there.",
    "Records lack a field that should always be there, or have null in it.",
    "Queries must expect NULL there; meta.interface_differences says it to analysts.",
)
COLUMNS = Check(
    "columns_unchanged",
    "Columns against those before the day's reading (meta.schema_changes).",
    "Columns are new, wider, kept as text, or no record has them any more.",
    "Look over queries that name them; a frozen stream waits for `partner-sync schema accept`.",
)
AS_DESCRIBED = Check(
    "as_described",
    "The records against the interface description.",
    "The records are not as the interface description says.",
    "Trust the records: the tables hold what came. meta.interface_differences has every line.",
)
FRESH = Check(
    "fresh",
    "How old the newest proven reading of every list in the published file is.",
    "Analysts see what was proven more than `stale_after` hours ago, or nothing of a list.",
    "See the last run of `nightly_sync`; `partner-sync status` says what is the matter. A day that "
    "is over cannot be read any more.",
    ERROR,
)

"""What a load has to say to people: why a scan waits for them, and what they should know."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.archive.scan_file import SealedScan
from pipelines.config.values import Contract
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import printable
from pipelines.load.columns import Types, json_path
from pipelines.load.delta import Delta
from pipelines.load.journal import LastLoad
from pipelines.load.schema import MOST_COLUMNS, Path
from pipelines.load.stage import Stage

MOST_NAMED = 5  # columns in a message
# What happened and what it means for the data; on the last line what to do, if anything.
TEXTS = {
    "scan_held": """
The scan of {stream} waits for approval. {held} Analysts still see the rows of the scan before it.
partner-sync approve {scan_id} --reason "..."
""",
    "records_quarantined": """
{count:,} records of {stream} are in quarantine. The first is row {row} of page {page}: {reason}
Rows with their keys keep the version that was loaded before.
Read table quarantine.records, and ask the service to correct the records.
""",
    "rows_not_deleted": """
{count:,} records of {stream} in quarantine have no primary key that can be read.
Any row may be one of them, so this scan deletes no row.
Ask the service to correct the records; the next sync then deletes what is gone.
""",
    "values_in_extra": """
{count:,} values of {subject} in {stream} fit no column.
They are in column `_extra` as they were sent; their own column is NULL there.
Check with the service whether the field has another meaning now.
""",
    "column_limit": """
Records of {stream} have more than {count} fields. The fields beyond that are in column `_extra`.
Read them from `_extra` with json_extract_string.
""",
    "values_discarded": """
{count:,} values of the new field {subject} in {stream} are not loaded,
because the contract of the stream is `discard`. The scan file keeps them.
Set contract = "evolve" in [streams.{stream}] to load the field.
""",
    "column_changed": """
Column {subject} {what}. Earlier versions of rows keep their values.

""",
}
INFORMATION = {"values_discarded", "column_changed"}


@dataclass(frozen=True)
class LoadPolicy:
    """What a scan may do to the tables. `approved`: a person has approved this very scan."""

    contract: Contract = "evolve"
    max_deleted_share: float = 0.1
    allow_empty: bool = False
    approved: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a load would do. `known` are the types of columns before it, `types` those after it."""

    scan: SealedScan
    stage: Stage
    delta: Delta
    last: LastLoad | None
    known: Types
    types: Types

    @property
    def new_types(self) -> Types:
        """The columns that are new or have another type."""
        return {at: kind for at, kind in self.types.items() if self.known.get(at) != kind}


def reason_to_hold(outcome: Outcome, policy: LoadPolicy) -> str | None:
    """Return why a scan must not be loaded without approval; None where it may be."""
    if policy.approved:
        return None
    return (
        _key_reason(outcome, policy.max_deleted_share)
        or _deleted_reason(outcome, policy)
        or (_schema_reason(outcome) if policy.contract == "freeze" else None)
    )


def _key_reason(outcome: Outcome, share: float) -> str | None:
    key, stage = outcome.scan.completeness.memory.key, outcome.stage
    if outcome.last is not None and key != outcome.last.key:
        before, now = (
            "the whole record" if each is None else f"`{each}`" for each in (outcome.last.key, key)
        )
        return (
            f"The primary key was {before} and is {now} now. Every row would be deleted and loaded "
            "as a new one."
        )
    if key is not None and stage.keyless > max(1, share * stage.rows):
        return (
            f"{stage.keyless:,} of {stage.rows:,} records have no readable value of the primary "
            f"key `{key}`. They would go to quarantine."
        )
    return None


def _deleted_reason(outcome: Outcome, policy: LoadPolicy) -> str | None:
    current, deleted = len(outcome.stage.current), outcome.delta.deleted
    if deleted and not outcome.stage.rows:
        if policy.allow_empty:
            return None
        return f"The list is empty and had {current:,} rows. All of them would be deleted."
    if outcome.scan.completeness.memory.key is None:  # a changed row is a deleted and a new one
        deleted -= outcome.delta.new
    if deleted > max(0, policy.max_deleted_share * current):
        return (
            f"{deleted:,} of {current:,} rows are gone from the list, more than "
            f"{policy.max_deleted_share:.0%}. They would be deleted."
        )
    return None


def _schema_reason(outcome: Outcome) -> str | None:
    columns = sorted(".".join(names) for names in outcome.new_types)
    if not outcome.known or not columns:
        return None
    more = len(columns) - MOST_NAMED
    return (
        f"The columns of this stream are frozen, and {len(columns):,} of them would be new or "
        f"have another type: {', '.join(columns[:MOST_NAMED])}"
        + (f" and {more:,} more." if more > 0 else ".")
    )


def list_findings(outcome: Outcome, held: str | None) -> tuple[Finding, ...]:
    """Return the findings of a load."""
    header = outcome.scan.header
    listed = [("scan_held", "", {"held": held})] if held else _notes(outcome)
    findings = []
    for code, subject, values in listed:
        names = {"stream": header.stream, "scan_id": header.scan_id, "subject": subject, **values}
        *message, remedy = (line.format(**names) for line in TEXTS[code].split("\n")[1:-1])
        findings.append(
            Finding(
                code=code,
                severity=Severity.INFO if code in INFORMATION else Severity.WARNING,
                connection=header.connection,
                stream=header.stream,
                subject=subject,
                message=" ".join(message),
                remedy=remedy,
                blocks=code == "scan_held",
            )
        )
    return tuple(findings)


def _notes(outcome: Outcome) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield code, subject and the values of the message of each finding."""
    stage = outcome.stage
    if stage.quarantined:
        count = len(stage.quarantined)
        yield "records_quarantined", "", {**stage.quarantined[0]._asdict(), "count": count}
    if stage.keyless:
        yield "rows_not_deleted", "", {"count": stage.keyless}
    yield from _counted("values_in_extra", stage.decoder.kept)
    if stage.decoder.schema.overflows:
        yield "column_limit", "", {"count": MOST_COLUMNS}
    yield from _counted("values_discarded", stage.decoder.discarded)
    for names, kind in outcome.new_types.items() if outcome.known else ():
        before = outcome.known.get(names)
        what = f"is new ({kind})" if before is None else f"was {before} and is {kind} now"
        yield "column_changed", ".".join(names), {"what": what}


def _counted(code: str, counts: Counter[Path]) -> Iterator[tuple[str, str, dict[str, object]]]:
    places = {printable(json_path(path)): count for path, count in counts.items() if count}
    for subject, count in sorted(places.items()):
        yield code, subject, {"count": count}

"""What a load has to say to people."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelines.archive.scan_file import ScanHeader
from pipelines.checks.check import Finding, Severity
from pipelines.core.text import printable
from pipelines.load.columns import json_path
from pipelines.load.schema import MOST_COLUMNS
from pipelines.load.stage import Stage


@dataclass(frozen=True)
class Outcome:
    """What findings are made of: types of columns before, those that are new, why it is held."""

    header: ScanHeader
    stage: Stage
    known_types: Mapping[tuple[str, str], str]
    new_types: Mapping[tuple[str, str], str]
    held: str | None


def list_findings(outcome: Outcome) -> tuple[Finding, ...]:
    """Return the findings of a load."""
    if outcome.held:
        return tuple(_held(outcome))
    return (
        *_quarantined(outcome),
        *_values_in_extra(outcome),
        *_values_discarded(outcome),
        *_columns_changed(outcome),
    )


def _finding(
    outcome: Outcome, code: str, severity: Severity, subject: str, texts: tuple[str, str]
) -> Finding:
    header = outcome.header
    message, remedy = texts
    return Finding(
        code=code,
        severity=severity,
        connection=header.connection,
        stream=header.stream,
        subject=subject,
        message=message,
        remedy=remedy,
        blocks=code == "scan_held",
    )


def _held(outcome: Outcome) -> Iterator[Finding]:
    stream, scan_id = outcome.header.stream, outcome.header.scan_id
    message = (
        f"The scan of {stream} waits for approval. {outcome.held} Analysts still see the rows of "
        "the scan before it."
    )
    remedy = f'partner-sync approve {scan_id} --reason "..."'
    yield _finding(outcome, "scan_held", Severity.WARNING, "", (message, remedy))


def _quarantined(outcome: Outcome) -> Iterator[Finding]:
    stage, stream = outcome.stage, outcome.header.stream
    if stage.quarantined:
        first = stage.quarantined[0]
        message = (
            f"{len(stage.quarantined):,} records of {stream} are in quarantine. The first is row "
            f"{first.row} of page {first.page}: {first.reason} Rows with their keys keep the "
            "version that was loaded before."
        )
        remedy = "Read table quarantine.records, and ask the service to correct the records."
        yield _finding(outcome, "records_quarantined", Severity.WARNING, "", (message, remedy))
    if stage.keyless:
        message = (
            f"{stage.keyless:,} records of {stream} in quarantine have no primary key that can be "
            "read. Any row may be one of them, so this scan deletes no row."
        )
        remedy = "Ask the service to correct the records; the next sync then deletes what is gone."
        yield _finding(outcome, "rows_not_deleted", Severity.WARNING, "", (message, remedy))


def _values_in_extra(outcome: Outcome) -> Iterator[Finding]:
    for path, count in sorted(_by_place(outcome.stage.decoder.kept).items()):
        message = (
            f"{count:,} values of {path} in {outcome.header.stream} fit no column. They are in "
            "column `_extra` as they were sent; their own column is NULL there."
        )
        remedy = "Check with the service whether the field has another meaning now."
        yield _finding(outcome, "values_in_extra", Severity.WARNING, path, (message, remedy))
    if outcome.stage.decoder.schema.overflows:
        message = (
            f"Records of {outcome.header.stream} have more than {MOST_COLUMNS} fields. The fields "
            "beyond that are in column `_extra`."
        )
        remedy = "Read them from `_extra` with json_extract_string."
        yield _finding(outcome, "column_limit", Severity.WARNING, "", (message, remedy))


def _values_discarded(outcome: Outcome) -> Iterator[Finding]:
    for path, count in sorted(_by_place(outcome.stage.decoder.discarded).items()):
        message = (
            f"{count:,} values of the new field {path} in {outcome.header.stream} are not loaded, "
            "because the contract of the stream is `discard`. The scan file keeps them."
        )
        remedy = f'Set contract = "evolve" in [streams.{outcome.header.stream}] to load the field.'
        yield _finding(outcome, "values_discarded", Severity.INFO, path, (message, remedy))


def _columns_changed(outcome: Outcome) -> Iterator[Finding]:
    if not outcome.known_types:
        return
    for (table, column), kind in outcome.new_types.items():
        before = outcome.known_types.get((table, column))
        what = f"is new ({kind})" if before is None else f"was {before} and is {kind} now"
        message = f"Column {table}.{column} {what}. Earlier versions of rows keep their values."
        subject = f"{table}.{column}"
        yield _finding(outcome, "column_changed", Severity.INFO, subject, (message, ""))


def _by_place(counts: Mapping[tuple[str | None, ...], int]) -> dict[str, int]:
    return {printable(json_path(path)): count for path, count in counts.items() if count}

"""What a load has to say to people: why a scan waits for them, and what they should know."""

from collections.abc import Iterator

from msgspec.structs import asdict

from pipelines.config.settings import Stream
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import printable
from pipelines.load.history import Delta
from pipelines.load.names import MANY_NAMES, MOST_COLUMNS
from pipelines.load.schema import Schema, field_of, json_path
from pipelines.load.stage import Stage

MOST_NAMED = 5  # columns in a message
# What happened and what it means for the data; on the last line what to do, if anything.
TEXTS = {
    "records_quarantined": """
Records of {stream} in quarantine: {count:,}. The first is row {row} of page {page}: {reason}
Rows with their keys keep the values that were loaded before, if there are any.
Read table quarantine.records, and ask the service to correct the records.
""",
    "rows_not_deleted": """
Records of {stream} in quarantine without a primary key that can be read: {count:,}.
Any row may be one of them, so this scan deletes no row.
Ask the service to correct the records; the next sync then deletes what is gone.
""",
    "values_in_extra": """
Values of {subject} in {stream} that do not fit their column: {count:,}.
They are in column `_extra` as they were sent. Their own column is NULL, so sums lack them.
Check with the service whether the field has another meaning now.
""",
    "values_rounded": """
Values of {subject} in {stream} with more digits than their column: {count:,}.
The column has the nearest value, which differs by less than 0.000000000000000001, or a microsecond
in a time; `_extra` has what was sent.

""",
    "rows_changed": """
{count:,} of {rows:,} rows of {stream} changed at once.
Analysts see the new values; the earlier ones are in schema history.
Ask the service. If the values are wrong, run `partner-sync versions rollback --reason "..."`.
""",
    "column_limit": """
Records of {stream} have more than {count} fields.
The fields that are too many are in column `_extra`, and in no sum.
Read them from `_extra` with json_extract_string.
""",
    "values_discarded": """
Values of the new field {subject} in {stream} that are not loaded: {count:,},
because the contract of the stream is `discard`. The scan file keeps them.
Set contract = "evolve" in [streams.{stream}] to load the field.
""",
    "names_are_data": """
Object {subject} of {stream} has names that are data, such as days: more than {count}, and they
grow. Table {table} has a row for each name, in column `_name`, of every row version.
Read that table instead of a column for each name.
""",
    "column_changed": """
Column {subject} {what}. Earlier row versions keep their values.

""",
}
FEWEST_ROWS = 100  # of a list, of which it is said that more than half changed
INFORMATION = {"values_discarded", "values_rounded", "column_changed", "names_are_data"}


def reasons_to_hold(delta: Delta, last_key: str | None, stream: Stream) -> Iterator[str]:
    """Yield why a scan must not be loaded without approval."""
    stage, proof, schema = delta.stage, delta.stage.scan.completeness, delta.stage.schema
    key, rows, current, deleted = proof.traits.key, proof.rows, len(stage.current), delta.deleted
    if current and key != last_key:
        before, now = (
            "the whole record" if each is None else f"`{each}`" for each in (last_key, key)
        )
        yield (
            f"The primary key was {before} and is {now} now. Every row would be deleted and loaded "
            "as a new row."
        )
    if key is not None and stage.keyless > max(1, stream.max_deleted_share * rows):
        aside = sum(end - first for each in proof.conflicting.values() for first, end in each)
        yield (
            f"{stage.keyless:,} of {rows + aside:,} records have no readable value of the primary "
            f"key `{key}`. They would go to quarantine."
        )
    if key is None:  # a changed row is a deleted and a new one
        deleted -= delta.new
    if delta.deleted and not rows:
        if not stream.allow_empty:
            yield f"The list is empty and had {current:,} rows. All of them would be deleted."
    elif deleted > max(0, stream.max_deleted_share * current):
        yield (
            f"{deleted:,} of {current:,} rows are no longer in the list, more than "
            f"{stream.max_deleted_share:.0%}. They would be deleted."
        )
    columns = sorted(".".join(names) for names in schema.new_types)
    if stream.contract == "freeze" and schema.known and columns:
        named = ", ".join(columns[:MOST_NAMED]) + (", …" if len(columns) > MOST_NAMED else "")
        yield (
            f"The columns of this stream are frozen, and {len(columns):,} of them would be new or "
            f"have another type: {named}."
        )


def list_findings(delta: Delta, changed: int) -> tuple[Finding, ...]:
    """Return the findings of a load that changed so many rows.

    That a scan is held is found by a check, as long as it is.
    """
    header = delta.stage.scan.header
    findings = []
    for code, subject, values in _notes(delta, changed):
        names = {"stream": header.stream, "scan_id": header.scan_id, "subject": subject, **values}
        *message, remedy = (line.format(**names) for line in TEXTS[code].split("\n")[1:-1])
        severity = Severity.INFO if code in INFORMATION else Severity.WARNING
        about = (header.connection, header.stream, subject, " ".join(message), remedy)
        findings.append(Finding(code, severity, *about))
    return tuple(findings)


def _notes(delta: Delta, changed: int) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield code, subject and the values of the message of each finding."""
    stage, schema = delta.stage, delta.stage.schema
    if stage.quarantined:
        count, first = len(stage.quarantined), asdict(stage.quarantined[0])
        yield "records_quarantined", "", {**first, "count": count}
    if stage.keyless and not stage.has_new_key:
        yield "rows_not_deleted", "", {"count": stage.keyless}
    rows = len(stage.current)
    if stage.scan.completeness.traits.key is None:  # a changed row is a deleted and a new one
        changed = min(delta.new, delta.deleted)
    if rows >= FEWEST_ROWS and 2 * changed > rows:
        yield "rows_changed", "", {"count": changed, "rows": rows}
    yield from _notes_of_values(stage)
    yield from _notes_of_columns(schema)


def _notes_of_columns(schema: Schema) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield what there is to say of columns that are new, or not there."""
    if schema.overflows:
        yield "column_limit", "", {"count": MOST_COLUMNS}
    for path in schema.new_maps:
        item = schema.places.get((*path, None))
        if item is not None:  # else a wider object became a map later
            about = {"count": MANY_NAMES, "table": item.table}
            yield "names_are_data", printable(field_of(path)), about
    for names, kind in schema.new_types.items() if schema.known else ():
        before = schema.known.get(names)
        what = f"is new ({kind})" if before is None else f"was {before} and is {kind} now"
        yield "column_changed", ".".join(names), {"what": what}


def _notes_of_values(stage: Stage) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield what there is to say of values that no column says exactly."""
    left = stage.left + stage.lost
    for path, count in sorted(left.items(), key=lambda each: json_path(each[0])):
        code = "values_discarded" if stage.schema.discards(path) else "values_in_extra"
        yield code, printable(json_path(path)), {"count": count}
    for path, count in (+stage.rounded).items():
        yield "values_rounded", printable(json_path(path)), {"count": count}

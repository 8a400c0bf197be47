"""What a load has to say to people: why a scan waits for them, and what they should know.

Here: guards, which run before the first write, and findings. Not here: who is told of them
(`pipelines/app/notify.py`), and how a held scan is approved (`pipelines/app/held_scans.py`).
"""

from collections.abc import Iterator
from typing import NamedTuple

from pipelines.config.settings import Stream
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import printable
from pipelines.load.delta import Delta
from pipelines.load.names import MANY_NAMES, MOST_COLUMNS
from pipelines.load.paths import FieldPath, field_of, json_path
from pipelines.load.schema import Schema
from pipelines.load.stage import CONFLICT, Stage
from pipelines.load.target import count_rows

# Columns in a message.
MOST_NAMED = 5
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
# Of a shorter list, nobody is told that more than half changed.
FEWEST_ROWS = 100
INFORMATION = {"values_discarded", "values_rounded", "column_changed", "names_are_data"}


def reasons_to_hold(delta: Delta, last_key: str | None, stream: Stream) -> Iterator[str]:
    """Yield why a scan must not be loaded without approval."""
    yield from _changed_key(delta, last_key)
    yield from _unreadable_keys(delta, stream)
    yield from _conflicting_keys(delta, stream)
    yield from _deleted_rows(delta, stream)
    if stream.contract == "freeze":
        yield from _changed_columns(delta.stage.schema)


def _changed_key(delta: Delta, last_key: str | None) -> Iterator[str]:
    key = delta.stage.scan.completeness.traits.key
    if len(delta.stage.current) and key != last_key:
        yield (
            f"The primary key was {_named_key(last_key)} and is {_named_key(key)} now. Every row "
            "would be deleted and loaded as a new row."
        )


def _named_key(key: str | None) -> str:
    return "the whole record" if key is None else f"`{key}`"


def _unreadable_keys(delta: Delta, stream: Stream) -> Iterator[str]:
    proof = delta.stage.scan.completeness
    key = proof.traits.key
    keyless = delta.stage.keyless
    if key is not None and keyless > max(1, stream.max_deleted_share * proof.rows):
        records = proof.rows + sum(map(count_rows, proof.conflicting.values()))
        reason = (
            f"{keyless:,} of {records:,} records have no readable value of the primary "
            f"key `{key}`. They would go to quarantine."
        )
        if keyless == records and stream.key is not None:
            name = delta.stage.scan.header.stream
            reason += (
                f" If no record has this field, correct key in [streams.{name}] of settings.toml, "
                "then run `partner-sync sync`."
            )
        yield reason


def _conflicting_keys(delta: Delta, stream: Stream) -> Iterator[str]:
    """Yield that a key which a scan detected is no key any more; a configured one stays."""
    proof = delta.stage.scan.completeness
    key = proof.traits.key
    conflicts = sum(record.reason == CONFLICT for record in delta.stage.quarantined)
    records = proof.rows + sum(map(count_rows, proof.conflicting.values()))
    is_detected = stream.key is None and len(delta.stage.current) > 0
    if is_detected and conflicts > stream.max_deleted_share * records:
        name = delta.stage.scan.header.stream
        yield (
            f"{conflicts:,} of {records:,} records have the primary key `{key}` of another record "
            f"with other content, more than {stream.max_deleted_share:.0%}. They would go to "
            "quarantine. An earlier scan has detected this key; if it identifies no record, set "
            f"key in [streams.{name}] of settings.toml, then run `partner-sync sync`."
        )


def _deleted_rows(delta: Delta, stream: Stream) -> Iterator[str]:
    proof = delta.stage.scan.completeness
    current = len(delta.stage.current)
    if delta.deleted and not proof.rows:
        if not stream.allow_empty:
            yield f"The list is empty and had {current:,} rows. All of them would be deleted."
        return
    deleted = delta.deleted
    if proof.traits.key is None:
        # Without a key, a changed row is a deleted and a new one.
        deleted -= delta.new
    if deleted > max(0, stream.max_deleted_share * current):
        yield (
            f"{deleted:,} of {current:,} rows are no longer in the list, more than "
            f"{stream.max_deleted_share:.0%}. They would be deleted."
        )


def _changed_columns(schema: Schema) -> Iterator[str]:
    columns = sorted(".".join(column) for column in schema.new_types)
    if schema.known and columns:
        named = ", ".join(columns[:MOST_NAMED])
        if len(columns) > MOST_NAMED:
            named += ", …"
        yield (
            f"The columns of this stream are frozen, and {len(columns):,} of them would be new or "
            f"have another type: {named}."
        )


class _Note(NamedTuple):
    """What a finding says: its text, what it is about, and the values in the text."""

    code: str
    subject: str
    values: dict[str, object]


def list_findings(delta: Delta, changed: int) -> tuple[Finding, ...]:
    """Return the findings of a load that changed so many rows.

    That a scan is held is found by a check, as long as it is.
    """
    header = delta.stage.scan.header
    findings = []
    for note in _notes(delta, changed):
        values = {
            "stream": header.stream,
            "scan_id": header.scan_id,
            "subject": note.subject,
            **note.values,
        }
        # Each text begins and ends with a line break.
        lines = [line.format(**values) for line in TEXTS[note.code].split("\n")[1:-1]]
        finding = Finding(
            note.code,
            Severity.INFO if note.code in INFORMATION else Severity.WARNING,
            header.connection,
            header.stream,
            note.subject,
            " ".join(lines[:-1]),
            lines[-1],
        )
        findings.append(finding)
    return tuple(findings)


def _notes(delta: Delta, changed: int) -> Iterator[_Note]:
    """Yield what each finding says."""
    stage = delta.stage
    if stage.quarantined:
        first = stage.quarantined[0]
        values: dict[str, object] = {
            "count": len(stage.quarantined),
            "page": first.page,
            "row": first.row,
            "reason": first.reason,
        }
        yield _Note("records_quarantined", "", values)
    if stage.keyless and not stage.has_new_key:
        yield _Note("rows_not_deleted", "", {"count": stage.keyless})
    if stage.scan.completeness.traits.key is None:
        # Without a key, a changed row is a deleted and a new one.
        changed = min(delta.new, delta.deleted)
    rows = len(stage.current)
    if rows >= FEWEST_ROWS and 2 * changed > rows:
        yield _Note("rows_changed", "", {"count": changed, "rows": rows})
    yield from _notes_of_values(stage)
    yield from _notes_of_columns(stage.schema)


def _notes_of_columns(schema: Schema) -> Iterator[_Note]:
    """Yield what there is to say of columns that are new, or not there."""
    if schema.overflows:
        yield _Note("column_limit", "", {"count": MOST_COLUMNS})
    for path in schema.new_maps:
        item = schema.places.get((*path, None))
        # Without rows, it is in a wider object that became a map later.
        if item is not None:
            values: dict[str, object] = {"count": MANY_NAMES, "table": item.table}
            yield _Note("names_are_data", printable(field_of(path)), values)
    # Of a first scan, all columns are new.
    if not schema.known:
        return
    for column, column_type in schema.new_types.items():
        known_type = schema.known.get(column)
        if known_type is None:
            what = f"is new ({column_type})"
        else:
            what = f"was {known_type} and is {column_type} now"
        yield _Note("column_changed", ".".join(column), {"what": what})


def _notes_of_values(stage: Stage) -> Iterator[_Note]:
    """Yield what there is to say of values that no column says exactly."""

    def as_text(counted: tuple[FieldPath, int]) -> str:
        return json_path(counted[0])

    not_in_columns = stage.without_column + stage.lost
    for path, count in sorted(not_in_columns.items(), key=as_text):
        code = "values_discarded" if stage.schema.discards(path) else "values_in_extra"
        yield _Note(code, printable(json_path(path)), {"count": count})
    for path, count in stage.rounded.items():
        if count:
            yield _Note("values_rounded", printable(json_path(path)), {"count": count})

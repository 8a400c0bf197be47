"""Reads what can be read of records in quarantine: they are no rows, and they are not absent."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.finance.currencies import MOST_DIGITS, digits_of, lower_trimmed, read_code
from pipelines.finance.mapping import Mapping as RoleMapping
from pipelines.finance.reconcile.readings import Readings
from pipelines.finance.reconcile.roles import FieldColumn
from pipelines.finance.reconcile.spelled import DIGITS, find_sent, kind_of, read_sent, text_of
from pipelines.warehouse.duckdb_file import fetch_rows

RECORDS: Final = """
SELECT
    records.stream AS side, records.connection, records.key AS id, records.scan_id AS _scan_id,
    records.page AS _page, records.row AS _row, records.reason AS quarantine, records.raw
FROM quarantine.records AS records
WHERE records.stream IN ('partners', 'usage', 'billing') AND {is_chosen}
"""
READ: Final = ("id", "partner", "period", "currency", "amount", "status")
TEXTS: Final = (
    "side", "connection", "id", "partner", "currency", "roles", "sent", "quarantine", "_scan_id",
)  # fmt: skip
SHOWN: Final = 80  # characters of a record that is no object


def read_quarantine(
    db: duckdb.DuckDBPyConnection,
    columns: Mapping[str, FieldColumn],
    mapping: RoleMapping,
    readings: Readings,
    is_chosen: str,
) -> pa.Table:
    """Return the records in quarantine with their roles; `roles` are those that cannot be read.

    `is_chosen` is a condition on `records`. A record of which nothing can be read has the role
    `record`. Bills with a status that does not count are left out.
    """
    counted = set(map(lower_trimmed, mapping.billing.counted_statuses))
    rows = []
    for record in fetch_rows(db, RECORDS.format(is_chosen=is_chosen)):
        raw = record.pop("raw")
        side = record["side"]
        values = _read(raw, _columns_of_records(columns, side), readings)
        status = values.pop("status", None)
        is_counted = not counted or not status or lower_trimmed(status) in counted
        if side == "billing" and not is_counted:
            continue
        if values.get("amount") and getattr(mapping, side).amount_unit == "minor":
            values["amount"] = values["amount"].scaleb(-digits_of(values.get("currency")))
        # The key of the quarantine stays where the identifier cannot be read.
        known = {name: value for name, value in values.items() if value}
        rows.append(record | known)
    return pa.Table.from_pylist(rows, _schema(readings))


def _columns_of_records(columns: Mapping[str, FieldColumn], side: str) -> dict[str, FieldColumn]:
    """Return the columns of roles that are read here, by the name of the role."""
    of_records = {}
    for name in READ:
        column = columns.get(f"{side}.{name}")
        if column is not None and column.row == "record":
            of_records[name] = column
    return of_records


def _read(raw: str, roles: dict[str, FieldColumn], readings: Readings) -> dict[str, Any]:
    """Return the values of roles in a record, and which cannot be read."""
    record: Any = None
    with suppress(ValueError, RecursionError):
        record = json.loads(raw, parse_float=str, parse_int=str, object_pairs_hook=_members)
    if not isinstance(record, dict):
        return {"roles": "record", "sent": raw[:SHOWN]}
    values: dict[str, Any] = {}
    unread = {}
    for name, column in roles.items():
        sent = find_sent(record, column.names)
        if sent is not None:
            role = f"{column.stream}.{name}"
            value = read_sent(kind_of(role), sent, readings.zone)
            values[name] = readings.fitted(role, value)
            if values[name] is None:
                unread[name] = text_of(sent)
    values["currency"] = read_code(values.get("currency"))
    day = values.pop("period", None)
    values["month"] = day.replace(day=1) if day else None
    values["roles"] = ",".join(unread)
    values["sent"] = next(iter(unread.values()), None)
    return values


def _members(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; a name that is in it twice has a list of what was sent."""
    values: dict[str, Any] = {}
    for name, value in members:
        values[name] = [values[name], value] if name in values else value
    return values


def _schema(readings: Readings) -> pa.Schema:
    amount_scale = readings.scale_of("usage.amount") + MOST_DIGITS
    types = dict.fromkeys(TEXTS, pa.string())
    types["_page"] = pa.int32()
    types["_row"] = pa.int32()
    types["month"] = pa.date32()
    types["amount"] = pa.decimal128(DIGITS, amount_scale)
    return pa.schema(types.items())

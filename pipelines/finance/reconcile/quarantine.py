"""Reads what can be read of records in quarantine: they are no rows, and they are not absent."""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import duckdb
import pyarrow as pa

from pipelines.finance.currencies import MOST_DIGITS, digits_of, lower_trimmed, read_code
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile.readings import Readings
from pipelines.finance.reconcile.roles import Column
from pipelines.finance.reconcile.spelled import DIGITS, find_sent, kind_of, read_sent, text_of

RECORDS: Final = """
SELECT
    records.stream, records.connection, records.key, records.scan_id, records.page, records.row,
    records.reason, records.raw
FROM quarantine.records AS records
WHERE records.stream IN ('partners', 'usage', 'billing')
"""
READ: Final = ("id", "partner", "period", "currency", "amount", "status")
SHOWN: Final = 80  # characters of a record that is no object


def read_quarantine(
    db: duckdb.DuckDBPyConnection, columns: dict[str, Column], mapping: Mapping, readings: Readings
) -> pa.Table:
    """Return the records in quarantine with their roles; `roles` are those that cannot be read.

    A record of which nothing can be read has the role `record`. Bills with a status that does not
    count are left out.
    """
    statuses, rows = {*map(lower_trimmed, mapping.billing.counted_statuses)}, list[dict[str, Any]]()
    for stream, connection, key, scan_id, page, row, reason, raw in db.execute(RECORDS).fetchall():
        roles = {
            name: columns[f"{stream}.{name}"]
            for name in READ
            if f"{stream}.{name}" in columns and columns[f"{stream}.{name}"].row == "record"
        }
        found = _read(raw, roles, readings)
        status = found.pop("status", None)
        if stream == "billing" and statuses and status and lower_trimmed(status) not in statuses:
            continue
        if found.get("amount") and getattr(mapping, stream).amount_unit == "minor":
            found["amount"] = found["amount"].scaleb(-digits_of(found.get("currency")))
        place = {"_scan_id": scan_id, "_page": page, "_row": row, "quarantine": reason}
        about = {"side": stream, "connection": connection, "id": key, **place}
        rows.append({**about, **{name: value for name, value in found.items() if value}})
    return pa.Table.from_pylist(rows, _schema(readings))


def _read(raw: str, roles: dict[str, Column], readings: Readings) -> dict[str, Any]:
    """Return the values of roles in a record, and which cannot be read."""
    record: Any = None
    with suppress(ValueError, RecursionError):
        record = json.loads(raw, parse_float=str, parse_int=str, object_pairs_hook=_members)
    if not isinstance(record, dict):
        return {"roles": "record", "sent": raw[:SHOWN]}
    found, unread = dict[str, Any](), dict[str, Any]()
    for name, column in roles.items():
        sent = find_sent(record, column.names)
        if sent is not None:
            role = f"{column.stream}.{name}"
            found[name] = readings.fitted(role, read_sent(kind_of(role), sent, readings.zone))
            if found[name] is None:
                unread[name] = text_of(sent)
    found["currency"] = read_code(found.get("currency"))
    found["month"] = found["period"].replace(day=1) if found.get("period") else None
    found.pop("period", None)
    return found | {"roles": ",".join(unread), "sent": next(iter(unread.values()), None)}


def _members(members: list[tuple[str, Any]]) -> Iterator[Any] | dict[str, Any]:
    """Return an object; a name that is in it twice has a list of what was sent."""
    found = dict[str, Any]()
    for name, value in members:
        found[name] = [found[name], value] if name in found else value
    return found


def _schema(readings: Readings) -> pa.Schema:
    texts = ("side", "connection", "id", "partner", "currency", "roles", "sent", "quarantine")
    numbers = {"_page": pa.int32(), "_row": pa.int32(), "month": pa.date32()}
    kinds = dict.fromkeys((*texts, "_scan_id"), pa.string()) | numbers
    amount = pa.decimal128(DIGITS, readings.scale_of("usage.amount") + MOST_DIGITS)
    return pa.schema([*kinds.items(), ("amount", amount)])

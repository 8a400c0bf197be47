"""Here: the value of a column that has the type of its role: a text, a day or a time.

Not here: numbers, and values of columns that have another type (readings).
"""

from typing import Final
from zoneinfo import ZoneInfo

import duckdb

from pipelines.core.text import quote_identifier
from pipelines.finance.reconcile.roles import FieldColumn
from pipelines.finance.reconcile.spelled import Kind

# Without the zeros behind the point, and the point.
PLAIN: Final = "rtrim(rtrim({value}, '0'), '.')"
# A column of text has objects and lists as JSON text. Few texts need the second look.
IS_JSON: Final = "(prefix({value}, '{{') OR prefix({value}, '[')) AND json_valid({value})"
# 400,000 identifiers take 14 ms; with the condition in an aggregate, they took 48.
HAS_JSON: Final = "SELECT count(*) > 0 FROM history.{table} AS {row} WHERE {is_json}"


def typed_value(kind: Kind, column: FieldColumn, zone: ZoneInfo) -> str | None:
    """Return the expression for a value of a kind; None where the column has another type."""
    is_date = column.type == "DATE"
    if kind is Kind.TEXT:
        return _text(column)
    if kind is Kind.DAY and column.is_time:
        return day_in_column(column, zone)
    if kind is Kind.TIME and is_date:
        return f"CAST({column.value} AS TIMESTAMP) AT TIME ZONE '{zone}'"
    if (kind is Kind.DAY and is_date) or (kind is Kind.TIME and column.is_time):
        return column.value
    return None


def has_json(db: duckdb.DuckDBPyConnection, column: FieldColumn) -> bool:
    """Return whether a column of text holds an object or a list in some row."""
    query = HAS_JSON.format(
        is_json=IS_JSON.format(value=column.value),
        table=quote_identifier(column.table),
        row=column.row,
    )
    return db.execute(query).fetchall() == [(True,)]


def day_in_column(column: FieldColumn, zone: ZoneInfo) -> str:
    """Return the day of a moment in a time zone; a date that was sent is that day."""
    # A sixth of the time of a cast by way of the time zone.
    in_utc = f"CAST(make_timestamp(epoch_us({column.value})) AS DATE)"
    if zone.key == "UTC":
        return in_utc
    here = f"CAST({column.value} AT TIME ZONE '{zone}' AS DATE)"
    return f"if({column.offset} IS NULL, {in_utc}, {here})"


def _text(column: FieldColumn) -> str:
    """Return the expression for a value as text; 1500.00 is 1500, as an identifier is sent."""
    text = f"CAST({column.value} AS VARCHAR)"
    is_fraction = column.type.startswith("DECIMAL") and column.scale
    return PLAIN.format(value=text) if is_fraction else text

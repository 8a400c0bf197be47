"""How statements read the value of a role, whatever type its column has.

A value of the right type is read from its column: that costs nothing. A column of text has a table
of what each text says (`read_usage_period`). Of a value without a column, `_extra` has the
spelling: tables `read_usage_record` and `read_billing_line` have what such rows say.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.finance.reconcile.roles import Column
from pipelines.finance.reconcile.room import Numbers, digits_before, fits_in
from pipelines.finance.reconcile.sent import (
    ARROW,
    KEYS,
    SentRow,
    read_rows,
    read_texts,
    write_rows,
    write_texts,
)
from pipelines.finance.reconcile.spelled import (
    DIGITS,
    MOST_SCALE,
    Kind,
    fit,
    kind_of,
    measure_of,
    scale_of,
)

SQL: Final = {Kind.DAY: "DATE", Kind.TIME: "TIMESTAMPTZ", Kind.TEXT: "VARCHAR"}
# Identifiers of one thing. Where one of them is in a column of decimals, 1500.00 is 1500 in all.
SAME: Final = (
    {"usage.id", "billing.line_usage"},
    {"partners.id", "usage.partner", "billing.partner"},
)
# A column of text has objects and lists as JSON text. Few texts need the second look.
IS_JSON: Final = "left({0}, 1) IN ('{{', '[') AND json_valid({0})"
HAS_JSON: Final = "SELECT coalesce(bool_or({2}), false) FROM history.{1} AS {0}"
PLAIN: Final = "rtrim(rtrim({0}, '0'), '.')"
IF_DECIMAL: Final = (
    "if(regexp_full_match({0}, '-?(0|[1-9][0-9]*)[.][0-9]+'), rtrim(rtrim({0}, '0'), '.'), {0})"
)


class Reading(NamedTuple):
    """How a role is read from its column: its `value`, and when it `fails` to say one.

    `fails` is empty where it never does.
    """

    value: str
    fails: str = ""


class Readings:
    """The readings of the roles of a mapping (`usage.amount`).

    The terms are a time zone, roles without which a figure is wrong, and digits that views add to a
    number behind the point. The tables have names that begin with `prefix`.
    """

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        columns: Mapping[str, Column],
        terms: tuple[ZoneInfo, Collection[str], int],
        prefix: str,
    ) -> None:
        self._columns, self._prefix = columns, prefix
        self.zone, self._needed, self._reserve = terms
        self._texts = {
            role: read_texts(db, role, column, self.zone)
            for role, column in columns.items()
            if kind_of(role) is not Kind.TEXT and column.type == "VARCHAR"
        }
        self._rows = self._read_rows(db)
        self._with_json = self._find_json(db)
        self._scales = {measure_of(role): self._scale(measure_of(role)) for role in columns}
        self._digits = {each: self._most_digits(db, each) for each in self._scales}
        self._write(db)

    def value(self, role: str) -> str:
        """Return the expression for a role's value; NULL where there is none."""
        if role not in self._columns:
            return f"CAST(NULL AS {self._type(role)})"
        value, row = self._in_column(role).value, self._columns[role].row
        if (_side(role), row) in self._rows:
            value = f"coalesce({value}, read_{row}.{_name(role)})"
        if any(role in same and self._has_decimal(same) for same in SAME):
            return IF_DECIMAL.format(value)
        return value

    def day_of(self, role: str) -> str:
        """Return the expression for the day of a role that is a moment."""
        column = self._columns.get(role)
        if column is not None and column.is_time:
            day = self._day_in_column(column)
            at = _side(role), column.row
            if at not in self._rows:
                return day
            return f"coalesce({day}, CAST({self.value(role)} AT TIME ZONE '{self.zone}' AS DATE))"
        return f"CAST({self.value(role)} AT TIME ZONE '{self.zone}' AS DATE)"

    def joins(self, side: str, row: str) -> str:
        """Return the joins of the tables that the values of a side's rows need."""
        joins = [
            f"LEFT JOIN {self._table(role)} AS {_text(role)} "
            f"ON {_text(role)}.text = {self._columns[role].value}"
            for role in self._roles(side, row)
            if role in self._texts
        ]
        if (side, row) in self._rows:
            on = " AND ".join(f"read_{row}.{key} = {row}.{key}" for key in KEYS[row])
            joins.append(f"LEFT JOIN {self._table(f'{side}.{row}')} AS read_{row} ON {on}")
        return "\n    ".join(joins)

    def unread(self, side: str, row: str) -> dict[str, str]:
        """Return expressions: roles of a side's row that cannot be read, and what was sent."""
        names, texts = list[str](), list[str]()
        if (side, row) in self._rows:
            names.append(f"read_{row}.unread")
            texts.append(f"read_{row}.unread_text")
        for role in self._roles(side, row):
            fails = self._in_column(role).fails
            if role in self._needed and fails:
                sent = f"CAST({self._columns[role].value} AS VARCHAR)"
                names.append(f"CASE WHEN {fails} THEN '{_name(role)}' END")
                texts.append(f"CASE WHEN {fails} THEN {sent} END")
        if not names:
            return {"unread": "NULL::VARCHAR", "unread_text": "NULL::VARCHAR"}
        return {
            "unread": f"nullif(concat_ws(',', {', '.join(names)}), '')",
            "unread_text": f"coalesce({', '.join(texts)})",
        }

    def scale_of(self, role: str) -> int:
        """Return the digits behind the point of a role's type."""
        return self._scales.get(measure_of(role), 0)

    def fitted(self, role: str, value: Any) -> Any:
        """Return a value as the role's type holds it; None if it, or a sum of it, is too large."""
        if digits_before(value) > self._digits.get(measure_of(role), DIGITS):
            return None
        return fit(value, self.scale_of(role))

    def arrow(self, role: str) -> pa.DataType:
        """Return the Arrow type of a role."""
        kind = kind_of(role)
        if kind is Kind.NUMBER:
            return pa.decimal128(DIGITS, self.scale_of(role))
        return ARROW.get(kind, pa.string())

    def _roles(self, side: str, row: str) -> list[str]:
        return [
            role
            for role, column in self._columns.items()
            if _side(role) == side and column.row == row
        ]

    def _read_rows(self, db: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], list[SentRow]]:
        """Return what the rows of each table say that no column says."""
        terms, found = (self.zone, self._needed), dict[tuple[str, str], list[SentRow]]()
        of_lines = [role for role in self._needed if ".line_" in role]
        for side in dict.fromkeys(map(_side, self._columns)):
            for row in KEYS:
                roles = {role: self._columns[role] for role in self._roles(side, row)}
                is_bill = (side, row) == ("billing", "record")
                lines = self._columns[of_lines[0]].list_names if is_bill and of_lines else ()
                if roles and (rows := [*read_rows(db, roles, terms, lines)]):
                    found[side, row] = rows
        return found

    def _find_json(self, db: duckdb.DuckDBPyConnection) -> set[str]:
        """Return the needed roles of text that hold an object or a list in some row.

        Few do. So the expressions of most are short: DuckDB plans them in half of the time.
        """
        found = set[str]()
        for role in self._needed:
            column = self._columns[role]
            if kind_of(role) is Kind.TEXT and column.type == "VARCHAR":
                table = quote_identifier(column.table)
                query = HAS_JSON.format(column.row, table, IS_JSON.format(column.value))
                if db.execute(query).fetchall() == [(True,)]:
                    found.add(role)
        return found

    def _scale(self, measure: str) -> int:
        """Return the digits behind the point of every amount, quantity or price."""
        roles = [role for role in self._columns if measure_of(role) == measure]
        texts = (value for role in roles for value in self._texts.get(role, {}).values())
        rows = (
            row.values.get(role) for rows in self._rows.values() for row in rows for role in roles
        )
        columns = (self._columns[role].scale for role in roles)
        return min(MOST_SCALE, max(scale_of(texts), scale_of(rows), *columns))

    def _most_digits(self, db: duckdb.DuckDBPyConnection, measure: str) -> int:
        """Return the digits before the point that a number may have, so that no sum overflows."""
        numbers = Numbers(db, DIGITS - self._scales[measure] - self._reserve)
        for role in self._columns:
            if measure_of(role) == measure and kind_of(role) is Kind.NUMBER:
                numbers.add_column(self._columns[role], self._texts.get(role, {}).values())
                numbers.add(row.values.get(role) for rows in self._rows.values() for row in rows)
        return numbers.most_digits()

    def _write(self, db: duckdb.DuckDBPyConnection) -> None:
        """Create the tables. A number that is too large for its type says nothing."""
        for role, texts in self._texts.items():
            fitting = {text: self.fitted(role, value) for text, value in texts.items()}
            write_texts(db, self._table(role), fitting, self.arrow(role))
        for (side, row), found in self._rows.items():
            roles = {role: (_name(role), self.arrow(role)) for role in self._roles(side, row)}
            write_rows(db, self._table(f"{side}.{row}"), [*map(self._fitted, found)], roles)

    def _fitted(self, row: SentRow) -> SentRow:
        values = {role: self.fitted(role, value) for role, value in row.values.items()}
        large = [
            role
            for role, value in values.items()
            if value is None and row.values[role] is not None and role in self._needed
        ]
        text = row.text or (f"{row.values[large[0]]}" if large else None)
        return SentRow(row.key, values, [*row.unread, *map(_name, large)], text)

    def _table(self, name: str) -> str:
        return f"{self._prefix}read_{name.replace('.', '_')}"

    def _type(self, role: str) -> str:
        """Return the type of a role: numbers have one, as DuckDB rounds where two meet."""
        scale = self.scale_of(role)
        return SQL.get(kind_of(role), f"DECIMAL({DIGITS},{scale})")

    def _has_decimal(self, roles: Collection[str]) -> bool:
        columns = (self._columns.get(role) for role in roles)
        return any(column and column.type.startswith("DECIMAL") for column in columns)

    def _in_column(self, role: str) -> Reading:
        """Return how a role is read from its column alone."""
        column = self._columns[role]
        # A bill with a blank period is one without any.
        is_period = role == "billing.period" and role in self._texts
        is_sent = f"trim({column.value}) <> ''" if is_period else f"{column.value} IS NOT NULL"
        if role in self._texts:
            value = f"{_text(role)}.value"
            return Reading(value, f"{is_sent} AND {value} IS NULL")
        if role in self._with_json:
            fails = IS_JSON.format(column.value)
            return Reading(f"if({fails}, NULL, {column.value})", f"coalesce({fails}, false)")
        typed = self._typed(role, column)
        if typed is None:
            return Reading(f"CAST(NULL AS {self._type(role)})", is_sent)
        is_number = kind_of(role) is Kind.NUMBER
        if is_number and column.digits > self._digits[measure_of(role)]:
            return Reading(typed, f"{is_sent} AND {typed} IS NULL")
        return Reading(typed)

    def _typed(self, role: str, column: Column) -> str | None:
        """Return the expression for a value of the right type; None where its type is none."""
        kind, value = kind_of(role), column.value
        if kind is Kind.NUMBER and column.is_number:
            cast, most = f"TRY_CAST({value} AS {self._type(role)})", self._digits[measure_of(role)]
            return f"if({fits_in(value, most)}, {cast}, NULL)" if column.digits > most else cast
        if kind is Kind.TEXT:
            text = f"CAST({value} AS VARCHAR)"
            return (
                PLAIN.format(text) if column.type.startswith("DECIMAL") and column.scale else text
            )
        if kind is Kind.DAY and column.is_time:
            return self._day_in_column(column)
        if kind is Kind.TIME and column.type == "DATE":
            return f"CAST({value} AS TIMESTAMP) AT TIME ZONE '{self.zone}'"
        fits = column.type == "DATE" if kind is Kind.DAY else column.is_time
        return value if fits and kind is not Kind.NUMBER else None

    def _day_in_column(self, column: Column) -> str:
        """Return the day of a moment in the time zone; a date that was sent is that day."""
        in_utc = f"CAST(make_timestamp(epoch_us({column.value})) AS DATE)"  # a sixth of the time
        if self.zone.key == "UTC":
            return in_utc
        here = f"CAST({column.value} AT TIME ZONE '{self.zone}' AS DATE)"
        return f"if({column.offset} IS NULL, {in_utc}, {here})"


def _side(role: str) -> str:
    return role.partition(".")[0]


def _name(role: str) -> str:
    return role.rpartition(".")[2]


def _text(role: str) -> str:
    return f"text_{_name(role)}"

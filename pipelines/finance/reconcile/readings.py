"""Here: how statements read the value of a role, whatever type its column has.

A value of the right type is read from its column: that costs nothing. A column of text has a table
of what each text says (`read_usage_period`). Of a value without a column, `_extra` has the
spelling: tables `read_usage_record` and `read_billing_line` have what such rows say.

Not here: what a text says (spelled, sent), values of columns that have the type of the role
(typed_value), which numbers are too large (room).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.finance.currencies import MOST_DIGITS
from pipelines.finance.mapping import Mapping as RoleMapping
from pipelines.finance.reconcile.roles import (
    FieldColumn,
    is_of_lines,
    name_of,
    needed_roles,
    side_of,
)
from pipelines.finance.reconcile.room import Numbers, digits_before, fits_in
from pipelines.finance.reconcile.sent import (
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
from pipelines.finance.reconcile.typed_value import (
    IS_JSON,
    PLAIN,
    day_in_column,
    has_json,
    typed_value,
)

# The types of what is no number, in SQL and in Arrow.
SQL: Final = {Kind.DAY: "DATE", Kind.TIME: "TIMESTAMPTZ", Kind.TEXT: "VARCHAR"}
ARROW: Final = {
    Kind.DAY: pa.date32(),
    Kind.TIME: pa.timestamp("us", tz="UTC"),
    Kind.TEXT: pa.string(),
}
# Identifiers of one thing. Where one of them is in a column of decimals, 1500.00 is 1500 in all.
SAME: Final = (
    {"usage.id", "billing.line_usage"},
    {"partners.id", "usage.partner", "billing.partner"},
)
IF_DECIMAL: Final = "if(regexp_full_match({value}, '-?(0|[1-9][0-9]*)[.][0-9]+'), {plain}, {value})"


class Reading(NamedTuple):
    """How a role is read from its column: its `value`, and when it `fails` to say one.

    `fails` is empty where it never does.
    """

    value: str
    fails: str = ""


class Readings:
    """The readings of the roles of a mapping that have `columns`.

    What the columns do not say is in tables, which are created here. Their names begin with
    `prefix`.
    """

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        columns: Mapping[str, FieldColumn],
        mapping: RoleMapping,
        prefix: str,
    ) -> None:
        self.zone = mapping.time_zone
        self._columns = columns
        self._prefix = prefix
        self._needed = needed_roles(columns)
        self._reserve = _digits_added(mapping)
        # What texts say is in tables that the views join: the views are plain SQL, as a function
        # in Python would be called for each row.
        self._texts = {}
        for role, column in columns.items():
            if kind_of(role) is not Kind.TEXT and column.type == "VARCHAR":
                self._texts[role] = read_texts(db, role, column, self.zone)
        self._sent_rows = self._read_rows(db)
        self._with_json = self._find_json(db)
        measures = set(map(measure_of, columns))
        self._scales = {measure: self._scale(measure) for measure in measures}
        self._digits = {measure: self._most_digits(db, measure) for measure in measures}
        self._write(db)

    def value(self, role: str) -> str:
        """Return the expression for a role's value; NULL where there is none."""
        if role not in self._columns:
            return f"CAST(NULL AS {self._type(role)})"
        value = self._in_column(role).value
        row = self._columns[role].row
        if (side_of(role), row) in self._sent_rows:
            value = f"coalesce({value}, read_{row}.{name_of(role)})"
        if any(role in same and self._has_decimal(same) for same in SAME):
            return IF_DECIMAL.format(value=value, plain=PLAIN.format(value=value))
        return value

    def day_of(self, role: str) -> str:
        """Return the expression for the day of a role that is a moment."""
        day_of_value = f"CAST({self.value(role)} AT TIME ZONE '{self.zone}' AS DATE)"
        column = self._columns.get(role)
        if column is None or not column.is_time:
            return day_of_value
        day = day_in_column(column, self.zone)
        if (side_of(role), column.row) in self._sent_rows:
            return f"coalesce({day}, {day_of_value})"
        return day

    def joins(self, side: str, row: str) -> str:
        """Return the joins of the tables that the values of a side's rows need."""
        joins = []
        for role in self._roles(side, row):
            if role in self._texts:
                text = _text(role)
                on = f"{text}.text = {self._columns[role].value}"
                joins.append(f"LEFT JOIN {self._table(role)} AS {text} ON {on}")
        if (side, row) in self._sent_rows:
            on = " AND ".join(f"read_{row}.{key} = {row}.{key}" for key in KEYS[row])
            joins.append(f"LEFT JOIN {self._table(f'{side}.{row}')} AS read_{row} ON {on}")
        return "\n    ".join(joins)

    def unread(self, side: str, row: str) -> dict[str, str]:
        """Return expressions: roles of a side's row that cannot be read, and what was sent."""
        names = []
        texts = []
        if (side, row) in self._sent_rows:
            names.append(f"read_{row}.unread")
            texts.append(f"read_{row}.unread_text")
        for role in self._roles(side, row):
            fails = self._in_column(role).fails
            if role in self._needed and fails:
                sent = f"CAST({self._columns[role].value} AS VARCHAR)"
                names.append(f"CASE WHEN {fails} THEN '{name_of(role)}' END")
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

    def most_digits_of(self, role: str) -> int:
        """Return the digits before the point that a number of a role may have."""
        return self._digits.get(measure_of(role), DIGITS)

    def fitted(self, role: str, value: Any) -> Any:
        """Return a value as the role's type holds it; None if it, or a sum of it, is too large."""
        if digits_before(value) > self.most_digits_of(role):
            return None
        return fit(value, self.scale_of(role))

    def _arrow_type(self, role: str) -> pa.DataType:
        """Return the Arrow type of a role."""
        kind = kind_of(role)
        if kind is Kind.NUMBER:
            return pa.decimal128(DIGITS, self.scale_of(role))
        return ARROW[kind]

    def _roles(self, side: str, row: str) -> list[str]:
        """Return the roles of a side that its records have, or its lines."""
        roles = []
        for role, column in self._columns.items():
            if side_of(role) == side and column.row == row:
                roles.append(role)
        return roles

    def _read_rows(self, db: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], list[SentRow]]:
        """Return what rows say that no column says, by side and kind of row (record, line)."""
        rows_of = {}
        for side in dict.fromkeys(map(side_of, self._columns)):
            for row in KEYS:
                roles = {role: self._columns[role] for role in self._roles(side, row)}
                if not roles:
                    continue
                is_bill = (side, row) == ("billing", "record")
                lines = self._names_of_lines() if is_bill else ()
                rows = list(read_rows(db, roles, self.zone, self._needed, lines))
                if rows:
                    rows_of[side, row] = rows
        return rows_of

    def _names_of_lines(self) -> Sequence[str]:
        """Return the names from a bill to the list of its lines; none if no figure needs these."""
        for role in self._needed:
            if is_of_lines(role):
                return self._columns[role].list_names
        return ()

    def _find_json(self, db: duckdb.DuckDBPyConnection) -> set[str]:
        """Return the needed roles of text that hold an object or a list in some row.

        Few do. So the expressions of most are short: DuckDB plans them in half of the time.
        """
        with_json = set()
        for role in self._needed:
            column = self._columns[role]
            is_text = kind_of(role) is Kind.TEXT and column.type == "VARCHAR"
            if is_text and has_json(db, column):
                with_json.add(role)
        return with_json

    def _scale(self, measure: str) -> int:
        """Return the digits behind the point of every amount, quantity or price."""
        scales = [0]
        for role, column in self._columns.items():
            if measure_of(role) == measure:
                scales.append(column.scale)
                scales.append(scale_of(self._texts.get(role, {}).values()))
                scales.append(scale_of(self._sent(role)))
        return min(MOST_SCALE, max(scales))

    def _most_digits(self, db: duckdb.DuckDBPyConnection, measure: str) -> int:
        """Return the digits before the point that a number may have, so that no sum overflows."""
        numbers = Numbers(db, DIGITS - self._scales[measure] - self._reserve)
        for role, column in self._columns.items():
            if measure_of(role) == measure and kind_of(role) is Kind.NUMBER:
                numbers.add_column(column, self._texts.get(role, {}).values())
                numbers.add(self._sent(role))
        return numbers.most_digits()

    def _sent(self, role: str) -> Iterator[Any]:
        """Yield what rows say of a role that no column says."""
        for rows in self._sent_rows.values():
            for row in rows:
                yield row.values.get(role)

    def _write(self, db: duckdb.DuckDBPyConnection) -> None:
        """Create the tables. A number that is too large for its type says nothing."""
        for role, texts in self._texts.items():
            fitting = {text: self.fitted(role, value) for text, value in texts.items()}
            write_texts(db, self._table(role), fitting, self._arrow_type(role))
        for (side, row), sent in self._sent_rows.items():
            types = {role: self._arrow_type(role) for role in self._roles(side, row)}
            rows = [self._fitted(sent_row) for sent_row in sent]
            write_rows(db, self._table(f"{side}.{row}"), row, rows, types)

    def _fitted(self, row: SentRow) -> SentRow:
        """Return a row whose numbers have the types of their roles; too large ones are unread."""
        values = {}
        unread = list(row.unread)
        text = row.text
        for role, value in row.values.items():
            values[role] = self.fitted(role, value)
            is_too_large = values[role] is None and value is not None
            if is_too_large and role in self._needed:
                unread.append(name_of(role))
                text = text or str(value)
        return SentRow(row.key, values, unread, text)

    def _table(self, name: str) -> str:
        return f"{self._prefix}read_{name.replace('.', '_')}"

    def _type(self, role: str) -> str:
        """Return the type of a role: numbers have one, as DuckDB rounds where two meet."""
        scale = self.scale_of(role)
        return SQL.get(kind_of(role), f"DECIMAL({DIGITS},{scale})")

    def _has_decimal(self, roles: Collection[str]) -> bool:
        for role in roles:
            column = self._columns.get(role)
            if column is not None and column.type.startswith("DECIMAL"):
                return True
        return False

    def _in_column(self, role: str) -> Reading:
        """Return how a role is read from its column alone."""
        column = self._columns[role]
        is_sent = f"{column.value} IS NOT NULL"
        if role == "billing.period" and role in self._texts:
            # A bill with a blank period is one without any.
            is_sent = f"trim({column.value}) <> ''"
        if role in self._texts:
            value = f"{_text(role)}.value"
            return Reading(value, f"{is_sent} AND {value} IS NULL")
        if role in self._with_json:
            fails = IS_JSON.format(value=column.value)
            return Reading(f"if({fails}, NULL, {column.value})", f"coalesce({fails}, false)")
        typed = self._typed(role, column)
        if typed is None:
            return Reading(f"CAST(NULL AS {self._type(role)})", is_sent)
        is_number = kind_of(role) is Kind.NUMBER
        if is_number and column.digits > self._digits[measure_of(role)]:
            return Reading(typed, f"{is_sent} AND {typed} IS NULL")
        return Reading(typed)

    def _typed(self, role: str, column: FieldColumn) -> str | None:
        """Return the expression for a value of the role's type; None where its type is another."""
        kind = kind_of(role)
        if kind is not Kind.NUMBER:
            return typed_value(kind, column, self.zone)
        return self._typed_number(role, column) if column.is_number else None

    def _typed_number(self, role: str, column: FieldColumn) -> str:
        """Return the expression for a number; NULL if it is too large for a sum."""
        cast = f"TRY_CAST({column.value} AS {self._type(role)})"
        most = self._digits[measure_of(role)]
        if column.digits <= most:
            return cast
        return f"if({fits_in(column.value, most)}, {cast}, NULL)"


def _digits_added(mapping: RoleMapping) -> int:
    """Return how many digits views add to a number behind the point.

    Those of an amount times a minor unit, and of the product before it is cast.
    """
    units = {mapping.usage.amount_unit, mapping.billing.amount_unit}
    return 2 * MOST_DIGITS if "minor" in units else 0


def _text(role: str) -> str:
    return f"text_{name_of(role)}"

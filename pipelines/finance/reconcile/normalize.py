"""Makes both sides comparable: views `used`, `bills` and `billed` (lines), whatever the fields are.

A role that is unknown is a column of NULL. Rows of both sides with one `key` belong together. The
statements of `sql/` read these views only, and the same with every version of each row
(`partners_history`, `used_history`, `bills_history`).

Here: the expression of each role, by the type that its column has. Not here: the statements in
which they stand (row_statements).
"""

from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import count
from typing import Final

import duckdb
import pyarrow as pa

from pipelines.core.text import is_one_of, quote_identifier
from pipelines.finance.currencies import MOST_DIGITS, code_of, minor_unit_of
from pipelines.finance.mapping import Mapping
from pipelines.finance.reconcile import bill_months, bill_values
from pipelines.finance.reconcile.quarantine import read_quarantine
from pipelines.finance.reconcile.readings import Readings
from pipelines.finance.reconcile.roles import find_roles
from pipelines.finance.reconcile.row_statements import (
    APART,
    BILLS,
    IS_CREDIT,
    IS_PAID,
    LINE_HELD,
    MONTH,
    NO_TABLE,
    PLACE,
    VIEWS,
)
from pipelines.finance.reconcile.sent import table_kind
from pipelines.finance.reconcile.spelled import measure_of

TABLES: Final = """
SELECT tables.table_name FROM duckdb_tables() AS tables WHERE tables.schema_name = 'history'
"""
BY_USAGE: Final = ("usage.id", "billing.line_usage")
QUANTITIES: Final = ("usage.quantity", "billing.line_quantity")
# Roles without which a figure is wrong: a record with one that cannot be read is unreadable.
NEEDED: Final = (
    "id", "partner", "period", "amount", "currency", "quantity", "status", "kind", "line_usage",
    "line_amount", "line_quantity", "line_currency",
)  # fmt: skip
IDENTIFIERS: Final = ("id", "partner", "line_usage")  # a blank one identifies nothing
LINES: Final = ("billing.line_usage", "billing.line_amount", "billing.line_currency")
COUNTER: Final = count()
READINGS: Final = pa.schema(
    {
        "months": pa.string(),
        "role": pa.string(),
        "field": pa.string(),
        "table_name": pa.string(),
        "type": pa.string(),
        "scale": pa.int32(),
        "digits": pa.int32(),
    }
)


class Sides:
    """The statements of views for a mapping. `columns` has the column of each role that it names.

    `unknown` says why other roles have none. The views are of rows of some connections (None: of
    all). How values are read does not depend on these: types hold the values of all. The views read
    tables with a prefix of their own: what values say that their columns do not, which the first
    statement makes, and months of bills, which `create_bill_months` makes.
    """

    def __init__(
        self,
        db: duckdb.DuckDBPyConnection,
        mapping: Mapping,
        connections: Collection[str] | None = None,
    ) -> None:
        self._db = db
        self._connections = connections
        self._mapping = mapping
        self._prefix = f"temp.mapping_{next(COUNTER)}_"
        self._months = f"{self._prefix}bill_months"
        self._has_months = True
        self.columns, self.unknown = find_roles(db, mapping)
        self._tables = {table for (table,) in db.execute(TABLES).fetchall()}

    @property
    def by_usage(self) -> bool:
        """Whether lines of bills are compared with the usage that they name, not whole months."""
        return not self.missing(BY_USAGE)

    def missing(self, needs: Iterable[str]) -> str:
        """Return why roles are unknown; empty if all are known."""
        known = set(self.columns)
        if self._has_months_of_lines():
            known.add("billing.period")
        unknown = dict.fromkeys(role for role in needs if role not in known)
        return "; ".join(self.unknown.get(role, f"{role} is not mapped") for role in unknown)

    @cached_property
    def _readings(self) -> Readings:
        needed = {role for role in self.columns if role.partition(".")[2] in NEEDED}
        needed -= {"billing.id"} if self.by_usage else {"billing.id", *LINES}
        if not needed.issuperset(QUANTITIES):
            needed -= {*QUANTITIES}
        # Digits of an amount times a minor unit, and of the product before it is cast.
        has_minor_units = "minor" in self._units.values()
        reserve = 2 * MOST_DIGITS if has_minor_units else 0
        terms = self._mapping.time_zone, needed, reserve
        return Readings(self._db, self.columns, terms, self._prefix)

    @property
    def _units(self) -> dict[str, str]:
        return {
            "usage": self._mapping.usage.amount_unit,
            "billing": self._mapping.billing.amount_unit,
        }

    def note_readings(self, months: str = "") -> None:
        """Add rows to `reconciliation.readings`; `months`: closed ones that have this mapping.

        Books of an earlier version say the same of their rows only if all these are the same.
        """
        rows = []
        for role, column in self.columns.items():
            row = {
                "months": months or None,
                "role": role,
                "field": column.path,
                "table_name": column.table,
                "type": column.type,
                "scale": self._readings.scale_of(role),
                "digits": self._readings.most_digits_of(role),
            }
            rows.append(row)
        added = self._db.from_arrow(pa.Table.from_pylist(rows, READINGS))
        added.query("added", "INSERT INTO reconciliation.readings BY NAME FROM added")

    def query(self, view: str, *, every_version: bool = False) -> str:
        """Return the statement of a view: of rows that hold now, or of all."""
        rows = VIEWS[view]
        names = {
            **self._expressions(rows.side),
            "key": rows.key if self.by_usage else MONTH,
            "holds": "true" if every_version else "record._valid_to IS NULL",
            "line_holds": LINE_HELD if every_version else "line._valid_to IS NULL",
            "place": PLACE,
        }
        names["bills"] = BILLS.format(**names) if rows.side == "billing" else ""
        return rows.statement.format(**names)

    def create_bill_months(self) -> None:
        """Create the table of months of bills that have no period."""
        terms = {
            **self._expressions("billing"),
            "name": self._months,
            "kind": table_kind(self._months),
            "used": self.query("used", every_version=True),
        }
        self._db.execute(bill_months.CREATE.format(**terms))
        ((bills,),) = self._db.execute(f"SELECT count(*) FROM {self._months}").fetchall()
        self._has_months = bills > 0

    def _expressions(self, side: str) -> dict[str, str]:
        """Return what the statements of a side name: expressions of roles, and tables."""
        readings = self._readings
        names = self._roles(side)
        names["day"] = readings.value(f"{side}.period")
        names["month"] = f"CAST(date_trunc('month', {names['day']}) AS DATE)"
        names["recorded_on"] = readings.day_of(f"{side}.recorded")
        names["issued_on"] = readings.day_of(f"{side}.issued")
        names["has_no_period"] = self._has_no_period(side)
        has_total = "billing.amount" in self.columns
        names["total"] = "coalesce(bills.amount, 0)" if has_total else "bills.amount"
        names |= readings.unread(side, "record")
        if side == "billing":
            self._add_bill_values(names)
        of_line = readings.unread(side, "line")
        if side == "billing" and self.by_usage and "billing.line_currency" in self.columns:
            of_line = bill_values.unread_line(of_line, names["line_currency"])
        names["line_unread"] = of_line["unread"]
        names["line_unread_text"] = of_line["unread_text"]
        names["table"] = self._table(side)
        names["joins"] = readings.joins(side, "record")
        names["lines"] = self._table_of_lines()
        names["line_joins"] = readings.joins(side, "line")
        return names | bill_months.expressions(names, self._months if self._has_months else "")

    def _add_bill_values(self, names: dict[str, str]) -> None:
        """Add what the mapping says of statuses, kinds and accepted fees of bills."""
        names["status_read"] = bill_values.compared(names["status"])
        names["kind_read"] = bill_values.compared(names["kind"])
        names["status_fails"] = f"coalesce(contains({names['unread']}, 'status'), false)"
        names["unseen"] = bill_values.unseen(self._mapping, self.columns, names)
        names["is_credit"] = IS_CREDIT.format(**names)
        names["is_paid"] = IS_PAID.format(**names)
        names["apart"] = APART.format(**names)
        names["bill_fee"] = bill_values.fee(self._mapping, self._values("record"))
        names["line_fee"] = bill_values.fee(self._mapping, self._values("line"))

    def _roles(self, side: str) -> dict[str, str]:
        """Return the expression of each role of a side."""
        names = {}
        for role, value in getattr(self._mapping, side):
            if isinstance(value, tuple):
                names[role] = bill_values.listed(value)
            else:
                names[role] = self._value(side, role)
        if f"{side}.id" not in self.columns:
            names["id"] = "record._key"
        elif side == "billing":
            # Breaks name a bill, also one without an identifier.
            names["id"] = f"coalesce({names['id']}, record._key)"
        return names

    def _values(self, row: str) -> dict[str, str]:
        """Return the expressions of the roles that a row has: record or line."""
        values = {}
        for role, column in self.columns.items():
            if column.row == row:
                values[role] = self._readings.value(role)
        return values

    def _table_of_lines(self) -> str:
        """Return the table of the lines of bills."""
        for role, column in self.columns.items():
            if ".line_" in role:
                return self._table(column.table)
        return NO_TABLE

    def _has_months_of_lines(self) -> bool:
        """Return whether lines say which month each bill is of, and no field is its period."""
        needs = (*BY_USAGE, "usage.period")
        return self._mapping.billing.period is None and self.columns.keys() >= {*needs}

    def _has_no_period(self, side: str) -> str:
        """Return the condition that a record names no period; one that cannot be read is one."""
        period = self.columns.get(f"{side}.period")
        if period is None:
            return "true"
        is_blank = f"nullif(trim(CAST({period.value} AS VARCHAR)), '') IS NULL"
        value = self._readings.value(f"{side}.period")
        unread = self._readings.unread(side, "record")["unread"]
        is_unread = f"coalesce(contains({unread}, 'period'), false)"
        return f"({is_blank} AND {value} IS NULL AND NOT {is_unread})"

    def quarantined(self) -> pa.Table:
        """Return the records in quarantine, with what of their roles can be read."""
        is_chosen = is_one_of("records.connection", self._connections)
        return read_quarantine(self._db, self.columns, self._mapping, self._readings, is_chosen)

    def _table(self, name: str) -> str:
        if name not in self._tables:
            return NO_TABLE
        table = f"history.{quote_identifier(name)}"
        if self._connections is None:
            return table
        return f"(FROM {table} AS rows WHERE {is_one_of('rows._connection', self._connections)})"

    def _value(self, side: str, name: str) -> str:
        """Return the expression of a role. Amounts and prices in minor units become major ones."""
        value = self._readings.value(f"{side}.{name}")
        if name in {"currency", "line_currency"}:
            return code_of(value)
        if name in IDENTIFIERS:
            return f"nullif({value}, '')"
        units = self._units
        if measure_of(name) not in {"amount", "price"} or "minor" not in units.values():
            return value
        if units[side] == "minor":
            is_line = name.startswith("line_")
            currency = "bills.currency" if is_line else self._value(side, "currency")
            value = f"{value} * {minor_unit_of(currency)}"
        # Both sides get the digits that major units of any currency need: where two types meet,
        # DuckDB rounds.
        scale = self._readings.scale_of(f"{side}.{name}") + MOST_DIGITS
        return f"CAST({value} AS DECIMAL(38,{scale}))"

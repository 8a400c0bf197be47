"""Makes both sides comparable: views `used`, `bills` and `billed` (lines), whatever the fields are.

A role that is unknown is a column of NULL. Rows of both sides with one `key` belong together. The
statements of `sql/` read these views only, and the same with every version of each row
(`partners_history`, `used_history`, `bills_history`).

Here: what stands in the gaps of the statements of these views, by the mapping and the columns. Not
here: the statements themselves (row_statements), and how a single value is read (readings).
"""

from collections.abc import Collection, Iterable
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
from pipelines.finance.reconcile.roles import BY_USAGE, find_roles, is_by_usage, is_of_lines
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

TABLES_OF_HISTORY: Final = """
SELECT tables.table_name FROM duckdb_tables() AS tables WHERE tables.schema_name = 'history'
"""
IDENTIFIERS: Final = ("id", "partner", "line_usage")  # a blank one identifies nothing
# Each mapping has tables of its own: those of closed months are read beside the one of today.
NUMBERS_OF_MAPPINGS: Final = count()
NOTED_READINGS: Final = pa.schema(
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
    temporary tables, which are created here: what values say that their columns do not, and months
    of bills.
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
        self.columns, self.unknown = find_roles(db, mapping)
        self.by_usage = is_by_usage(self.columns)
        self._tables = {table for (table,) in db.execute(TABLES_OF_HISTORY).fetchall()}
        prefix = f"temp.mapping_{next(NUMBERS_OF_MAPPINGS)}_"
        self._readings = Readings(db, self.columns, mapping, prefix)
        # There is none while it is created. Its statement reads no month of a bill.
        self._table_of_months = ""
        self._table_of_months = self._create_bill_months(f"{prefix}bill_months")

    def missing(self, needs: Iterable[str]) -> str:
        """Return why roles are unknown; empty if all are known."""
        known = set(self.columns)
        if self._usage_dates_bills():
            known.add("billing.period")
        unknown = dict.fromkeys(role for role in needs if role not in known)
        return "; ".join(self.unknown.get(role, f"{role} is not mapped") for role in unknown)

    def _usage_dates_bills(self) -> bool:
        """Return whether usage says which month each bill is of, and no field is its period."""
        needs = {*BY_USAGE, "usage.period"}
        return self._mapping.billing.period is None and self.columns.keys() >= needs

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
        added = self._db.from_arrow(pa.Table.from_pylist(rows, NOTED_READINGS))
        added.query("added", "INSERT INTO reconciliation.readings BY NAME FROM added")

    def quarantined(self) -> pa.Table:
        """Return the records in quarantine, with what of their roles can be read."""
        is_chosen = is_one_of("records.connection", self._connections)
        return read_quarantine(self._db, self.columns, self._mapping, self._readings, is_chosen)

    def query(self, name: str, *, every_version: bool = False) -> str:
        """Return the statement of a view: of rows that hold now, or of all."""
        view = VIEWS[name]
        gaps = self._gaps(view.side)
        gaps["key"] = view.key if self.by_usage else MONTH
        gaps["place"] = PLACE
        gaps["holds"] = "record._valid_to IS NULL"
        gaps["line_holds"] = "line._valid_to IS NULL"
        if every_version:
            gaps["holds"] = "true"
            gaps["line_holds"] = LINE_HELD
        if view.side == "billing":
            # The statement of lines has that of bills within.
            gaps["bills"] = BILLS.format(**gaps)
        return view.statement.format(**gaps)

    def _create_bill_months(self, name: str) -> str:
        """Create the table of months of bills that have no period; return its name.

        Empty if every bill has a period.
        """
        statement = bill_months.CREATE.format(
            **self._gaps("billing"),
            name=name,
            table_kind=table_kind(name),
            used=self.query("used", every_version=True),
        )
        self._db.execute(statement)
        ((bills,),) = self._db.execute(f"SELECT count(*) FROM {name}").fetchall()
        return name if bills else ""

    def _gaps(self, side: str) -> dict[str, str]:
        """Return what stands in the gaps of a side's statements: tables, joins and expressions."""
        gaps = self._roles(side)
        gaps |= self._readings.unread(side, "record")
        gaps["table"] = self._table(side)
        gaps["joins"] = self._readings.joins(side, "record")
        gaps["day"] = self._readings.value(f"{side}.period")
        gaps["month"] = f"CAST(date_trunc('month', {gaps['day']}) AS DATE)"
        if side == "usage":
            gaps["recorded_on"] = self._readings.day_of("usage.recorded")
        if side == "billing":
            gaps |= self._gaps_of_values(gaps)
            gaps |= self._gaps_of_months(gaps)
            gaps |= self._gaps_of_lines(gaps)
        return gaps

    def _roles(self, side: str) -> dict[str, str]:
        """Return the expression of each role of a side; of values that a mapping lists, the list.

        `partner`, `amount`, `counted_statuses`.
        """
        expressions = {}
        for name, field_or_values in getattr(self._mapping, side):
            if isinstance(field_or_values, tuple):
                expressions[name] = bill_values.listed(field_or_values)
            else:
                expressions[name] = self._value(side, name)
        if f"{side}.id" not in self.columns:
            expressions["id"] = "record._key"
        elif side == "billing":
            # Breaks name a bill, also one without an identifier.
            expressions["id"] = f"coalesce({expressions['id']}, record._key)"
        return expressions

    def _value(self, side: str, name: str) -> str:
        """Return the expression of a role. Amounts and prices in minor units become major ones."""
        role = f"{side}.{name}"
        value = self._readings.value(role)
        if name in {"currency", "line_currency"}:
            return code_of(value)
        if name in IDENTIFIERS:
            return f"nullif({value}, '')"
        units = {
            "usage": self._mapping.usage.amount_unit,
            "billing": self._mapping.billing.amount_unit,
        }
        if measure_of(role) not in {"amount", "price"} or "minor" not in units.values():
            return value
        if units[side] == "minor":
            # A line has the currency of its bill.
            is_line = name.startswith("line_")
            currency = "bills.currency" if is_line else self._value(side, "currency")
            value = f"{value} * {minor_unit_of(currency)}"
        # Both sides get the digits that major units of any currency need: where two types meet,
        # DuckDB rounds.
        scale = self._readings.scale_of(role) + MOST_DIGITS
        return f"CAST({value} AS DECIMAL(38,{scale}))"

    def _gaps_of_values(self, gaps: dict[str, str]) -> dict[str, str]:
        """Return what the mapping says of statuses, kinds and accepted fees of bills.

        `gaps` has the roles of bills, and which of them cannot be read.
        """
        compared = {
            "status_read": bill_values.compared(gaps["status"]),
            "kind_read": bill_values.compared(gaps["kind"]),
            "status_fails": f"coalesce(contains({gaps['unread']}, 'status'), false)",
        }
        gaps = gaps | compared
        is_credit = IS_CREDIT.format(**gaps)
        return {
            **compared,
            "unseen": bill_values.unseen(self._mapping, self.columns, gaps),
            "is_credit": is_credit,
            "is_paid": IS_PAID.format(**gaps),
            "apart": APART.format(**gaps, is_credit=is_credit),
            "bill_fee": bill_values.fee(self._mapping, self._values("record")),
            "line_fee": bill_values.fee(self._mapping, self._values("line")),
        }

    def _values(self, row: str) -> dict[str, str]:
        """Return the expressions of the roles that a row has: record or line."""
        values = {}
        for role, column in self.columns.items():
            if column.row == row:
                values[role] = self._readings.value(role)
        return values

    def _gaps_of_months(self, gaps: dict[str, str]) -> dict[str, str]:
        """Return what says the month of a bill; `gaps` has that of its period."""
        has_no_period = self._has_no_period(gaps)
        return {
            "issued_on": self._readings.day_of("billing.issued"),
            "has_no_period": has_no_period,
            **bill_months.expressions(gaps["month"], has_no_period, self._table_of_months),
        }

    def _has_no_period(self, gaps: dict[str, str]) -> str:
        """Return the condition that a bill names no period; one that cannot be read is one."""
        period = self.columns.get("billing.period")
        if period is None:
            return "true"
        is_blank = f"nullif(trim(CAST({period.value} AS VARCHAR)), '') IS NULL"
        is_unread = f"coalesce(contains({gaps['unread']}, 'period'), false)"
        return f"({is_blank} AND {gaps['day']} IS NULL AND NOT {is_unread})"

    def _gaps_of_lines(self, gaps: dict[str, str]) -> dict[str, str]:
        """Return what the statements of lines read besides their roles, which are in `gaps`."""
        unread = self._readings.unread("billing", "line")
        if self.by_usage and "billing.line_currency" in self.columns:
            unread = bill_values.unread_line(unread, gaps["line_currency"])
        has_total = "billing.amount" in self.columns
        return {
            "lines": self._table_of_lines(),
            "line_joins": self._readings.joins("billing", "line"),
            "line_unread": unread["unread"],
            "line_unread_text": unread["unread_text"],
            "total": "coalesce(bills.amount, 0)" if has_total else "bills.amount",
        }

    def _table_of_lines(self) -> str:
        """Return the table of the lines of bills."""
        for role, column in self.columns.items():
            if is_of_lines(role):
                return self._table(column.table)
        return NO_TABLE

    def _table(self, name: str) -> str:
        """Return a table of `history` as statements read it: the rows of some connections."""
        if name not in self._tables:
            return NO_TABLE
        table = f"history.{quote_identifier(name)}"
        if self._connections is None:
            return table
        return f"(FROM {table} AS rows WHERE {is_one_of('rows._connection', self._connections)})"

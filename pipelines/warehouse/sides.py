"""The two sides in one form: what was used and what was billed, whatever their fields are called.

Temporary views over the tables of records: a column whose role is not mapped is NULL of the right
type, and a list that is not there is an empty one. Not here: which columns the roles are (roles),
what belongs together (matching).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import duckdb

from pipelines.settings import currencies
from pipelines.settings.mapping import Mapping as Given
from pipelines.warehouse.database import exists, fill, quoted
from pipelines.warehouse.roles import LINE, Column, Roles

# Only rows that the newest complete reading has: one that is missing is the rule `disappeared`'s.
THERE = "missing_since IS NULL"
# What every table of records has: where there is none, it is shown empty.
OURS = (
    "NULL::VARCHAR AS _connection, NULL::VARCHAR AS _page, NULL::INTEGER AS _row, "
    "NULL::TIMESTAMPTZ AS missing_since, NULL::TIMESTAMPTZ AS valid_from, "
    "NULL::TIMESTAMPTZ AS valid_to, NULL::VARCHAR AS why"
)


@dataclass(frozen=True)
class Sides:
    """Both sides of one database, each column as SQL."""

    database: duckdb.DuckDBPyConnection
    given: Given
    roles: Roles

    def terms(self, as_of: datetime, unkeyed: Mapping[str, str]) -> None:
        """Say on which terms it is matched: one row.

        `unkeyed` says of sides why they are not evaluated: their records have no primary key.
        """
        own = self.given.tolerance
        self.database.execute(
            "CREATE OR REPLACE TEMP TABLE terms AS SELECT $as_of::TIMESTAMPTZ AS as_of, "
            "$grace::INTEGER AS grace_days, $line::BIGINT AS line_minor, "
            "($percent::DECIMAL(9, 4) * 0.01)::DECIMAL(11, 6) AS line_percent, "
            "$month::BIGINT AS month_minor, $material::BIGINT AS material_minor, $zone AS zone, "
            "$usage::VARCHAR AS unkeyed_usage, $billing::VARCHAR AS unkeyed_billing",
            {
                "as_of": as_of,
                "grace": self.given.grace_days,
                "line": own.line_minor,
                "percent": own.line_percent,
                "month": own.month_minor,
                "material": own.material_minor,
                "zone": self.given.time_zone,
                "usage": unkeyed.get("usage"),
                "billing": unkeyed.get("billing"),
            },
        )

    def units(self) -> None:
        """List the minor unit of every currency that there is."""
        rows = self.database.execute(
            "SELECT currency FROM used UNION SELECT currency FROM bills ORDER BY ALL"
        ).fetchall()
        self.database.execute(
            "CREATE OR REPLACE TEMP TABLE units (currency VARCHAR, unit DECIMAL(38, 4))"
        )
        found = [(code, currencies.unit(code)) for (code,) in rows if code is not None]
        fill(self.database, "units", found)

    def payers(self) -> None:
        """Show the partners."""
        columns = {
            "partner": self._text("partners.id"),
            "name": self._text("partners.name"),
            "external_id": self._text("partners.external_id"),
        }
        self._show("payers", "partners", columns)
        self._versions("payer_versions", "partners", columns)

    def used(self) -> None:
        """Show what was used, a row for each record."""
        moment = self.roles.columns.get("usage.period")
        columns = {
            "id": self._text("usage.id"),
            **self._whose("usage"),
            "day": self._day(moment),
            "plan": self._text("usage.plan"),
            "metric": self._text("usage.metric"),
            "quantity": self._number("usage.quantity"),
            "price": self._number("usage.price"),
            "amount": self._number("usage.amount"),
            "recorded_at": self._time("usage.recorded"),
            "recorded_on": f"{self._local(self._time('usage.recorded'))}::DATE",
            "updated_at": self._time("usage.updated"),
        }
        columns["key"] = self._key(columns | {"usage": columns["id"]})
        self._show("used", "usage", columns)
        self._versions("used_versions", "usage", columns)

    def bills(self) -> None:
        """Show what was billed, a row for each bill."""
        columns = {
            "bill": self._text("billing.id"),
            "number": self._text("billing.number"),
            **self._whose("billing"),
            "amount": self._number("billing.amount"),
            "issued_at": self._time("billing.issued"),
            "updated_at": self._time("billing.updated"),
            "kind": self._text("billing.kind"),
            "content": self._content("billing"),
        }
        self._show("bills", "billing", columns)
        self._versions("bill_versions", "billing", columns)

    def billed(self) -> None:
        """Show what was billed, a row for each line; a bill without lines is one line."""
        nothing, lined = "NULL::VARCHAR", self.roles.lines and self.roles.has("billing.id")
        columns = {"connection": "b.connection", "id": "b.bill", "bill": "b.bill"}
        columns |= {name: f"b.{name}" for name in ("partner", "organization", "currency", "month")}
        columns |= {
            "plan": self._text("billing.line_plan"),
            "quantity": self._number("billing.line_quantity"),
            "price": self._number("billing.line_price"),
            "amount": "b.amount",
            "reference": self._text("billing.line_usage"),
        }
        source = "bills AS b"
        if lined:
            columns |= {
                "id": "b.bill || '#' || l.idx",
                "amount": self._number("billing.line_amount"),
            }
            own = quoted("l", self.roles.columns["billing.id"].name)
            source += (
                f" JOIN current.{quoted(str(self.roles.lines))} AS l "
                f"ON l._connection = b.connection AND {own}::VARCHAR = b.bill"
            )
        last = ("kind", "issued_at", "updated_at", "page", "row")
        columns |= {name: f"b.{name}" for name in last}
        columns["key"] = self._key(columns | {"usage": columns["reference"] or nothing})
        self._view("billed", columns, source)

    def _show(self, name: str, side: str, columns: Mapping[str, str]) -> None:
        """Show the records of a side that there are now."""
        self._over(name, ("current", self.roles.streams[side]), columns, f" WHERE {THERE}")

    def _versions(self, name: str, side: str, columns: Mapping[str, str]) -> None:
        """Show every version of a side's records, those that are missing now too."""
        ours = {name: name for name in ("valid_from", "valid_to", "why", "missing_since")}
        ours |= {
            name: f"date_trunc('month', {self._local(moment)})::DATE"
            for name, moment in (("from_month", "valid_from"), ("to_month", "valid_to"))
        }
        self._over(name, ("history", self.roles.streams[side]), dict(columns) | ours)

    def _over(
        self, name: str, table: tuple[str, str], columns: Mapping[str, str], where: str = ""
    ) -> None:
        shown = {"connection": "_connection", **columns, "page": "_page", "row": "_row"}
        source = f"{quoted(*table)}{where}"
        if not exists(self.database, *table):
            source = f"(SELECT {OURS} WHERE false)"
        self._view(name, shown, source)

    def _view(self, name: str, columns: Mapping[str, str], source: str) -> None:
        listed = ", ".join(f"{sql} AS {column}" for column, sql in columns.items())
        self.database.execute(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT {listed} FROM {source}"
        )

    def _whose(self, side: str) -> dict[str, str]:
        """Return whose a record is: partner, organization, currency and month."""
        day = self._day(self.roles.columns.get(f"{side}.period"))
        return {
            "partner": self._text(f"{side}.partner"),
            "organization": self._text(f"{side}.organization"),
            "currency": self._text(f"{side}.currency"),
            "month": f"date_trunc('month', {day})::DATE",
        }

    def _key(self, columns: Mapping[str, str]) -> str:
        """Return what a record is matched by; NULL where a part of it is unknown."""
        parts = [f"({columns[key]})::VARCHAR" for key in self.given.keys]
        return "(" + " || '|' || ".join(parts) + ")::VARCHAR"

    def _text(self, role: str) -> str:
        return f"{self._named(role)}::VARCHAR"

    def _local(self, moment: str) -> str:
        """Return a moment in the mapping's time zone; UTC takes a quarter of the time so."""
        if self.given.time_zone == "UTC":
            return f"make_timestamp(epoch_us({moment}))"
        return f"({moment} AT TIME ZONE '{self.given.time_zone}')"

    def _content(self, side: str) -> str:
        """Return what tells records apart that differ in more than their key."""
        own = self.roles.columns.get(f"{side}.id")
        columns = self.roles.data[side]
        others = [quoted(each) for each in columns if own is None or each != own.name]
        return f"hash({', '.join(others)})" if others else "NULL::UBIGINT"

    def _number(self, role: str) -> str:
        """Return a number as it is, whatever its scale: nothing is rounded on the way."""
        return f"{self._named(role)}::{self.roles.kind(role)}"

    def _time(self, role: str) -> str:
        return f"try_cast({self._named(role)} AS TIMESTAMPTZ)"

    def _named(self, role: str) -> str:
        column = self.roles.columns.get(role)
        if column is None:
            return "NULL"
        return quoted("l", column.name) if LINE in role else quoted(column.name)

    def _day(self, column: Column | None) -> str:
        """Return the day of a date or time, in the mapping's time zone; a month is its first."""
        if column is None:
            return "NULL::DATE"
        name = quoted(column.name)
        if column.type == "TIMESTAMP WITH TIME ZONE":
            return f"{self._local(name)}::DATE"
        text = f"{name}::VARCHAR"
        return f"coalesce(try_cast({text} AS DATE), try_cast({text} || '-01' AS DATE))"

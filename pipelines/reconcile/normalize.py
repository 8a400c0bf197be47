"""Makes both sides comparable: views `used`, `bills` and `billed` (lines), whatever the fields are.

A role that is unknown is a column of NULL. Rows of both sides with one `key` belong together. The
statements of `sql/` read these views only, and the same with every version of each row
(`used_history`, `bills_history`).
"""

from collections.abc import Collection, Iterable
from typing import Final

import duckdb

from pipelines.config.mapping import Mapping
from pipelines.core.text import quote_identifier
from pipelines.reconcile.roles import Column, Roles

PLACE: Final = """
    history._key, history._scan_id, history._page, history._row,
    history._valid_from, history._valid_to, history._end_reason
"""
PARTNERS: Final = f"""
SELECT
    history._connection AS connection, {{id}} AS partner, {{name}} AS name,
    {{external_id}} AS external_id, {PLACE}
FROM {{table}} AS history
WHERE {{holds}}
"""
USED: Final = f"""
SELECT
    history._connection AS connection, {{id}} AS id, {{partner}} AS partner,
    {{organization}} AS organization, {{month}} AS month, {{day}} AS day, {{currency}} AS currency,
    {{plan}} AS plan, {{metric}} AS metric, {{quantity}} AS quantity, {{price}} AS price,
    {{amount}} AS amount, {{recorded}} AS recorded_at, {{updated}} AS updated_at, {{key}} AS key,
    {PLACE}
FROM {{table}} AS history
WHERE {{holds}}
"""
BILLS: Final = f"""
SELECT
    history._connection AS connection, {{id}} AS bill, {{number}} AS number, {{partner}} AS partner,
    {{organization}} AS organization, {{month}} AS month, {{currency}} AS currency,
    {{issued}} AS issued_at, {{updated}} AS updated_at, {{apart}} AS apart,
    CASE {{apart}} WHEN 'credit note' THEN -abs({{amount}}) ELSE {{amount}} END AS amount, {PLACE}
FROM {{table}} AS history
WHERE {{holds}}
"""
# What the lines of a bill do not add up to is a line of its own, so that all of them do.
BILLED: Final = """
WITH bills AS NOT MATERIALIZED ({bills}), lines AS NOT MATERIALIZED ({lines}), sums AS (
    SELECT lines.connection, lines._key, lines._valid_from, sum(lines.amount) AS amount
    FROM lines
    GROUP BY lines.connection, lines._key, lines._valid_from
), rests AS (
    SELECT
        bills.* REPLACE (bills.amount - coalesce(CASE bills.apart WHEN 'credit note'
            THEN -abs(sums.amount) ELSE sums.amount END, 0) AS amount),
        sums._key IS NOT NULL AS has_lines
    FROM bills
    LEFT JOIN sums ON sums._key = bills._key AND sums.connection = bills.connection
        AND sums._valid_from = bills._valid_from
), parts AS (
    SELECT bills.* EXCLUDE (amount), lines.* EXCLUDE (connection, _key, _valid_from, amount),
        CASE bills.apart WHEN 'credit note' THEN -abs(lines.amount) ELSE lines.amount END AS amount
    FROM lines
    JOIN bills ON bills._key = lines._key AND bills.connection = lines.connection
        AND bills._valid_from = lines._valid_from
    UNION ALL BY NAME
    SELECT rests.* EXCLUDE (has_lines), 'rest' AS line, NULL::VARCHAR AS reference
    FROM rests
    WHERE rests.amount <> 0 OR NOT rests.has_lines
)
SELECT
    parts.* EXCLUDE (line, quantity), concat_ws('#', parts.bill, parts.line) AS id,
    CASE parts.apart WHEN 'credit note' THEN -abs(parts.quantity) ELSE parts.quantity END
        AS quantity,
    {key} AS key
FROM parts
"""
LINES: Final = """
    SELECT
        line._connection AS connection, line._parent_key AS _key, line._valid_from,
        line._index::VARCHAR AS line, {line_usage} AS reference, {line_plan} AS plan,
        {line_quantity} AS quantity, {line_price} AS price, {line_amount} AS amount
    FROM history.{table} AS line
    WHERE {holds}
"""
NO_LINES: Final = """
    SELECT
        NULL::VARCHAR AS connection, NULL::VARCHAR AS _key, NULL::TIMESTAMPTZ AS _valid_from,
        NULL::VARCHAR AS line, NULL::VARCHAR AS reference, NULL::VARCHAR AS plan,
        NULL::{quantity} AS quantity, NULL::{price} AS price, NULL::{amount} AS amount
    WHERE false
"""
# Of a list that was never loaded.
NO_TABLE: Final = """(
    SELECT
        NULL::VARCHAR AS _connection, NULL::VARCHAR AS _key, NULL::VARCHAR AS _scan_id,
        NULL::INTEGER AS _page, NULL::INTEGER AS _row, NULL::TIMESTAMPTZ AS _valid_from,
        NULL::TIMESTAMPTZ AS _valid_to, NULL::VARCHAR AS _end_reason
    WHERE false
)"""
TABLES: Final = """
SELECT tables.table_name FROM duckdb_tables() AS tables
WHERE tables.database_name = current_database() AND tables.schema_name = 'history'
"""
TIMES: Final = {"recorded", "updated", "issued"}
BY_USAGE: Final = ("usage.id", "billing.line_usage")


class Sides:
    """The statements of both sides for a mapping; `tables` are those of history."""

    def __init__(self, mapping: Mapping, roles: Roles, tables: Collection[str]) -> None:
        self._mapping, self._roles, self._tables = mapping, roles, tables
        self._by_usage = not roles.missing(BY_USAGE)

    def partners(self, holds: str) -> str:
        """Return the statement for partners that fulfil a condition."""
        return self._filled(PARTNERS, "partners", holds)

    def used(self, holds: str) -> str:
        """Return the statement for records of usage."""
        return self._filled(USED, "usage", holds)

    def bills(self, holds: str) -> str:
        """Return the statement for bills."""
        return self._filled(BILLS, "billing", holds)

    def billed(self, holds: str) -> str:
        """Return the statement for lines of bills."""
        month = "concat_ws('|', parts.partner, parts.month, parts.currency)"
        key = "parts.reference" if self._by_usage else month
        return BILLED.format(bills=self.bills(holds), lines=self._lines(holds), key=key)

    def _filled(self, query: str, side: str, holds: str) -> str:
        names = list(type(getattr(self._mapping, side)).model_fields)
        columns = {name: self._column(side, name) for name in names}
        columns["id"] = self._column(side, "id", "history._key")
        columns["day"] = self._day(self._roles.columns.get(f"{side}.period"))
        columns["month"] = f"CAST(date_trunc('month', {columns['day']}) AS DATE)"
        group = ", ".join(columns.get(name, "NULL") for name in ("partner", "month", "currency"))
        record = f"coalesce({columns['id']}, concat('?', history._key))"  # an id may be missing
        return query.format(
            **columns,
            table=f"history.{side}" if side in self._tables else NO_TABLE,
            holds=holds.format("history"),
            apart=self._apart(),
            key=record if self._by_usage else f"concat_ws('|', {group})",
        )

    def _column(self, side: str, name: str, default: str = "") -> str:
        """Return the expression of a role's column."""
        column = self._roles.columns.get(f"{side}.{name}")
        row = "line" if name.startswith("line_") else "history"
        value = f"{row}.{quote_identifier(column.name)}" if column else "NULL"
        if not column and default:
            return default
        if name.endswith(("quantity", "price", "amount")):
            return f"CAST({value} AS {self._roles.decimal(name.removeprefix('line_'))})"
        return f"TRY_CAST({value} AS {'TIMESTAMPTZ' if name in TIMES else 'VARCHAR'})"

    def _day(self, period: Column | None) -> str:
        """Return the expression of the date in a column: a date, a time or a month."""
        if period is None:
            return "NULL::DATE"
        value = f"history.{quote_identifier(period.name)}"
        if period.type.startswith("TIMESTAMP") and self._mapping.time_zone == "UTC":
            return f"CAST(make_timestamp(epoch_us({value})) AS DATE)"  # a sixth of the time
        if period.type.startswith("TIMESTAMP"):
            return f"CAST({value} AT TIME ZONE '{self._mapping.time_zone}' AS DATE)"
        month = f"TRY_CAST({value} || '-01' AS DATE)"
        return value if period.type == "DATE" else f"coalesce(TRY_CAST({value} AS DATE), {month})"

    def _apart(self) -> str:
        """Return the expression that says why a bill does not count; NULL: it counts."""
        roles, conditions = self._mapping.billing, list[str]()
        if roles.credit_kinds:
            kind = self._column("billing", "kind")
            conditions.append(f"WHEN {kind} IN ({_texts(roles.credit_kinds)}) THEN 'credit note'")
        if roles.counted_statuses:
            status = f"coalesce({self._column('billing', 'status')}, 'no status')"
            counted = _texts(roles.counted_statuses)
            conditions.append(f"WHEN {status} NOT IN ({counted}) THEN {status}")
        return f"CASE {' '.join(conditions)} END" if conditions else "NULL::VARCHAR"

    def _lines(self, holds: str) -> str:
        tables = {
            column.table for role, column in self._roles.columns.items() if ".line_" in role
        } - {"billing"}
        names = ("line_usage", "line_plan", "line_quantity", "line_price", "line_amount")
        values = {name: self._column("billing", name) for name in names}
        if len(tables) == 1:
            table = quote_identifier(*tables)
            return LINES.format(table=table, holds=holds.format("line"), **values)
        measures = {name: self._roles.decimal(name) for name in ("quantity", "price", "amount")}
        return NO_LINES.format(**measures)


def create_views(db: duckdb.DuckDBPyConnection, mapping: Mapping, roles: Roles) -> None:
    """Create views of both sides, and temporary ones of all versions."""
    sides = Sides(mapping, roles, {table for (table,) in db.execute(TABLES).fetchall()})
    for of_side in (sides.partners, sides.used, sides.bills, sides.billed):
        name = of_side.__name__
        query = of_side("{}._valid_to IS NULL")
        db.execute(f"CREATE OR REPLACE VIEW reconciliation.{name} AS {query}")
        db.execute(f"CREATE OR REPLACE TEMP VIEW {name}_history AS {of_side('true')}")


def _texts(values: Iterable[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)

"""Makes both sides comparable: views `reconciliation.used` and `billed`, whatever the fields are.

A role that is unknown is a column of NULL. The statements of `sql/` read these views only, and the
same with every version of each row: `used_history`, `billed_history`.
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
    {{amount}} AS amount, {{recorded}} AS recorded_at, {{updated}} AS updated_at, {PLACE}
FROM {{table}} AS history
WHERE {{holds}}
"""
# What the lines of a bill do not add up to is a line of its own, so that all of them do.
BILLED: Final = f"""
WITH bills AS (
    SELECT
        history._connection AS connection, {{id}} AS bill, {{number}} AS number,
        {{partner}} AS partner, {{organization}} AS organization, {{month}} AS month,
        {{currency}} AS currency, {{issued}} AS issued_at, {{updated}} AS updated_at,
        {{apart}} AS apart, {{amount}} AS total, {PLACE}
    FROM {{table}} AS history
    WHERE {{holds}}
), lines AS ({{lines}}), parts AS (
    FROM lines
    UNION ALL
    SELECT
        bills.connection, bills._key, bills._valid_from, 'rest', NULL, NULL, NULL, NULL,
        any_value(bills.total) - coalesce(sum(lines.amount), 0)
    FROM bills
    LEFT JOIN lines ON lines._key = bills._key AND lines.connection = bills.connection
        AND lines._valid_from = bills._valid_from
    GROUP BY bills.connection, bills._key, bills._valid_from
    HAVING count(lines._key) = 0 OR any_value(bills.total) <> coalesce(sum(lines.amount), 0)
)
SELECT
    bills.connection, concat_ws('#', bills.bill, parts.line) AS id, bills.bill, bills.number,
    bills.partner, bills.organization, bills.month, bills.currency, bills.issued_at,
    bills.updated_at, bills.apart, parts.reference, parts.plan, parts.price,
    CASE bills.apart WHEN 'credit note' THEN -abs(parts.quantity) ELSE parts.quantity END
        AS quantity,
    CASE bills.apart WHEN 'credit note' THEN -abs(parts.amount) ELSE parts.amount END AS amount,
    bills.* EXCLUDE (
        connection, bill, number, partner, organization, month, currency, issued_at, updated_at,
        apart, total
    )
FROM parts
JOIN bills ON bills._key = parts._key AND bills.connection = parts.connection
    AND bills._valid_from = parts._valid_from
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
SIDES: Final = {"partners": "partners", "used": "usage", "billed": "billing"}
TIMES: Final = {"recorded", "updated", "issued"}
QUERIES: Final = {"partners": PARTNERS, "used": USED, "billed": BILLED}


class Sides:
    """The statements of both sides for a mapping; `tables` are those of history."""

    def __init__(self, mapping: Mapping, roles: Roles, tables: Collection[str]) -> None:
        self._mapping, self._roles, self._tables = mapping, roles, tables

    def query(self, view: str, *, history: bool = False) -> str:
        """Return the statement of a view: the rows that hold now, or all versions of them."""
        side = SIDES[view]
        names = list(type(getattr(self._mapping, side)).model_fields)
        columns = {name: self._column(side, name) for name in names}
        columns["id"] = self._column(side, "id", "history._key")
        period = self._roles.columns.get(f"{side}.period")
        return QUERIES[view].format(
            **columns,
            table=f"history.{side}" if side in self._tables else NO_TABLE,
            holds="true" if history else "history._valid_to IS NULL",
            day=self._day(period),
            month=f"CAST(date_trunc('month', {self._day(period)}) AS DATE)",
            apart=self._apart(),
            lines=self._lines(history=history),
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

    def _lines(self, *, history: bool) -> str:
        tables = {
            column.table for role, column in self._roles.columns.items() if ".line_" in role
        } - {"billing"}
        names = ("line_usage", "line_plan", "line_quantity", "line_price", "line_amount")
        values = {name: self._column("billing", name) for name in names}
        if len(tables) == 1:
            holds = "true" if history else "line._valid_to IS NULL"
            return LINES.format(table=quote_identifier(*tables), holds=holds, **values)
        measures = {name: self._roles.decimal(name) for name in ("quantity", "price", "amount")}
        return NO_LINES.format(**measures)


def create_views(db: duckdb.DuckDBPyConnection, mapping: Mapping, roles: Roles) -> None:
    """Create views `partners`, `used` and `billed`, and temporary ones of all versions."""
    tables = {table for (table,) in db.execute(TABLES).fetchall()}
    sides = Sides(mapping, roles, tables)
    for name in QUERIES:
        db.execute(f"CREATE OR REPLACE VIEW reconciliation.{name} AS {sides.query(name)}")
        query = sides.query(name, history=True)
        db.execute(f"CREATE OR REPLACE TEMP VIEW {name}_history AS {query}")


def _texts(values: Iterable[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)

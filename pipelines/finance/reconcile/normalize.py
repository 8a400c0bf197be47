"""Makes both sides comparable: views `used`, `bills` and `billed` (lines), whatever the fields are.

A role that is unknown is a column of NULL. Rows of both sides with one `key` belong together. The
statements of `sql/` read these views only, and the same with every version of each row
(`partners_history`, `used_history`, `bills_history`).
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import count
from typing import Final

import duckdb
import pyarrow as pa

from pipelines.core.text import quote_identifier
from pipelines.finance.currencies import MOST_DIGITS, SPACES, code_of, lower_trimmed, minor_unit_of
from pipelines.finance.mapping import NO_STATUS, ORDINARY_WORDS, UNCOUNTED_WORDS, Mapping
from pipelines.finance.reconcile import bill_months
from pipelines.finance.reconcile.quarantine import read_quarantine
from pipelines.finance.reconcile.readings import Readings
from pipelines.finance.reconcile.roles import find_roles
from pipelines.finance.reconcile.sent import table_kind

TABLES: Final = """
SELECT tables.table_name FROM duckdb_tables() AS tables WHERE tables.schema_name = 'history'
"""
PLACE: Final = """
    record._key, record._scan_id, record._page, record._row,
    record._valid_from, record._valid_to, record._end_reason
"""
PARTNERS: Final = f"""
SELECT
    record._connection AS connection, {{id}} AS partner, {{name}} AS name,
    {{external_id}} AS external_id, {{unread}} AS unread, {{unread_text}} AS unread_text,
    {PLACE}
FROM {{table}} AS record
{{joins}}
WHERE {{holds}}
"""
USED: Final = f"""
WITH parts AS NOT MATERIALIZED (
    SELECT
        record._connection AS connection, {{id}} AS id, {{partner}} AS partner,
        {{organization}} AS organization, {{month}} AS month, {{day}} AS day,
        {{currency}} AS currency, {{plan}} AS plan, {{metric}} AS metric,
        {{quantity}} AS quantity, {{price}} AS price, {{amount}} AS amount,
        {{recorded}} AS recorded_at, {{recorded_on}} AS recorded_on, {{updated}} AS updated_at,
        {{unread}} AS unread, {{unread_text}} AS unread_text, {PLACE}
    FROM {{table}} AS record
    {{joins}}
    WHERE {{holds}}
)
SELECT parts.*, {{key}} AS key
FROM parts
"""
# Why a bill is set apart; NULL: it counts, or its status cannot be read. A void credit note is no
# credit, and a status of that name does not make one.
# In full: where a record has a field of that name, its alias would be that field.
IS_CREDIT: Final = "coalesce(list_contains({credit_kinds}, {kind_read}), false)"
APART: Final = f"""CASE
        WHEN {{counted_statuses}} <> [] AND NOT {{status_fails}}
            AND NOT list_contains({{counted_statuses}}, coalesce({{status_read}}, 'no status'))
            THEN regexp_replace(
                coalesce({{status}}, 'no status'), '^credit note$', 'status credit note'
            )
        WHEN {IS_CREDIT} THEN 'credit note' END"""
BILLS: Final = f"""
SELECT
    record._connection AS connection, {{id}} AS bill, {{number}} AS number, {{partner}} AS partner,
    {{organization}} AS organization, {{bill_month}} AS month,
    {{bill_month_from}} AS month_from, {{currency}} AS currency,
    {{issued}} AS issued_at, {{updated}} AS updated_at,
    {IS_CREDIT} AS is_credit, {APART} AS apart, {{unseen}} AS unseen,
    {{bill_known_from}} AS known_from,
    if({IS_CREDIT}, -abs({{amount}}), {{amount}}) AS amount,
    {{unread}} AS unread, {{unread_text}} AS unread_text, {PLACE}
FROM {{table}} AS record
{{joins}} {{of_bill}}
WHERE {{holds}}
"""
# What the lines of a bill do not add up to is a line of its own, so that all of them do. A bill
# with lines and without a total counts nothing, as in `bills`.
BILLED: Final = f"""
WITH bills AS NOT MATERIALIZED ({BILLS}), lines AS NOT MATERIALIZED (
    SELECT
        bills.* EXCLUDE (amount, unread, unread_text) {{line_dates}},
        line._index::VARCHAR AS line, {{line_usage}} AS reference,
        nullif(concat_ws(',', bills.unread, {{line_unread}}), '') AS unread,
        coalesce({{line_unread_text}}, bills.unread_text) AS unread_text,
        {{line_plan}} AS plan, {{line_price}} AS price,
        if(bills.is_credit, -abs({{line_quantity}}), {{line_quantity}}) AS quantity,
        if(bills.is_credit, -abs({{line_amount}}), {{line_amount}}) AS amount
    FROM {{lines}} AS line
    {{line_joins}}
    JOIN bills ON bills._key = line._parent_key AND bills.connection = line._connection
    {{of_line}}
    WHERE line._valid_to IS NULL
), sums AS (
    SELECT lines.connection, lines._key, sum(lines.amount) AS amount
    FROM lines
    GROUP BY ALL
), parts AS (
    SELECT lines.*
    FROM lines
    UNION ALL BY NAME
    SELECT
        bills.* REPLACE (
            if(sums._key IS NULL, bills.amount, {{total}} - coalesce(sums.amount, 0)) AS amount
        ),
        'rest' AS line, NULL::VARCHAR AS reference
    FROM bills
    LEFT JOIN sums USING (connection, _key)
    WHERE sums._key IS NULL OR {{total}} <> coalesce(sums.amount, 0)
)
SELECT parts.* EXCLUDE (line), concat(parts.bill, '#', parts.line) AS id, {{key}} AS key
FROM parts
"""
# Of a list that was never loaded, or of lines that no bill has.
NO_TABLE: Final = """(
    SELECT
        NULL::VARCHAR AS _connection, NULL::VARCHAR AS _key, NULL::VARCHAR AS _parent_key,
        NULL::BIGINT AS _index, NULL::VARCHAR AS _scan_id, NULL::INTEGER AS _page,
        NULL::INTEGER AS _row, NULL::TIMESTAMPTZ AS _valid_from, NULL::TIMESTAMPTZ AS _valid_to,
        NULL::VARCHAR AS _end_reason
    WHERE false
)"""
BY_USAGE: Final = ("usage.id", "billing.line_usage")
QUANTITIES: Final = ("usage.quantity", "billing.line_quantity")
# Roles without which a figure is wrong: a record with one that cannot be read is unreadable.
NEEDED: Final = (
    "id", "partner", "period", "amount", "currency", "quantity", "status", "kind", "line_usage",
    "line_amount", "line_quantity",
)  # fmt: skip
LINES: Final = ("billing.line_usage", "billing.line_amount")
COUNTER: Final = count()
MONTH: Final = "concat_ws('|', parts.partner, parts.month, parts.currency)"
VIEWS: Final = {  # of which list, how, and what a row shares with those of the other side
    "partners": ("partners", PARTNERS, ""),
    "used": ("usage", USED, "coalesce(parts.id, concat('?', parts._key))"),  # an id may be missing
    "bills": ("billing", BILLS, ""),
    "billed": ("billing", BILLED, "parts.reference"),
}


class Sides:
    """The statements of views for a mapping. `columns` has the column of each role that it names.

    `unknown` says why other roles have none. The views read tables whose names begin with `prefix`:
    what values say that their columns do not, which the first statement makes, and months of bills,
    which `create_bill_months` makes.
    """

    def __init__(self, db: duckdb.DuckDBPyConnection, mapping: Mapping, prefix: str = "") -> None:
        self._db, self._mapping = db, mapping
        self._prefix = prefix or f"temp.mapping_{next(COUNTER)}_"
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
        known = self.columns.keys() | ({"billing.period"} if self._has_months_of_lines() else ())
        unknown = dict.fromkeys(role for role in needs if role not in known)
        return "; ".join(self.unknown.get(role, f"{role} is not mapped") for role in unknown)

    @cached_property
    def _readings(self) -> Readings:
        needed = {role for role in self.columns if role.partition(".")[2] in NEEDED}
        needed -= {"billing.id"} if self.by_usage else {"billing.id", *LINES}
        if not needed.issuperset(QUANTITIES):
            needed -= {*QUANTITIES}
        # Digits of an amount times a minor unit, and of the product before it is cast.
        reserve = 2 * MOST_DIGITS if "minor" in self._units.values() else 0
        terms = self._mapping.time_zone, needed, reserve
        return Readings(self._db, self.columns, terms, self._prefix)

    @property
    def _units(self) -> dict[str, str]:
        return {each: getattr(self._mapping, each).amount_unit for each in ("usage", "billing")}

    def query(self, view: str, *, every_version: bool = False) -> str:
        """Return the statement of a view: of rows that hold now, or (not `billed`) of all."""
        side, query, reference = VIEWS[view]
        return query.format(
            **self._expressions(side),
            key=reference if self.by_usage else MONTH,
            holds="true" if every_version else "record._valid_to IS NULL",
        )

    def create_bill_months(self) -> None:
        """Create the table of months of bills that have no period."""
        used = self.query("used", every_version=True)
        terms = {
            **self._expressions("billing"),
            "name": self._months,
            "kind": table_kind(self._months),
        }
        self._db.execute(bill_months.CREATE.format(**terms, used=used))
        count = self._db.execute(f"SELECT count(*) FROM {self._months}").fetchall()
        self._has_months = count != [(0,)]

    def _expressions(self, side: str) -> dict[str, str]:
        """Return what the statements of a side name: expressions of roles, and tables."""
        readings = self._readings
        columns = {
            role: _texts(value) if isinstance(value, tuple) else self._value(side, role)
            for role, value in getattr(self._mapping, side)
        }
        columns["day"] = readings.value(f"{side}.period")
        columns["recorded_on"] = readings.day_of(f"{side}.recorded")
        columns["month"] = f"CAST(date_trunc('month', {columns['day']}) AS DATE)"
        has_total = "billing.amount" in self.columns
        columns["total"] = "coalesce(bills.amount, 0)" if has_total else "bills.amount"
        columns["issued_on"] = readings.day_of(f"{side}.issued")
        columns["has_no_period"] = self._has_no_period(side)
        if f"{side}.id" not in self.columns:
            columns["id"] = "record._key"
        elif side == "billing":
            columns["id"] = f"coalesce({columns['id']}, record._key)"  # to name it in breaks
        for name in ("status", "kind"):
            columns[f"{name}_read"] = f"lower(trim({columns.get(name)}, '{SPACES}'))"
        of_record = readings.unread(side, "record")
        columns["status_fails"] = f"coalesce(contains({of_record['unread']}, 'status'), false)"
        columns["unseen"] = self._unseen(columns) if side == "billing" else "NULL"
        lines = (each.table for role, each in self.columns.items() if ".line_" in role)
        tables = {"table": self._table(side), "lines": self._table(next(lines, ""))}
        of_line = readings.unread(side, "line")
        tables |= {"joins": readings.joins(side, "record")}
        tables |= {"line_joins": readings.joins(side, "line")}
        tables |= {f"line_{name}": each for name, each in of_line.items()}
        columns |= bill_months.expressions(columns, self._months if self._has_months else "")
        return columns | tables | of_record

    def _unseen(self, columns: dict[str, str]) -> str:
        """Return the expression of the status or kind that the mapping has not seen, else NULL."""
        roles, found = self._mapping.billing, list[str]()
        if "billing.status" in self.columns:
            status = f"coalesce({columns['status_read']}, '{NO_STATUS}')"
            others = f"regexp_matches({status}, '{UNCOUNTED_WORDS}')"
            if roles.other_statuses is not None:
                others = f"list_contains({columns['other_statuses']}, {status})"
            is_counted = f"list_contains({columns['counted_statuses']}, {status})"
            if not roles.counted_statuses and roles.other_statuses is None:  # all of them count
                is_counted, others = f"NOT {others}", "false"
            text = f"coalesce('status ' || {columns['status']}, '{NO_STATUS}')"
            is_known = f"{columns['status_fails']} OR {is_counted} OR {others}"
            found.append(f"WHEN NOT ({is_known}) THEN {text}")
        if "billing.kind" in self.columns:
            kind = columns["kind_read"]
            others = f"regexp_matches({kind}, '{ORDINARY_WORDS}')"
            if roles.other_kinds is not None:
                others = f"list_contains({columns['other_kinds']}, {kind})"
            is_credit = f"list_contains({columns['credit_kinds']}, {kind})"
            text = f"concat('kind ', {columns['kind']})"
            found.append(f"WHEN NOT ({is_credit} OR {others}) THEN {text}")
        return f"CASE {' '.join(found)} END" if found else "NULL::VARCHAR"

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
        unread, value = self._readings.unread(side, "record")["unread"], f"{side}.period"
        return (
            f"({is_blank} AND {self._readings.value(value)} IS NULL "
            f"AND NOT coalesce(contains({unread}, 'period'), false))"
        )

    def quarantined(self) -> pa.Table:
        """Return the records in quarantine, with what of their roles can be read."""
        return read_quarantine(self._db, self.columns, self._mapping, self._readings)

    def _table(self, name: str) -> str:
        return f"history.{quote_identifier(name)}" if name in self._tables else NO_TABLE

    def _value(self, side: str, name: str) -> str:
        """Return the expression of a role. Amounts and prices in minor units become major ones."""
        value, measure = self._readings.value(f"{side}.{name}"), name.removeprefix("line_")
        if name == "currency":
            return code_of(value)
        units = self._units
        if measure not in {"amount", "price"} or "minor" not in units.values():
            return value
        if units[side] == "minor":
            is_line = name.startswith("line_")
            currency = "bills.currency" if is_line else self._value(side, "currency")
            value = f"{value} * {minor_unit_of(currency)}"
        scale = self._readings.scale_of(f"{side}.{name}") + MOST_DIGITS
        return f"CAST({value} AS DECIMAL(38,{scale}))"


def _texts(values: Iterable[str]) -> str:
    """Return values of a status or kind as a list, which are compared without case and spaces."""
    texts = ("'" + lower_trimmed(value).replace("'", "''") + "'" for value in values)
    return f"[{', '.join(texts)}]::VARCHAR[]"

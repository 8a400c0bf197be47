"""What was used beside what was billed: both in one form, and what of them belongs together.

Temporary tables and views of a connection, on the work database as on a published file: `used`,
`billed` (a line each), `bills`, `payers`, `terms`, `units`, `used_versions`, `bill_versions`,
`payer_versions` (each that there ever was), `used_groups`, and of the keys that do not plainly
agree `matched`, `odd_used` and `odd_billed`. Not here: what is wrong with them (the rules of
reconciliation), the columns of the two sides (sides).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import duckdb

from pipelines.settings.mapping import Mapping as Given
from pipelines.warehouse import roles
from pipelines.warehouse.database import exists
from pipelines.warehouse.roles import Roles
from pipelines.warehouse.sides import Sides

KEY = "key"  # stands for these roles of both sides:
KEY_ROLES = {
    "usage": ("usage.id", "billing.line_usage"),
    "partner": ("usage.partner", "billing.partner"),
    "month": ("usage.period", "billing.period"),
    "currency": ("usage.currency", "billing.currency"),
    "plan": ("usage.plan", "billing.line_plan"),
    "organization": ("usage.organization", "billing.organization"),
}
KEYS = """
SELECT stream, min(key) FROM meta.proofs WHERE in_force GROUP BY ALL HAVING min(key) = max(key)
"""
# Of an empty list no key can be found, and none is needed.
UNKEYED = "SELECT DISTINCT stream FROM meta.proofs WHERE in_force AND key IS NULL AND rows > 0"
# Most used rows agree with one line: only the keys of the others are looked at column by column.
ODD = """
CREATE OR REPLACE TEMP TABLE odd AS
SELECT connection, key FROM (
    SELECT connection, key, 1 AS sign, quantity, amount, hash(partner, currency) AS whose
    FROM used WHERE key IS NOT NULL
    UNION ALL
    SELECT connection, key, -1, quantity, amount, hash(partner, currency)
    FROM billed WHERE key IS NOT NULL
) GROUP BY connection, key
HAVING NOT {once} OR count(*) <> 2 OR sum(sign) <> 0 OR bit_xor(whose) <> 0
    OR {counted} AND (count(quantity) = 1 OR sum(sign * quantity) <> 0)
    OR {priced} AND (count(amount) = 1 OR sum(sign * amount) <> 0)
"""
MATCHED = """
CREATE OR REPLACE TEMP TABLE matched AS
WITH sides AS (
    SELECT connection, key, true AS of_usage, partner, currency, month, quantity, amount
    FROM used SEMI JOIN odd USING (connection, key)
    UNION ALL
    SELECT connection, key, false, partner, currency, month, quantity, amount
    FROM billed SEMI JOIN odd USING (connection, key)
), keys AS (
    SELECT connection, key,
           min(partner) FILTER (of_usage) AS used_by,
           min(partner) FILTER (NOT of_usage) AS billed_partner,
           min(currency) FILTER (of_usage) AS used_in,
           min(currency) FILTER (NOT of_usage) AS billed_in,
           min(month) AS month,
           count(*) FILTER (of_usage) AS used_rows,
           count(*) FILTER (NOT of_usage) AS billed_rows,
           sum(quantity) FILTER (of_usage) AS used_quantity,
           sum(quantity) FILTER (NOT of_usage) AS billed_quantity,
           sum(amount) FILTER (of_usage) AS used_amount,
           sum(amount) FILTER (NOT of_usage) AS billed_amount
    FROM sides GROUP BY connection, key
)
SELECT connection, key, coalesce(used_by, billed_partner) AS partner, billed_partner,
       coalesce(used_in, billed_in) AS currency, billed_in AS billed_currency, month,
       used_rows, billed_rows, used_quantity, billed_quantity, used_amount, billed_amount,
       CASE
           WHEN NOT {once} AND (month + INTERVAL 1 MONTH)::DATE + grace_days > as_of::DATE
               THEN 'tentative'
           WHEN billed_rows = 0 THEN 'usage without billing'
           WHEN used_rows = 0 THEN 'billing without usage'
           WHEN {once} AND billed_rows > used_rows THEN 'billed twice'
           WHEN used_by <> billed_partner THEN 'another partner'
           WHEN used_in <> billed_in THEN 'another currency'
           WHEN {counted} AND used_quantity IS DISTINCT FROM billed_quantity THEN 'quantity'
           WHEN {priced} AND used_amount IS DISTINCT FROM billed_amount THEN
               CASE WHEN abs(billed_amount - used_amount) <= line_minor * coalesce(unit, 0.01)
                      OR abs(billed_amount - used_amount) <= line_percent * abs(used_amount)
                    THEN 'within tolerance' ELSE 'amount' END
           ELSE 'balanced'
       END AS status
FROM keys CROSS JOIN terms LEFT JOIN units ON units.currency = coalesce(used_in, billed_in)
"""
GROUPS = """
CREATE OR REPLACE TEMP TABLE used_groups AS
SELECT connection, partner, currency, month, count(*) AS rows, sum(quantity) AS quantity,
       sum(TRY(quantity * price)) AS expected, sum(amount) AS amount
FROM used GROUP BY ALL
"""
RECORDS = """
CREATE OR REPLACE TEMP TABLE odd_{side} AS
SELECT * FROM {side} SEMI JOIN (
    SELECT connection, key FROM matched
    WHERE status NOT IN ('balanced', 'within tolerance', 'tentative')
) AS wrong USING (connection, key)
"""


@dataclass(frozen=True)
class Matching:
    """What was matched on which roles, as of which moment of the data.

    `fault` is why nothing is mapped where somebody tried to. `unkeyed` says of sides whose records
    have no primary key that they are not evaluated: a record that changed may be there twice.
    """

    given: Given
    roles: Roles
    as_of: datetime
    fault: str = ""
    unkeyed: Mapping[str, str] = field(default_factory=dict)

    def lacking(self, needs: Sequence[str]) -> str:
        """Say why what needs these roles cannot be evaluated; `key` is what is matched by."""
        wanted = [each for each in needs if each != KEY]
        for key in self.given.keys if KEY in needs else ():
            wanted += KEY_ROLES[key]
        sides = {role.partition(".")[0] for role in wanted}
        if unkeyed := [why for side, why in self.unkeyed.items() if side in sides]:
            return "; ".join(unkeyed)
        lacking = self.roles.lacking(tuple(dict.fromkeys(wanted)))
        return self.fault or lacking if lacking else ""


def prepare(database: duckdb.DuckDBPyConnection, given: Given, as_of: datetime) -> Matching:
    """Make the temporary tables; `as_of` is the moment up to which the lists were read."""
    proven = exists(database, "meta", "proofs")
    keys = dict(database.execute(KEYS).fetchall()) if proven else {}
    without = {stream for (stream,) in database.execute(UNKEYED).fetchall()} if proven else set()
    sides = Sides(database, given, roles.find(database, given, keys))
    unkeyed = {
        side: f"{stream} has no primary key: set key in [streams.{stream}]"
        for side, stream in sides.roles.streams.items()
        if stream in without
    }
    sides.terms(as_of, unkeyed)
    sides.payers()
    sides.used()
    sides.bills()
    sides.billed()
    sides.units()
    return Matching(given, sides.roles, as_of, unkeyed=unkeyed)


def match(database: duckdb.DuckDBPyConnection, matching: Matching) -> None:
    """Make `matched`, a row for each key that is not plainly balanced; its records are `odd_`."""
    has = matching.roles.has
    terms = {
        "once": matching.given.keys == ("usage",),
        "counted": has("usage.quantity", "billing.line_quantity"),
        "priced": has("usage.amount") and has(_amount(matching.roles)),
    }
    for query in (ODD, MATCHED, GROUPS):
        database.execute(query.format(**terms))
    for side in ("used", "billed"):
        database.execute(RECORDS.format(side=side))


def _amount(found: Roles) -> str:
    return "billing.line_amount" if found.lines else "billing.amount"

"""Says why nobody can say that there are no breaks: rules that were not evaluated, unread records.

Commands, the report, Dagster's checks and notifications say the same.
"""

from collections.abc import Iterable
from typing import Final

import duckdb

from pipelines.core.text import counted, printable
from pipelines.finance.doubt import Doubt
from pipelines.finance.mapping import REMEDY
from pipelines.warehouse.duckdb_file import Row, fetch_rows

UNREAD: Final = """
WITH sums AS (
    SELECT
        records.side, split_part(records.roles, ',', 1) AS role, any_value(records.field) AS field,
        records.quarantine IS NOT NULL AS is_aside, records.currency, count(*) AS records,
        sum(records.amount) AS amount, min(records.sent) AS example
    FROM reconciliation.unreadable AS records
    GROUP BY records.side, role, is_aside, records.currency
)
SELECT
    sums.side, sums.role, any_value(sums.field) AS field, sums.is_aside,
    sum(sums.records)::BIGINT AS records, min(sums.example) AS example,
    list(concat_ws(' ', coalesce(sums.currency, 'no currency'), sums.amount) ORDER BY sums.currency)
        FILTER (sums.amount IS NOT NULL) AS sums
FROM sums
GROUP BY sums.side, sums.role, sums.is_aside
ORDER BY ALL
"""
# A rule that was evaluated has a reason where own rows are not understood.
NOT_EVALUATED: Final = """
FROM reconciliation.rules AS rules
WHERE NOT rules.evaluated OR rules.reason IS NOT NULL
"""
OLD: Final = "These books do not say what could not be read."
BY_MONTH: Final = (
    "Months are compared, as billing.line_usage is not mapped. Usage that is billed twice is a "
    "difference of its month."
)
DEFECT: Final = "Report it as a defect of partner-sync."
LONGEST: Final = 60  # characters of an example
QUARANTINE: Final = "Read quarantine.records, and ask the service to correct the records."
DECLARE: Final = (
    "If all of its values mean the same, say its type in settings.toml: `{field} = {type}` below "
    "`[streams.{side}.types]`. Then run `partner-sync versions rebuild`. Otherwise ask the service."
)
MAP: Final = "Ask the service, or correct {role} in mapping.toml and run `partner-sync reconcile`."
# Types that a value may have, by its role. A period may also be an epoch: EPOCHS has the types by
# the number of digits.
TYPES: Final = {
    "amount": '"decimal"',
    "quantity": '"decimal"',
    "line_amount": '"decimal"',
    "line_quantity": '"decimal"',
    "period": '{type = "time", format = "%m/%d/%Y %H:%M", zone = "UTC"}',
}
EPOCHS: Final = {10: '"epoch_seconds"', 13: '"epoch_milliseconds"'}


def read_unread(db: duckdb.DuckDBPyConnection) -> list[Doubt]:
    """Return what records of a version cannot be read, by field. Raises duckdb.Error."""
    try:
        return [_about(row) for row in fetch_rows(db, UNREAD)]
    except duckdb.CatalogException:
        return [Doubt("", OLD, "Run `partner-sync reconcile`.")]


def read_not_evaluated(db: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return rules and tables that were not evaluated, or in part, and why. Raises duckdb.Error.

    `is_needed`: without it, nobody can say that there are no breaks. Where the mapping names no
    field for it, no break depends on late_arrivals or external_ids, and months are compared, where
    usage that is billed twice is a difference. Many services have no time of recording, or bills
    that name no usage: a doubt there would never end.
    """
    rows = fetch_rows(db, NOT_EVALUATED)
    for row in rows:
        row.setdefault("is_needed", True)  # books of an earlier release do not say
    return rows


def read_doubts(db: duckdb.DuckDBPyConnection) -> list[Doubt]:
    """Return which rules and tables were not evaluated, then what records cannot be read.

    Raises duckdb.Error.
    """
    return doubts_of(read_not_evaluated(db), read_unread(db))


def doubts_of(not_evaluated: Iterable[Row], unread: Iterable[Doubt]) -> list[Doubt]:
    """Return which rules and tables were not evaluated, then what records cannot be read."""
    rules_of: dict[str, list[str]] = {}
    uncertain = []
    for row in not_evaluated:
        if row["evaluated"]:
            text = f"{row['rule']} is uncertain: {row['reason']}."
            uncertain.append(Doubt(row["rule"], text, ""))
        elif row["is_needed"]:
            rules_of.setdefault(row["reason"], []).append(row["rule"])
    doubts = [_not_evaluated(rules, reason) for reason, rules in rules_of.items()]
    return [*doubts, *uncertain, *unread]


def notes_of(not_evaluated: Iterable[Row]) -> list[Doubt]:
    """Return what is not evaluated and leaves no doubt, each with the rule as its subject."""
    notes = []
    for row in not_evaluated:
        rule = row["rule"]
        if row["is_needed"] or row["evaluated"]:
            continue
        if rule == "billed_twice":
            notes.append(Doubt(rule, BY_MONTH, ""))
        else:
            text = f"{rule} not evaluated: {row['reason']}. No break depends on it."
            notes.append(Doubt(rule, text, ""))
    return notes


def _not_evaluated(rules: list[str], reason: str) -> Doubt:
    names = ", ".join(rules)
    reason = reason.rstrip(".")
    if "partner-sync" in reason:  # it names a remedy itself
        remedy = ""
    elif "failed" in reason:
        remedy = DEFECT
    else:
        remedy = REMEDY
    return Doubt(names, f"{names} not evaluated. {reason}.", remedy)


def _about(row: Row) -> Doubt:
    side = row["side"]
    records = counted(row["records"], "record")
    amounts = f" Their readable amounts: {', '.join(row['sums'])}." if row["sums"] else ""
    if row["is_aside"]:
        where = "are in quarantine, in no table"
        if row["records"] == 1:
            where = "is in quarantine, so no table has it"
        message = f"{records} of {side} {where}.{amounts}"
        return Doubt(side, message, QUARANTINE, is_quarantine=True)
    role = row["role"]
    field = printable(row["field"] or "")
    why = "cannot be read"
    if role == "line_currency":
        why = "cannot be compared, as a line is of another currency than its bill"
    message = (
        f"{records} of {side} {why}: field {field} ({side}.{role}), such as "
        f"`{printable(row['example'], LONGEST)}`.{amounts} Months to which they may belong are not "
        "proven."
    )
    return Doubt(field, message, _remedy(side, role, field, row["example"] or ""))


def _remedy(side: str, role: str, field: str, example: str) -> str:
    declared = TYPES.get(role)
    if role == "period" and example.isdigit():
        declared = EPOCHS.get(len(example))
    if declared is None:
        return MAP.format(role=f"{side}.{role}")
    return DECLARE.format(side=side, field=f'"{field}"', type=declared)

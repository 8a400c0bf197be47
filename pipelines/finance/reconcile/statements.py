"""The statements of reconciliation: one file of `sql/` for each rule and each table."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

# Each rule returns the columns that INSERT_BREAKS of engine.py reads.
RULES: Final = (
    "unknown_partner", "not_billed", "not_used", "billed_twice", "different", "disappeared",
)  # fmt: skip
TABLES: Final = (
    "breaks", "ageing", "summary", "rollforward", "restatements", "late_arrivals", "gaps",
    "external_ids", "corrections", "closes", "unseen_values", "read_otherwise",
)  # fmt: skip
# In the order in which they are evaluated: each comes after those that it needs.
STATEMENTS: Final = (
    "partners", "unreadable", "doubts", "sides", "versions", "movements", "compared",
    "changes", "exceptions", "paired", "matches", *RULES, "break_facts", "breaks", "month_facts",
    "bill_totals", "without_usage", "usage_days", "missing_amounts",
    *(name for name in TABLES if name != "breaks"),
)  # fmt: skip
# What is remembered of earlier books, with its amounts.
MEMORY: Final = {
    "breaks": ("used_amount", "billed_amount", "difference"),
    "corrections": ("amount_before", "amount_now", "difference"),
}
NOTE: Final = re.compile(r"^-- (kind|question|label|remedy|needs): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Statement:
    """One file of `sql/`: what it asks, and the roles and other statements that it needs.

    Its result is a table of reconciliation, or what `kind` says: `TEMP TABLE`, `VIEW`.
    """

    name: str
    query: str
    kind: str = "TABLE"
    question: str = ""
    label: str = ""  # of its breaks, before what their cause says; empty: the cause says all
    remedy: str = ""
    needs: str = ""


@cache
def read_statement(name: str) -> Statement:
    """Return a statement."""
    file = f"sql/rules/{name}.sql" if name in RULES else f"sql/{name}.sql"
    text = files("pipelines.finance.reconcile").joinpath(file).read_text("utf-8")
    return Statement(name, text, **read_notes(text))


def read_notes(text: str) -> dict[str, str]:
    """Return what the first lines of a statement note, such as `-- needs: months`."""
    return dict(NOTE.findall(text))

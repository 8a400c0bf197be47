"""The statements of reconciliation: one file of `sql/` for each rule and each table."""

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final

# Each rule returns the columns that INSERT_BREAKS of engine.py reads.
RULES: Final = (
    "unknown_partner", "unreferenced", "not_billed", "not_used", "billed_twice", "different",
    "disappeared",
)  # fmt: skip
TABLES: Final = (
    "breaks", "ageing", "summary", "rollforward", "restatements", "late_arrivals", "gaps",
    "external_ids", "corrections", "closes", "unseen_values", "read_otherwise", "totals",
    "flux", "receivables",
)  # fmt: skip
# In the order in which they are evaluated: each comes after those that it needs.
STATEMENTS: Final = (
    "partners", "unreadable", "doubts", "sides", "versions", "movements", "compared",
    "changed_records", "exceptions", "paired", "matches", "unknown_partner", "unreferenced_lines",
    *RULES[1:], "break_facts", "month_facts", "materiality", "assignments", "breaks",
    "small_breaks", "bill_totals", "without_usage", "usage_days", "missing_amounts", "items",
    "cut_offs", "dated_totals", "flux_items",
    *(name for name in TABLES if name != "breaks"),
)  # fmt: skip
# What is remembered of earlier books, with its amounts.
REMEMBERED: Final = {
    "breaks": ("used_amount", "billed_amount", "difference"),
    "corrections": ("amount_before", "amount_now", "difference"),
}
NOTE: Final = re.compile(
    r"^-- (kind|question|label|remedy|needs|rests on|may lack): (.*)$", re.MULTILINE
)
ANY_ROLE: Final = "any role"
WITHOUT_ROLES: Final = re.compile(r"[a-z_.]+ is not mapped(; [a-z_.]+ is not mapped)*")


@dataclass(frozen=True)
class Statement:
    """One file of `sql/`: what it asks, and the roles and other statements that it needs.

    Its result is a table of reconciliation, or what `kind` says: `TEMP TABLE`, `VIEW`. `rests_on`
    is the list of which a row may only not have been seen where a rule finds a break: `usage`,
    `billing`, `partners`, or `the side that has less`. `may_lack` is the role that a mapping need
    not have, or `any role`.
    """

    name: str
    query: str
    kind: str = "TABLE"
    question: str = ""
    label: str = ""  # of its breaks, before what their cause says; empty: the cause says all
    remedy: str = ""
    needs: str = ""
    rests_on: str = ""
    may_lack: str = ""

    def is_needed(self, reason: str) -> bool:
        """Return whether nobody can say that there are no breaks, as it was not evaluated."""
        if not WITHOUT_ROLES.fullmatch(reason):
            return True
        return self.may_lack != ANY_ROLE and reason != f"{self.may_lack} is not mapped"


@cache
def read_statement(name: str) -> Statement:
    """Return a statement."""
    file = f"sql/rules/{name}.sql" if name in RULES else f"sql/{name}.sql"
    text = files("pipelines.finance.reconcile").joinpath(file).read_text("utf-8")
    return Statement(name, text, **read_notes(text))


@cache
def statements_digest() -> str:
    """Return a digest of all statements: another one means other conclusions of the same rows."""
    digest = sha256()
    for name in (*STATEMENTS, "finance"):
        digest.update(read_statement(name).query.encode())
    return digest.hexdigest()


def read_notes(text: str) -> dict[str, str]:
    """Return what the first lines of a statement note, such as `-- needs: months`."""
    return {name.replace(" ", "_"): note for name, note in NOTE.findall(text)}

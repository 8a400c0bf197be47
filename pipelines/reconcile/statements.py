"""The statements of reconciliation: one file of `sql/` for each rule and each table."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

RULES: Final = (
    "unknown_partner",
    "not_billed",
    "not_used",
    "billed_twice",
    "different",
    "disappeared",
)
TABLES: Final = (
    "breaks",
    "ageing",
    "summary",
    "rollforward",
    "restatements",
    "late_arrivals",
    "gaps",
    "external_ids",
    "corrections",
    "closes",
)
STEPS: Final = {  # to the others; temporary
    "known_partners": "TABLE",
    "sides": "VIEW",
    "versions": "VIEW",
    "odd_keys": "TABLE",
    "compared": "TABLE",
    "changes": "TABLE",
}
VIEWS: Final = {"matches"}  # of all pairs: stored, they would be a third of a version
LISTED: Final = ("exceptions", "matches", *RULES, *TABLES)
REMEMBERED: Final = {  # tables that keep rows of earlier versions, with their amounts
    "breaks": ("used_amount", "billed_amount", "difference"),
    "corrections": ("amount_before", "amount_now", "difference"),
}


@dataclass(frozen=True)
class Statement:
    """One file of `sql/`: what it asks, and the roles and other statements that it needs."""

    name: str
    query: str
    question: str
    remedy: str
    needs: tuple[str, ...]


@cache
def read_statement(name: str) -> Statement:
    """Return a statement."""
    file = f"sql/breaks/{name}.sql" if name in RULES else f"sql/{name}.sql"
    text = files("pipelines.reconcile").joinpath(file).read_text("utf-8")
    notes = {"question": "", "remedy": "", "needs": ""} | dict(
        line.removeprefix("-- ").split(": ", 1)
        for line in text.splitlines()
        if line.startswith(("-- question: ", "-- remedy: ", "-- needs: "))
    )
    return Statement(name, text, notes["question"], notes["remedy"], tuple(notes["needs"].split()))

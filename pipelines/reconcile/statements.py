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
    "changes",
    "corrections",
    "closes",
)
REMEMBERED: Final = ("breaks", "corrections")  # of earlier versions, even if not evaluated
UNLISTED: Final = ("odd_keys", "changes")  # steps to tables, in which nobody looks for a reason
MATCH: Final = "match"  # in `needs`: the roles by which both sides are matched
TEMPORARY: Final = {"odd_keys": "odd_keys", "changes": "changes"}
STORED: Final = {"matches": "reconciliation.unmatched"}  # `matches` itself is a view of all pairs
# Relations that are made of others, and so are as empty.
DERIVED: Final = {"odd_keys": ("odd_used", "odd_billed"), "matches": ("unbalanced",)}


@dataclass(frozen=True)
class Statement:
    """One file of `sql/`: what it asks, the roles it needs, lists whose absent rows it rests on."""

    name: str
    query: str
    question: str
    remedy: str
    needs: tuple[str, ...]
    absent: tuple[str, ...]


@cache
def read_statement(name: str) -> Statement:
    """Return the statement of a rule or a table."""
    file = f"sql/breaks/{name}.sql" if name in RULES else f"sql/{name}.sql"
    text = files("pipelines.reconcile").joinpath(file).read_text("utf-8")
    notes = dict(
        line.removeprefix("-- ").split(": ", 1)
        for line in text.splitlines()
        if line.startswith("-- ") and ": " in line
    )
    needs, absent = (tuple(notes.get(key, "").split()) for key in ("needs", "absent"))
    return Statement(name, text, notes["question"], notes["remedy"], needs, absent)

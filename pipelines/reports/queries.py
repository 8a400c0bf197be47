"""Reads the figures of the report from a version.

Each query is a file of `sql/`; where a class has its values, its columns are the fields.
"""

from importlib.resources import files
from typing import Final, TypeVar

import duckdb

from pipelines.config.mapping import REMEDY
from pipelines.reports import figures as values
from pipelines.reports.figures import Earlier, Figures, LastClose, Rule

RULES: Final = "SELECT rules.* FROM reconciliation.rules AS rules"
DIFFERENCES: Final = """
SELECT summary.currency, sum(summary.difference)
FROM reconciliation.summary AS summary
GROUP BY summary.currency
"""
LAST_CLOSE: Final = """
SELECT closes.month, closes.version
FROM reconciliation.closes AS closes
WHERE closes.state <> 'reopened'
ORDER BY closes.closed_at DESC, closes.month DESC
LIMIT 1
"""
NEEDED: Final = ("matches", "summary", "breaks")  # without one of these, no figure is right
T = TypeVar("T")


def read_figures(db: duckdb.DuckDBPyConnection, version: int) -> Figures:
    """Return the figures of a version, without those of earlier ones. Raises duckdb.Error."""
    proofs, rules = _read(db, "proofs", values.Proof), read_rules(db)
    if problem := find_problem(rules):
        return Figures(version, proofs, rules, problem)
    return Figures(
        version,
        proofs,
        rules,
        currencies=_read(db, "currencies", values.Currency),
        breaks=_read(db, "breaks", dict),
        severities=_read(db, "severities", dict),
        uncertain=_read(db, "uncertain", dict),
        partners=_read(db, "partners", dict),
        months=_read(db, "months", values.Month),
        ageing=_read(db, "ageing", dict),
        apart=_read(db, "apart", dict),
        late=_read(db, "late", dict),
        gaps=_read(db, "gaps", dict),
    )


def read_earlier(db: duckdb.DuckDBPyConnection, title: str) -> Earlier | None:
    """Return the differences of another version; None where it has none."""
    if find_problem(read_rules(db)):
        return None
    return Earlier(title, dict(db.execute(DIFFERENCES).fetchall()))


def read_last_close(db: duckdb.DuckDBPyConnection) -> LastClose | None:
    """Return the newest close of a version; None without one."""
    try:
        return next(iter(_fetch(db, LAST_CLOSE, LastClose)), None)
    except duckdb.CatalogException:
        return None


def find_problem(rules: dict[str, Rule]) -> str:
    """Return why usage was not compared with billing, and what to do; empty if it was."""
    if not rules:
        return "This version has no reconciliation. Run `partner-sync versions build`."
    missing = (rules[name].reason or "" for name in NEEDED if not rules[name].evaluated)
    reason = next(missing, "").rstrip(".")
    if not reason:
        return ""
    is_defect = "failed" in reason
    remedy = "Report it as a defect of partner-sync." if is_defect else REMEDY
    return f"{reason}." if "partner-sync" in reason else f"{reason}. {remedy}"


def read_rules(db: duckdb.DuckDBPyConnection) -> dict[str, Rule]:
    """Return what was evaluated, by name; empty for a version without reconciliation."""
    try:
        return {rule.rule: rule for rule in _fetch(db, RULES, Rule)}
    except duckdb.CatalogException:
        return {}


def _read(db: duckdb.DuckDBPyConnection, name: str, kind: type[T]) -> list[T]:
    query = files("pipelines.reports").joinpath(f"sql/{name}.sql").read_text("utf-8")
    try:
        return _fetch(db, query, kind)
    except duckdb.CatalogException:  # a table that could not be evaluated may not even be empty
        return []


def _fetch(db: duckdb.DuckDBPyConnection, query: str, kind: type[T]) -> list[T]:
    found = db.execute(query)
    names = [column[0] for column in found.description or ()]
    return [kind(**dict(zip(names, row, strict=True))) for row in found.fetchall()]

"""The verb `demo`: the whole job on the embedded service, and three questions to its result.

The service plants errors of every kind and knows the truth about them; reconciliation has to find
each, to the cent, and nothing else.
"""

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import duckdb
import httpx
import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import sandbox, screen
from pipelines.errors import ConfigurationError
from pipelines.settings import mapping

MARKER = ".partner-sync-demo"
SIZES = ("--partners=250", "--usage=20000", "--billing=2000", "--plant")
MAPPING = files("pipelines.settings") / "sandbox.toml"  # what the fields of the service mean
# Each kind of planted error: the rule that has to find it, and how its cause begins.
FOUND_BY = {
    "amount_off": ("amount_mismatch", "amount"),
    "missing_bill": ("usage_without_billing", "missing"),
    "double_bill": ("duplicate_billing", ""),
    "orphan_usage": ("orphan_partners", "usage"),
    "orphan_billing": ("orphan_partners", "billing"),
    "late_usage": ("usage_without_billing", "late"),
    "restated_after_bill": ("quantity_mismatch", "restated after bill"),
}
PLANTED = "Which errors were planted, and which were found? To the cent"
BREAKS = """
    SELECT rule, cause, partner, month::VARCHAR, currency, abs(difference)
    FROM reconciliation.breaks WHERE state <> 'RESOLVED'
"""
QUESTIONS = {
    "Who was billed most in each currency?": """
        WITH billed AS (
            SELECT currency, name AS partner, sum(total) AS billed, count(*) AS bills
            FROM current.billing JOIN current.partners USING (_connection, partner_id)
            GROUP BY currency, partner_id, name
        )
        FROM billed QUALIFY row_number() OVER (PARTITION BY currency ORDER BY billed DESC) = 1
        ORDER BY currency
    """,
    "The largest amounts, every digit as the service sent it": """
        SELECT sequence, amount, currency, reference FROM current.usage
        ORDER BY amount DESC LIMIT 3
    """,
}
app = typer.Typer()


@app.command()
def demo(
    home: Annotated[Path, typer.Option(help="Emptied first, then filled.")] = Path(".demo"),
) -> None:
    """Start the embedded service, sync it into DuckDB and show three queries with their answers."""
    empty(home)
    with sandbox.running(*SIZES) as service:
        sandbox.point_at(service)
        own = settings.load(home)
        own.place.prepare()
        (own.place.config / mapping.FILE).write_text(MAPPING.read_text())
        planted = httpx.get(f"{service.url}/__sandbox__/plant", trust_env=False).json()["errors"]
        with screen.watching(own) as watch, run.open(own, watch) as session:
            outcome = run.sync(session, run.orders(session))
    screen.closing(outcome, own.place)
    if outcome.exit_code == 0:
        answer(own.place.link, planted)
        page = run.report(own.place)
        screen.OUT.print(f"report: {escape(str(page.file))}", soft_wrap=True)
    raise typer.Exit(outcome.exit_code)


def empty(home: Path) -> None:
    """Empty a home that an earlier demo made; refuse any other folder that holds something."""
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        if not (home / MARKER).exists():
            raise ConfigurationError(
                f"{home} was not made by a demo and is not emptied; name another --home"
            )
        shutil.rmtree(home)
    home.mkdir(parents=True, exist_ok=True)
    (home / MARKER).touch()


def answer(link: Path, planted: Iterable[Mapping[str, str]]) -> None:
    """Ask the published file three questions, the first about the planted errors."""
    with duckdb.connect(link, read_only=True) as reader:
        screen.show(judged(planted, reader.execute(BREAKS).fetchall()), PLANTED)
        for question, sql in QUESTIONS.items():
            screen.show(reader.sql(sql).to_arrow_table().to_pylist(), question)


def judged(
    planted: Iterable[Mapping[str, str]], breaks: Iterable[tuple[Any, ...]]
) -> list[dict[str, object]]:
    """Return of each kind how many were planted and found, and how much else was found."""
    found: Counter[tuple[Any, ...]] = Counter(
        (_kind(rule, cause), *rest) for rule, cause, *rest in breaks
    )
    wanted: Counter[tuple[Any, ...]] = Counter(
        (
            each["kind"],
            each["other_id" if each["kind"].startswith("orphan") else "partner_id"],
            each["month"],
            each["currency"],
            Decimal(each["amount"]),
        )
        for each in planted
    )
    rows: list[dict[str, object]] = []
    for kind, (rule, _cause) in FOUND_BY.items():
        counts = [
            sum(count for each, count in some.items() if each[0] == kind)
            for some in (wanted, wanted & found)
        ]
        rows.append({"error": kind, "planted": counts[0], "found": counts[1], "by": rule})
    return [
        *rows,
        {"error": "any other", "planted": 0, "found": (found - wanted).total(), "by": ""},
    ]


def _kind(rule: str, cause: str) -> str:
    """Return which planted error a break looks like."""
    kinds = [kind for kind, (by, how) in FOUND_BY.items() if by == rule and cause.startswith(how)]
    return kinds[0] if kinds else ""

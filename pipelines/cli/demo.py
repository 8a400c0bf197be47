"""The verb `demo`: the whole job on the embedded service, and three questions to its result."""

import shutil
from pathlib import Path
from typing import Annotated

import duckdb
import typer

from pipelines import run, settings
from pipelines.cli import sandbox, screen
from pipelines.errors import ConfigurationError

MARKER = ".partner-sync-demo"
SIZES = ("--partners=250", "--usage=20000", "--billing=2000")
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
    "Is what was used what was billed? To the last digit, by currency": """
        WITH used AS (SELECT currency, sum(amount) AS used FROM current.usage GROUP BY ALL),
        billed AS (
            SELECT currency, sum(lines.amount) AS billed
            FROM current.billing__lines AS lines
            JOIN current.billing USING (_connection, billing_id)
            GROUP BY ALL
        )
        SELECT currency, used, billed, used - billed AS difference FROM used
        JOIN billed USING (currency) ORDER BY currency
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
        with screen.watching(own) as watch, run.open(own, watch) as session:
            outcome = run.sync(session, run.orders(session))
    screen.closing(outcome, own.place.link)
    if outcome.exit_code == 0:
        answer(own.place.link)
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


def answer(link: Path) -> None:
    """Ask the published file three questions."""
    with duckdb.connect(link, read_only=True) as reader:
        for question, sql in QUESTIONS.items():
            screen.show(reader.sql(sql).to_arrow_table().to_pylist(), question)

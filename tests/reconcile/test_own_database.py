"""Own books in a database: all rows are of one moment, and say the same as a file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pipelines.core.files import write_durably
from pipelines.finance import own_check
from pipelines.finance.books import make_books
from pipelines.finance.reconcile.own.database import TableRows, is_of_one_moment
from tests.reconcile.books import MAPPING
from tests.reconcile.own import LEDGER, OCTOBER, SEPTEMBER, publish_own
from tests.versions.homes import Stores, home_of

pytest_plugins = ["tests.postgresql"]
own = home_of(publish_own)
ROWS = 25_000  # more than are fetched at once
CREATE = "CREATE TABLE lines (id INTEGER, amount NUMERIC(9, 2))"
CHANGES = (
    "UPDATE lines SET amount = 7 WHERE id > 100",
    "DELETE FROM lines WHERE id > 24000",
    "INSERT INTO lines VALUES (99999, 1)",
)
POSTED = """
CREATE SCHEMA books;
CREATE TABLE books.lines (
    "Bill" TEXT, "Partner" TEXT, "Posted on" TIMESTAMPTZ, "Amount" NUMERIC(12, 4),
    "Currency" CHAR(4)
)
"""
CAUSES = """
SELECT subject, cause, own_amount, difference FROM reconciliation.breaks
WHERE own_source = 'ledger' AND gone_at IS NULL ORDER BY ALL
"""
ON_POSTGRESQL = LEDGER.replace(
    'file = "ledger/*.csv"', 'url_variable = "LEDGER_URL"\ntable = "books.lines"'
)


@pytest.fixture(params=["sqlite", "postgresql"])
def writer(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Give a connection to a table of many rows beside the one that reads it."""
    if request.param == "sqlite":
        file = tmp_path / "ledger.db"
        monkeypatch.setenv("LEDGER_URL", f"sqlite:///{file}")
        connection: Any = sqlite3.connect(file, isolation_level=None)
        connection.execute("PRAGMA journal_mode = wal")
    else:
        url = request.getfixturevalue("server_url")
        monkeypatch.setenv("LEDGER_URL", url)
        connection = psycopg.connect(url, autocommit=True)
    with closing(connection):
        connection.execute(CREATE)
        values = ", ".join(f"({number}, {number}.25)" for number in range(ROWS))
        connection.execute(f"INSERT INTO lines VALUES {values}")
        yield connection


@pytest.mark.long
def test_a_table_that_changes_while_it_is_read_is_as_it_was(writer: Any) -> None:
    columns = {"id": "id", "amount": "amount"}
    unchanged = TableRows("LEDGER_URL", "lines", columns)
    expected = list(unchanged)
    changing = TableRows("LEDGER_URL", "lines", columns)
    rows = iter(changing)
    read = [next(rows)]
    for change in CHANGES:
        writer.execute(change)
    read += rows
    assert read == expected
    assert changing.sha256() == unchanged.sha256()
    assert len(list(TableRows("LEDGER_URL", "lines", columns))) == 24_002


@pytest.mark.long
def test_a_table_of_postgresql_says_the_same_as_files(
    own: Stores, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = own.rows(CAUSES)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(POSTED)
        for row in (*SEPTEMBER, *OCTOBER):
            key, partner, day, *others = row.split(",")
            # Where the server is, the last day of September is over.
            time = f"{day[:10]:-<10}".replace("---", "-01") + "T23:00Z"
            values = (key or None, partner, time, *others)
            connection.execute("INSERT INTO books.lines VALUES (%s, %s, %s, %s, %s)", values)
    monkeypatch.setenv("LEDGER_URL", server_url)
    write_durably(own.home.mapping_file, (MAPPING + ON_POSTGRESQL).encode())
    make_books(own)
    assert own.rows(CAUSES) == expected
    (ledger,) = own_check.check(own)
    assert (ledger["rows"], ledger["is_of_one_moment"]) == (12, True)


def test_nobody_knows_what_another_database_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("mysql://u@host/x", "no URL", ""):
        monkeypatch.setenv("LEDGER_URL", url)
        assert not is_of_one_moment("LEDGER_URL")

"""deploy/distributed/databases.sql, run by psql: who owns what, who may enter with which password.

Not here: what Dagster, the ledger and the lake make in these databases.
"""

import os
import subprocess
from pathlib import Path

import psycopg2
import pytest

from tests.distributed import places
from tests.distributed.servers import PostgreSQL

FILE = Path(__file__).parents[2] / "deploy" / "distributed" / "databases.sql"
# One that psql would take apart if it were not quoted.
PASSWORDS = {"dagster": "first", "partner_sync": "it's; \\q second"}
ASKED = "local all all trust\nhost all {} all scram-sha-256\n"
MADE = """
SELECT datname, pg_get_userbyid(datdba), pg_encoding_to_char(encoding) FROM pg_database
WHERE datname IN ('dagster', 'partner_sync', 'lake') ORDER BY datname
"""
COLLATIONS = "SELECT datcollate, datctype FROM pg_database WHERE datname = 'partner_sync'"


@pytest.fixture(scope="module")
def server() -> PostgreSQL:
    """Return a PostgreSQL whose databases were made, and which asks their roles for passwords."""
    made = places.postgresql()
    given = {f"{role.upper()}_PASSWORD": word for role, word in PASSWORDS.items()}
    psql(made, given).check_returncode()
    rules = made.folder / "pg_hba.conf"
    rules.write_text(ASKED.format(",".join(PASSWORDS)) + rules.read_text())
    made.ask("SELECT pg_reload_conf()")
    return made


def psql(server: PostgreSQL, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    place = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres"]
    return subprocess.run(
        [str(server.programs / "psql"), "-X", *place, "-f", str(FILE)],
        env=os.environ | given,
        capture_output=True,
        text=True,
        check=False,
    )


def enters(server: PostgreSQL, role: str, database: str, password: str) -> str:
    """Return who is in the database, or what PostgreSQL says instead."""
    try:
        connection = psycopg2.connect(
            host="127.0.0.1", port=server.port, user=role, dbname=database, password=password
        )
    except psycopg2.OperationalError as error:
        return str(error)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA own; SELECT current_user")
            return str(cursor.fetchone()[0])
    finally:
        connection.close()


def test_each_database_has_its_owner(server: PostgreSQL) -> None:
    assert server.ask(MADE).split() == [
        "dagster|dagster|UTF8",
        "lake|partner_sync|UTF8",
        "partner_sync|partner_sync|UTF8",
    ]


def test_texts_of_the_ledger_are_ordered_as_in_a_file(server: PostgreSQL) -> None:
    assert server.ask(COLLATIONS).split() == ["C|C"]


@pytest.mark.parametrize(
    ("role", "database"), [("dagster",) * 2, ("partner_sync",) * 2, ("partner_sync", "lake")]
)
def test_an_owner_enters_with_its_password_and_makes_its_tables(
    server: PostgreSQL, role: str, database: str
) -> None:
    assert "password authentication failed" in enters(server, role, database, "another")
    assert enters(server, role, database, PASSWORDS[role]) == role


def test_nobody_else_enters_the_ledger(server: PostgreSQL) -> None:
    said = enters(server, "dagster", "partner_sync", PASSWORDS["dagster"])
    assert "permission denied for database" in said


def test_without_a_password_nothing_is_made() -> None:
    ended = psql(places.postgresql(), {"PARTNER_SYNC_PASSWORD": "second"})
    assert ended.returncode != 0
    assert "CREATE" not in ended.stdout

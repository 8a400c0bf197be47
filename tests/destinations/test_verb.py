"""The verb `export` as a user runs it: what is printed, the codes, and nothing of a URL."""

from pipelines.settings import Home
from tests.cli import program
from tests.forked import Done

URL = "sqlite:////no/such/folder/hunter2.db"


def ran(home: Home, *arguments: str) -> Done:
    environment = {"PARTNER_SYNC_HOME": str(home.root), "WAREHOUSE_URL": URL}
    return program.ran(environment, "export", *arguments)


def test_it_says_what_is_where_and_what_is_not_exact(home: Home) -> None:
    done = ran(home, "usage", "meta.odd", "--to", "xlsx")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "current.usage: 5 rows in current.usage.xlsx",
        "meta.odd: 1 rows in meta.odd.xlsx",
    ]
    assert lines[2].startswith(f"exported v00000042 to {home.exports}/v00000042.")
    assert "current.usage: 3 numbers of more than 15 digits are written as text" in done.stderr


def test_its_codes_are_the_house_s(home: Home) -> None:
    wrong, refused = ran(home, "nothing"), ran(home, "--to", "WAREHOUSE_URL")
    assert (wrong.returncode, refused.returncode) == (2, 1)
    assert "no table 'nothing'" in wrong.stderr
    assert "the database that WAREHOUSE_URL names refused" in refused.stderr
    assert "hunter2" not in refused.stderr + refused.stdout
    given = ran(home, "--to", URL)
    assert given.returncode == 2
    assert "hunter2" not in given.stderr

"""docs/analysts.md is true: its recipes run as they stand, and so does each of its queries."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
import zstandard

from pipelines.destinations import DESTINATIONS
from tests.docs import nights

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analysts.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = [
    (title, kind, code)
    for title, text in RECIPES
    for kind, code in re.findall(r"```(sh|python)\n(.*?)```", text, re.DOTALL)
]
WHATS = ("missing", "new", "restated")
QUERIES = {file.name: file for file in sorted((ROOT / "docs" / "queries").iterdir())}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a user's home folder; `.partner-sync` in it is where four nights were published."""
    folder = tmp_path_factory.mktemp("user")
    nights.four(folder / ".partner-sync")
    return folder


def ran(user: Path, *command: str) -> str:
    """Run a recipe as the user whose home folder that is."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if "PARTNER_SYNC" not in name}
    done = subprocess.run(
        command,
        env=clean | {"HOME": str(user), "PATH": programs, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(user: Path, sql: str) -> list[dict[str, Any]]:
    """Ask the published file."""
    with duckdb.connect(user / ".partner-sync" / "warehouse.duckdb", read_only=True) as database:
        database.execute("SET TimeZone = 'UTC'")
        found: list[dict[str, Any]] = database.sql(sql).to_arrow_table().to_pylist()
        return found


def total(user: Path) -> Decimal:
    (row,) = asked(user, "SELECT sum(amount) AS amount FROM current.usage")
    amount: Decimal = row["amount"]
    return amount


def test_the_page_has_the_recipes_that_were_asked_for() -> None:
    assert [title for title, _, _ in BLOCKS] == [
        "DuckDB's own command line",
        "Python and pandas",
        "Python and pandas",
        "SQLAlchemy",
    ]
    titles = [title for title, _ in RECIPES]
    assert {"Harlequin", "DBeaver", "DuckDB UI", "Exports"} <= set(titles)
    assert PAGE.count("not tried by us") == 2


def test_the_command_line_shows_what_is_fresh(user: Path) -> None:
    shown = ran(user, "sh", "-c", BLOCKS[0][2])
    for row in asked(user, "FROM meta.freshness"):
        assert re.search(
            rf"{row['stream']} .* {row['rows']} .* {row['day']} .* {row['grade']}", shown
        )


@pytest.mark.parametrize("number", [1, 3])
def test_a_sum_arrives_with_every_digit(user: Path, number: int) -> None:
    assert ran(user, sys.executable, "-c", BLOCKS[number][2]).strip() == str(total(user))


def test_one_line_of_python_shows_sums_by_currency(user: Path) -> None:
    shown = ran(user, sys.executable, "-c", BLOCKS[2][2])
    sums = asked(user, "SELECT currency, sum(amount) AS amount FROM current.usage GROUP BY ALL")
    assert len(sums) > 1
    assert all(re.search(rf"{row['currency']} +{row['amount']}", shown) for row in sums)


@pytest.fixture
def reachable(user: Path) -> Iterator[Path]:
    """Yield a copy of the published file, mode and all, where anybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        source = user / ".partner-sync" / "warehouse.duckdb"
        yield Path(shutil.copy2(source, Path(folder) / "warehouse.duckdb"))


@pytest.mark.parametrize(("read_only", "words"), [(True, "opened"), (False, "Permission denied")])
def test_only_reading_is_allowed(reachable: Path, read_only: bool, words: str) -> None:  # noqa: FBT001 a case
    """Root could write anything: where tests run as root, this one steps down first."""
    program = (
        "import os, duckdb; os.getuid() or os.setuid(65534); "
        f"duckdb.connect({str(reachable)!r}, read_only={read_only}); print('opened')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode == 0) == read_only
    assert words in done.stdout + done.stderr
    assert "`Permission denied`" in PAGE


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_on_the_page_and_answers_without_floating_point(user: Path, name: str) -> None:
    text = QUERIES[name].read_text(encoding="utf-8")
    assert f"[{name}](queries/{name})" in PAGE
    assert text.startswith("-- ")
    with duckdb.connect(user / ".partner-sync" / "warehouse.duckdb", read_only=True) as database:
        found = database.sql(text)
        assert not {str(kind) for kind in found.types} & {"DOUBLE", "FLOAT"}
        assert found.fetchall()


def test_lineage_leads_to_the_bytes_that_the_service_sent(user: Path) -> None:
    (row,) = asked(user, QUERIES["lineage.sql"].read_text(encoding="utf-8"))
    packed = (user / ".partner-sync" / row["page_file"]).read_bytes()
    body = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
    record = msgspec.json.Decoder(float_hook=Decimal).decode(body)["data"][row["row_in_page"]]
    assert record["usageId"] == row["usage_id"]
    assert Decimal(record["amount"]) == row["amount"]


def test_money_adds_up(user: Path) -> None:
    rows = asked(user, QUERIES["money.sql"].read_text(encoding="utf-8"))
    (every,) = asked(user, "SELECT sum(total) AS total, count(*) AS bills FROM current.billing")
    assert sum(row["total"] for row in rows) == every["total"]
    assert sum(row["bills"] for row in rows) == every["bills"]


def test_what_changed_last_night_is_what_the_nights_differ_in(user: Path) -> None:
    rows = asked(user, QUERIES["changed.sql"].read_text(encoding="utf-8"))
    before, after = (
        {row["billing_id"]: row for row in asked(user, f"FROM history.billing_as_of('{night}')")}
        for night in nights.NIGHTS[-2:]
    )
    found = {what: {row["billing_id"] for row in rows if row["what"] == what} for what in WHATS}
    assert all(found.values())
    assert sum(map(len, found.values())) == len(rows)
    assert found["new"] == after.keys() - before.keys()
    changed = {name for name in after.keys() & before.keys() if after[name] != before[name]}
    assert found["restated"] == {
        name for name in changed if after[name]["valid_from"] == nights.NIGHTS[-1]
    }
    absent = asked(user, "FROM current.billing WHERE missing_since IS NOT NULL")
    assert found["missing"] == {row["billing_id"] for row in absent}


def test_each_restatement_is_shown_with_both_its_values(user: Path) -> None:
    rows = asked(user, QUERIES["restatements.sql"].read_text(encoding="utf-8"))
    ended = asked(user, "FROM history.billing WHERE why = 'restated'")
    assert len(rows) == len(ended) > 0
    values = {(row["billing_id"], row["restated_at"]): row for row in rows}
    for row in ended:
        shown = values[row["billing_id"], row["valid_to"]]
        assert (shown["total_before"], shown["revision_before"]) == (row["total"], row["revision"])
        assert shown["difference"] == shown["total_after"] - shown["total_before"]


def test_what_is_missing_is_in_no_table_or_marked(user: Path) -> None:
    rows = asked(user, QUERIES["missing.sql"].read_text(encoding="utf-8"))
    here = {row["billing_id"] for row in asked(user, "FROM current.billing")}
    gone = {row["billing_id"] for row in rows if row["state"] == "gone"}
    assert gone
    assert not gone & here
    assert {row["billing_id"] for row in rows} - gone <= here
    assert all(row["missing_since"] in nights.NIGHTS for row in rows)


def test_the_end_of_a_month_is_the_night_before_it(user: Path) -> None:
    rows = asked(user, QUERIES["month_end.sql"].read_text(encoding="utf-8"))
    (then,) = asked(
        user,
        "SELECT sum(total) AS total, count(*) AS bills FROM history.billing "
        "WHERE valid_from <= '2026-10-31 02:00:00+00' "
        "AND coalesce(valid_to, 'infinity') > '2026-10-31 02:00:00+00'",
    )
    assert sum(row["total_then"] for row in rows) == then["total"]
    assert sum(row["bills_then"] for row in rows) == then["bills"]
    assert any(row["difference"] for row in rows)


@pytest.mark.parametrize("destination", DESTINATIONS, ids=lambda each: each.name)
def test_every_destination_is_on_the_page(destination: Any) -> None:
    word = destination.name if destination.files else "NAME"
    assert f"| `{word}` |" in PAGE

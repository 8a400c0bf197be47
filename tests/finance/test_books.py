"""The files of the books: what they are of, what stays, and what they remember."""

import shutil
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from pipelines.app.checkup import run_checks
from pipelines.app.maintenance import rollback, verify_files
from pipelines.app.nightly import build_with_books, rebuild_with_books
from pipelines.cli.main import program
from pipelines.core.errors import ConfigurationError, NewerFormat, PartnerSyncError, StorageFailed
from pipelines.finance.books import make_books
from pipelines.finance.books_state import why_outdated
from pipelines.finance.reconciled import open_books
from pipelines.finance.sql import answer
from pipelines.metadata.tables import BreakRow
from pipelines.warehouse.books import Books, BooksFolder
from tests.cli.conftest import Cli
from tests.reconcile.books import bill, decide, home_with, line, publish, used
from tests.versions.homes import Stores

BREAKS = """
SELECT subject, state, owner, first_seen, gone_at, returned_at, difference
FROM reconciliation.breaks ORDER BY subject
"""

with_break = home_with([used("u")], [bill("b", line("u", "5.01"))])  # one break: a cent more


@pytest.fixture
def stores(with_break: Stores) -> Stores:
    with_break.configure()
    return with_break


def published(stores: Stores) -> Books:
    books = BooksFolder(stores.warehouse).published()
    assert books
    return books


def codes(stores: Stores) -> set[str]:
    return {each.check.code for each in run_checks(stores) if each.findings}


def bill_at(stores: Stores, amount: str) -> None:
    publish(stores, billing=[bill("b", line("u", amount))])


def test_every_view_works_in_a_copy_under_any_name(stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    copy = shutil.copy(published(stores).path, tmp_path / "empty" / "år 2026.duckdb")
    with duckdb.connect() as db:
        db.execute(f"ATTACH '{copy}' AS \"any name\" (READ_ONLY)")
        views = db.execute(
            "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'any name'"
        ).fetchall()
        assert {("finance", "open_breaks"), ("reconciliation", "summary")} <= {*views}
        for schema, view in views:
            db.execute(f'FROM "any name".{schema}.{view}').fetchall()
        months = db.execute('SELECT difference FROM "any name".finance.month_totals').fetchall()
        assert months == [(Decimal("0.01"),)]


def test_a_decision_changes_the_table_of_decisions_and_nothing_else(stores: Stores) -> None:
    before = published(stores)
    version = stores.warehouse.published()
    with BooksFolder(stores.warehouse).open_alone(before) as db:
        tables = contents(db)
    ((break_id,),) = stores.rows("SELECT break_id FROM reconciliation.breaks")
    decide(stores, "break_resolve", break_id)
    make_books(stores)
    assert stores.warehouse.published() == version
    now = published(stores)
    assert (now.version, now.number) == (before.version, before.number + 1)
    assert [*BooksFolder(stores.warehouse).every()] == [now]
    with BooksFolder(stores.warehouse).open_alone(now) as db:
        changed = {name for name, rows in contents(db).items() if rows != tables[name]}
    assert changed == {"reconciliation.decisions", "meta.books"}
    assert stores.rows("SELECT state FROM reconciliation.breaks") == [("resolved",)]
    assert stores.rows("SELECT open_breaks FROM reconciliation.summary") == [(0,)]
    assert stores.rows("SELECT count(*) FROM reconciliation.ageing") == [(0,)]


def contents(db: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    tables = db.execute(
        "SELECT concat(schema_name, '.', table_name) FROM duckdb_tables() "
        "WHERE database_name = 'books'"
    ).fetchall()
    return {name: db.execute(f"FROM books.{name} ORDER BY ALL").fetchall() for (name,) in tables}


@pytest.mark.long
def test_a_rollback_undoes_what_later_versions_remember(stores: Stores) -> None:
    first = stores.rows(BREAKS)
    bill_at(stores, "5.00")  # the break is gone
    gone = stores.rows(BREAKS)
    assert gone[0][4] is not None
    rollback(stores, 1, "wrong")
    assert stores.rows(BREAKS) == first
    with stores.metadata.transaction() as session:
        undone = [row.undone_at is not None for row in session.query(BreakRow)]
    assert undone == [False, True]
    rebuild_with_books(stores)
    assert stores.rows(BREAKS) == first
    bill_at(stores, "5.00")
    bill_at(stores, "5.01")
    (again,) = stores.rows(BREAKS)
    assert again[3] == first[0][3]
    assert again[5] is not None


@pytest.mark.long
def test_a_version_that_is_published_again_has_its_memory_again(stores: Stores) -> None:
    publish(stores, billing=[bill("b", line("u", "5.01")), bill("c", line("gone", "7.00"))])
    ((new,),) = stores.rows("SELECT break_id FROM reconciliation.breaks WHERE rule = 'not_used'")
    decide(stores, "break_resolve", new)
    publish(stores, usage=[used("u"), used("v")])
    before = stores.rows(BREAKS)
    assert "resolved" in {row[1] for row in before}
    stores.clock.now += timedelta(hours=1)
    rollback(stores, 1, "wrong")
    assert len(stores.rows(BREAKS)) == 1
    rollback(stores, 3, "it was right")
    assert stores.rows(BREAKS) == before
    rollback(stores, 1, "wrong")
    publish(stores, usage=[used("u")])  # version 4, which does not follow 2 and 3
    assert len(stores.rows(BREAKS)) == 1


@pytest.mark.long
def test_last_seen_is_right_whatever_was_decided(stores: Stores) -> None:
    last = "SELECT last_seen FROM reconciliation.breaks"
    bill_at(stores, "5.01")
    seen = stores.rows(last)
    ((break_id,),) = stores.rows("SELECT break_id FROM reconciliation.breaks")
    decide(stores, "break_assign", break_id, owner="bob")
    make_books(stores)
    bill_at(stores, "5.00")
    assert stores.rows(last) == seen


@pytest.mark.long
def test_books_that_lack_an_edited_mapping_or_a_decision_say_so(stores: Stores) -> None:
    cli = Cli(stores.home)
    assert cli("breaks").exit_code == 0
    ((break_id,),) = stores.rows("SELECT break_id FROM reconciliation.breaks")
    mapping = stores.home.mapping_file.read_text()
    for change, said in (
        (lambda: decide(stores, "break_assign", break_id, owner="bob"), "newest decisions"),
        (lambda: stores.home.mapping_file.write_text(f"{mapping}\n# edited"), "another mapping"),
    ):
        change()
        assert "books_outdated" in codes(stores)
        assert said in " ".join(cli("breaks", code=3).output.split())
        assert "Published books" in cli("reconcile").output
        assert "books_outdated" not in codes(stores)


@pytest.mark.long
def test_memory_is_written_only_where_it_changes(stores: Stores) -> None:
    for amount in ("5.01", "5.01", "5.02", "5.02"):
        bill_at(stores, amount)
    with stores.metadata.transaction() as session:
        rows = [(row.version, row.difference) for row in session.query(BreakRow)]
    assert [difference for _, difference in rows] == ["0.01", "0.02"]


@pytest.mark.long
def test_books_that_cannot_be_made_leave_the_last_ones_and_say_so(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = Cli(stores.home)
    before = published(stores)
    with monkeypatch.context() as patched:
        patched.setattr(BooksFolder, "link", refuse)
        bill_at(stores, "5.02")
        assert stores.warehouse.require_published().number == 2
    assert published(stores) == before
    with open_books(stores) as (version, _db):
        assert version.number == 1  # which is kept as long as the books are of it
    assert stores.rows(BREAKS, 1)[0][-1] == Decimal("0.01")
    assert "books_outdated" in codes(stores)
    said = " ".join(cli("breaks", code=3).output.split())
    assert "The books are of version 1, and analysts see version 2." in said
    assert "They were made at" in said
    assert "The books are of version 1" in " ".join(cli("report", code=3).output.split())
    build_with_books(stores)  # which finds no scan, but makes the books
    assert published(stores).version == 2
    assert stores.rows(BREAKS)[0][-1] == Decimal("0.02")
    assert "books_outdated" not in codes(stores)


def refuse(*_arguments: object) -> None:
    raise StorageFailed("The disk is full.", "Make room.")


@pytest.mark.long
def test_damaged_lost_and_newer_books_are_named_and_made_again(stores: Stores) -> None:
    cli = Cli(stores.home)
    folder = BooksFolder(stores.warehouse)
    for harm in (truncate, Path.unlink, write_newer):
        books = published(stores)
        books.path.chmod(0o600)
        harm(books.path)
        for command in ("breaks", "report", "verify", "status"):
            result = CliRunner().invoke(
                program.root, [command], env={"PARTNER_SYNC_HOME": str(stores.home.root)}
            )
            assert result.exit_code in {1, 2, 3}, (command, result.output)
            assert "Traceback" not in result.output
            assert "ooks" in result.output
        with pytest.raises((StorageFailed, NewerFormat, PartnerSyncError)):
            folder.verify(books)
        assert "Published books" in cli("reconcile").output
        assert cli("breaks").exit_code == 0


@pytest.mark.long
def test_damage_of_any_block_is_found_and_named(stores: Stores) -> None:
    books = published(stores)
    content = books.path.read_bytes()
    books.path.chmod(0o600)
    for at in range(3 * 4096 + 100, len(content), 41 * 4096):
        books.path.write_bytes(content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :])
        (problem,) = verify_files(stores)["damaged"]
        assert problem["message"].startswith("The books 1-1 ")
        said = read_breaks(stores)
        assert not said or "The books 1-1 cannot be read" in said
    books.path.write_bytes(content)
    assert verify_files(stores)["damaged"] == []


@pytest.mark.long
def test_books_that_somebody_changed_are_found_and_made_again(stores: Stores) -> None:
    """Every block can be read, so only the digest differs."""
    books = published(stores)
    books.path.chmod(0o600)
    with duckdb.connect(books.path) as db:
        db.execute("UPDATE reconciliation.month_facts SET bills = bills + 1")
    (problem,) = verify_files(stores)["damaged"]
    assert "changed after they were published" in problem["message"]
    assert "Published books" in Cli(stores.home)("reconcile").output
    assert verify_files(stores)["damaged"] == []


def read_breaks(stores: Stores) -> str:
    """Read the breaks; return why they cannot be read."""
    try:
        with open_books(stores) as (_version, db):
            db.execute("FROM reconciliation.breaks").fetchall()
    except PartnerSyncError as error:
        return f"{error} {error.remedy}"
    return ""


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


def write_newer(file: Path) -> None:
    with duckdb.connect(file) as db:
        db.execute("UPDATE meta.books SET format = 99")


def test_a_table_that_is_missing_is_not_blamed_on_the_format(stores: Stores) -> None:
    with pytest.raises(duckdb.CatalogException), open_books(stores) as (_version, db):
        db.execute("FROM reconciliation.nothing")


def test_sql_joins_both_files(stores: Stores) -> None:
    cli = Cli(stores.home)
    query = """
        SELECT used.partner, used.amount, count(*) AS rows FROM used_records AS used
        JOIN current.usage AS usage ON usage._key = used._key
        JOIN finance.open_breaks AS breaks ON breaks.partner_id = used.partner_id GROUP BY ALL
    """
    assert cli.json("sql", query) == [{"partner": "first Ltd", "amount": "5.00", "rows": 1}]
    assert cli.json("sql", "SELECT count(*) AS n FROM matches") == [{"n": 1}]
    assert cli.json("sql", "SELECT bill, set_apart FROM billed_lines")[0]["set_apart"] is None
    twice = cli.json("sql", "SELECT 1 AS x, 2 AS x")
    assert twice == [{"x": 1, "x_2": 2}]
    for change in ("DELETE FROM current.usage", "DROP TABLE reconciliation.rules"):
        assert "DuckDB:" in cli("sql", change, code=2).stderr


def test_a_mapping_that_cannot_be_read_leaves_the_last_books(stores: Stores) -> None:
    """It is read once: its digest, its text and what it says are of the same content."""
    before = BooksFolder(stores.warehouse).published()
    file = stores.home.mapping_file
    content = file.read_bytes()
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigurationError, match=r"Cannot read .*mapping\.toml"):
        make_books(stores)
    assert BooksFolder(stores.warehouse).published() == before
    assert "another mapping" in why_outdated(stores)
    file.rmdir()
    file.write_bytes(content)
    assert not make_books(stores).is_new


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16"])
def test_a_mapping_with_a_byte_order_mark_is_read_by_every_command(
    stores: Stores, mark: str
) -> None:
    """Editors of Windows write one. Books kept it, and commands that read their text crashed."""
    file = stores.home.mapping_file
    file.write_bytes(file.read_text().encode(mark))
    make_books(stores)
    cli = Cli(stores.home)
    assert cli.json("sql", "SELECT count(*) AS n FROM matches") == [{"n": 1}]
    cli("report")
    cli("export", "books", "--records")
    cli("close", "month", "2026-09", "--preparer=ann", "--reviewer=bob", "--accept-open=why")
    assert verify_files(stores)["damaged"] == []


@pytest.mark.parametrize("wrong", [b"[usage\n", b"\xff\xff", b'[usage]\nno_role = "amount"\n'])
def test_books_of_a_wrong_mapping_are_a_message_in_every_command(
    stores: Stores, wrong: bytes
) -> None:
    stores.home.mapping_file.write_bytes(wrong)
    make_books(stores)
    cli = Cli(stores.home)
    assert cli.json("sql", "SELECT count(*) AS n FROM current.usage") == [{"n": 1}]
    cli("report", code=3)
    cli("export", "books")
    assert "mapping propose" in cli("export", "books", "--records", "--folder=out", code=2).stderr
    assert "mapping.toml" in cli("close", "prepare", "2026-09", code=2).stderr


def test_no_value_is_lost_where_columns_have_one_name() -> None:
    with duckdb.connect() as db:
        (row,) = answer(db, "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a")
    assert row == {"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}

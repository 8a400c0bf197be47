"""`verify.py` in the copy of a closed month, as an auditor runs it: with duckdb alone."""

import hashlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.core.text import quote_text
from pipelines.finance.close import list_closes
from pipelines.finance.closing.journal import COPY_JOURNAL
from pipelines.finance.closing.verify import find_problems, read_sums
from pipelines.finance.reconcile.close_copy import MANIFEST
from tests.effort import EFFORT
from tests.finance.any_closes import closed_in_turn
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.reconcile.months import ACCOUNTS, BILLS, OCTOBER, TERMS, USAGE, close, publish_closed
from tests.versions.homes import Stores, goes_on_from, home_of

REWRITTEN = "manifest.json is not the one that was signed"
LATER = """
SELECT partner, currency, sum(if(side = 'usage', difference, -difference))
FROM reconciliation.corrections
WHERE month < DATE '{0}' AND posted_to > DATE '{0}'
GROUP BY ALL
"""
# Without site-packages, and with one folder in which there is only duckdb.
ALONE = (sys.executable, "-S", "-B", "verify.py")


@goes_on_from(publish_closed)
def publish_two(stores: Stores) -> None:
    """Close October, which takes a correction of September and has bills, a credit and fees.

    September has no journal, October has one.
    """
    mapping = TERMS + ACCOUNTS
    usage = [{**USAGE[0], "amount": "8.00"}, *USAGE[1:], used("x", "2.50", day="2026-10-06")]
    bills = [
        *BILLS,
        bill("c", line("late", "1.00"), line(None, "0.50"), month="2026-10-01"),
        bill("d", line("x", "2.50"), month="2026-10-01", kind="credit"),
        bill("e", line(None, "9.00"), month="2026-10-01", status="void"),
    ]
    publish(stores, mapping=mapping, usage=usage)
    publish(stores, mapping=mapping, partners=partners([FIRST]), billing=bills)
    close(stores, OCTOBER)


two = home_of(publish_two)


@pytest.fixture
def october(two: Stores, tmp_path: Path) -> Path:
    """The copy of October, alone in a folder; its files can be changed."""
    folder = shutil.copytree(two.home.closes / "2026-10" / "001", tmp_path / "from the auditor's")
    for file in folder.iterdir():
        file.chmod(0o600)
    return folder


def run(folder: Path, *options: str) -> tuple[int, str]:
    """Run `verify.py` of a copy, and return its exit code and what it prints."""
    modules = folder.with_name("modules")
    if not modules.exists():
        modules.mkdir()
        for file in Path(duckdb.__file__).parents[1].glob("*duckdb*"):
            (modules / file.name).symlink_to(file)
    environment = {"PYTHONPATH": str(modules), "HOME": str(folder), "PATH": os.defpath}
    done = subprocess.run(
        [*ALONE, *options],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=60,
    )
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout


def run_here(folder: Path, *options: str) -> tuple[int, str]:
    """Run `verify.py` of a copy as `run` does, in this process: that needs no start of Python."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["verify.py", *options])
        patch.setattr(sys, "path", [str(folder), *sys.path])
        with pytest.raises(SystemExit) as end:
            runpy.run_path("verify.py", run_name="__main__")
    return int(end.value.code or 0), printed.getvalue()


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def rewritten(folder: Path, **members: Any) -> None:
    """Let the manifest name the files as they are now."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    files = {file.name: sha256(file) for file in folder.iterdir() if file.name != MANIFEST}
    (folder / MANIFEST).write_text(json.dumps({**manifest, "sha256": files, **members}))


def change_rows(folder: Path, table: str, query: str) -> None:
    """Replace the rows of a table by those of a query of them; its first row has place 1."""
    name = quote_text(str(folder / f"{table}.parquet"))
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE rows AS SELECT *, row_number() OVER () AS place FROM {name}")
        changed = f"SELECT * EXCLUDE (place) FROM ({query})"
        db.execute(f"COPY ({changed}) TO {name} (FORMAT parquet)")


def add_one(column: str) -> str:
    """Return the query that adds 1 to an amount of the first row."""
    return f"SELECT * REPLACE (if(place = 1, {column} + 1, {column}) AS {column}) FROM rows"


def change_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


CHANGES_OF_FILES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:-1]),
    "another byte": change_byte,
}
CHANGES_OF_ROWS = {
    "a row deleted": "FROM rows WHERE place > 1",
    "a row twice": "FROM rows UNION ALL FROM rows WHERE place = 1",
    "two rows swapped": "FROM rows ORDER BY place = 2 DESC, place",
}
AMOUNTS = {
    "used": "amount",
    "billed": "amount",
    "summary": "used_amount",
    "breaks": "difference",
    "break_rows": "amount",
    "corrections": "difference",
    "opening": "opening",
    "rollforward": "closing",
    "entries": "amount",
    "open_items": "amount",
}


@pytest.mark.long
def test_an_intact_copy_is_verified_without_partner_sync(two: Stores, october: Path) -> None:
    signed = list_closes(two)[1]["manifest_sha256"]
    for options in ((), ("--manifest", signed)):
        code, text = run(october, *options)
        assert (code, len(text.splitlines()), text[:7]) == (0, 1, "intact:")
    assert (october / "verify.py").read_text().count("\n") <= 120
    before = json.loads((october / MANIFEST).read_bytes())["previous"]
    september = list_closes(two)[0]
    assert before == {
        "month": "2026-09",
        "number": 1,
        "manifest_sha256": september["manifest_sha256"],
    }
    assert sha256(october / "previous.json") == september["manifest_sha256"]


def numbers_of_rows(folder: Path) -> dict[str, int]:
    sums = json.loads((folder / MANIFEST).read_bytes())["sums"]
    return {table: sum(row["rows"] for row in rows) for table, rows in sums.items()}


@pytest.mark.long
def test_every_changed_file_is_found(october: Path) -> None:
    files = {file.name for file in october.iterdir()}
    assert {f"{table}.parquet" for table in numbers_of_rows(october)} <= files
    for name in sorted(files - {"verify.py"}):  # a changed script says what it likes
        for how, change in CHANGES_OF_FILES.items():
            copy = shutil.copytree(october, october.with_name("copy"))
            change(copy / name)
            code, text = run_here(copy)
            assert (code, name in text or "cannot be read" in text) == (1, True), (name, how, text)
            shutil.rmtree(copy)
    (october / "2026-10.csv").touch()
    assert run(october) == (1, "2026-10.csv is missing, was changed, or was added\n")


@pytest.mark.long
def test_every_changed_row_is_found_although_the_manifest_was_rewritten(october: Path) -> None:
    signed = sha256(october / MANIFEST)
    tables = numbers_of_rows(october)
    tables.pop("matches", None)  # no figure rests on it: the signed digest alone shows a change
    for table, rows in tables.items():
        changes = {**CHANGES_OF_ROWS, "another amount": add_one(AMOUNTS.get(table, "rows"))}
        for how, query in changes.items():
            if rows < 1 or (rows < 2 and "swapped" in how):
                continue
            copy = shutil.copytree(october, october.with_name("copy"))
            change_rows(copy, table, query)
            rewritten(copy)
            code, text = run_here(copy, "--manifest", signed)
            problems = text.splitlines()
            assert (code, problems.pop(0)) == (1, REWRITTEN), (table, how)
            # Figures show what they rest on, also without the signed digest.
            assert problems or "swapped" in how, (table, how)
            shutil.rmtree(copy)


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"), [(",7.00,", ",8.00,"), (",5100,", ",5200,"), ("2026-10,", "2026-09,")]
)
def test_a_changed_line_of_the_journal_is_found(october: Path, before: str, after: str) -> None:
    file = october / "journal.csv"
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after, 1))
    rewritten(october)
    code, text = run(october)
    assert (code, "journal line of" in text) == (1, True), text


@pytest.mark.long
def test_an_entry_that_is_forged_with_its_lines_is_found(october: Path) -> None:
    changes = {
        "journal entry": "(source = close AND debit IS NULL), '6.00', credit",
        "journal source": "(source <> close), source || 'x', source",
    }
    for problem, change in changes.items():
        copy = shutil.copytree(october, october.with_name("copy"))
        column = change.rpartition(" ")[2]
        forge_entries(copy, f"SELECT * REPLACE (if({change}) AS {column}) FROM rows")
        code, text = run(copy)
        assert (code, f"{problem} of" in text) == (1, True), text
        shutil.rmtree(copy)


@pytest.mark.long
def test_sides_accounts_and_dates_of_the_journal_follow_from_the_mapping(october: Path) -> None:
    for change in (
        "debit AS credit, credit AS debit",
        "CASE account WHEN '5100' THEN '2190' WHEN '2190' THEN '5100' ELSE account END AS account",
        "if(account = '2190', '2191', account) AS account",
        "(date::DATE + INTERVAL 1 MONTH)::DATE::VARCHAR AS date",
        "left(period, 5) || '12' AS period",
        "replace(close, '10-', '11-') AS close, replace(source, '2026-10-', '2026-11-') AS source",
    ):
        copy = shutil.copytree(october, october.with_name("copy"))
        forge_entries(copy, f"SELECT * REPLACE ({change}) FROM rows")
        code, text = run(copy)
        assert (code, "does not follow from [accounts]" in text) == (1, True), (change, text)
        shutil.rmtree(copy)


def forge_entries(copy: Path, query: str) -> None:
    """Change entries of a journal, and all that is written of them, as a wrong writer does."""
    change_rows(copy, "entries", query)
    with duckdb.connect() as db:
        lines = COPY_JOURNAL.format(
            entries=quote_text(str(copy / "entries.parquet")),
            file=quote_text(str(copy / "journal.csv")),
        )
        db.execute(lines)
        rewritten(copy, sums=read_sums(db, copy))


def test_a_forged_open_item_is_found(october: Path) -> None:
    change_rows(october, "open_items", add_one("amount"))
    with duckdb.connect() as db:
        rewritten(october, sums=read_sums(db, october))
    code, text = run(october)
    assert (code, "open items of" in text) == (1, True), text


def test_a_copy_without_open_items_is_verified(october: Path) -> None:
    (october / "open_items.parquet").unlink()
    sums = json.loads((october / MANIFEST).read_bytes())["sums"]
    rewritten(october, sums={name: rows for name, rows in sums.items() if name != "open_items"})
    assert run(october)[0] == 0


def test_nothing_is_imported_from_the_folder_of_the_copy(october: Path) -> None:
    modules = {
        *re.findall(r"^(?:import|from) (\w+)", (october / "verify.py").read_text(), re.MULTILINE)
    }
    assert {"duckdb", "json", "hashlib"} < modules
    for name in modules - {"sys"}:
        (october / f"{name}.py").write_text("print('intact'); raise SystemExit")
    code, text = run(october)
    assert (code, text.count("was added")) == (1, len(modules) - 1), text


def test_a_forged_sum_with_its_rows_is_found_by_the_signed_manifest(october: Path) -> None:
    signed = sha256(october / MANIFEST)
    change_rows(october, "used", add_one("amount"))
    more = "used_amount + 1 AS used_amount, difference - 1 AS difference"
    change_rows(october, "summary", f"SELECT * REPLACE ({more}) FROM rows")
    balances = "if(currency = 'EUR', {0} + 1, {0}) AS {0}"
    more = ", ".join(balances.format(name) for name in ("used", "closing"))
    change_rows(october, "rollforward", f"SELECT * REPLACE ({more}) FROM rows")
    place = "(SELECT min(place) FROM rows WHERE currency = 'EUR' AND reason <> 'no month')"
    more = f"if(place = {place}, amount + 1, amount) AS amount"
    change_rows(october, "open_items", f"SELECT * REPLACE ({more}) FROM rows")
    with duckdb.connect() as db:
        rewritten(october, sums=read_sums(db, october))
    assert run(october)[0] == 0
    assert run(october, "--manifest", signed) == (1, f"{REWRITTEN}\n")


@pytest.mark.slow
def test_balances_of_any_months_go_on_from_those_before(tmp_path: Path) -> None:
    for seed in range(3 * EFFORT):
        for stores, books, folder in closed_in_turn(tmp_path, seed):
            assert [*find_problems(folder, sha256(folder / MANIFEST))] == [], (seed, folder)
            month = folder.parent.name
            manifest = json.loads((folder / MANIFEST).read_bytes())
            expected = Counter(books.unbilled(month))
            # What is posted to later months is in their balances.
            for partner, currency, amount in stores.rows(LATER.format(f"{month}-01")):
                expected[partner, currency] -= amount
            closing = balances(folder, "closing")
            assert closing == {key: sum_ for key, sum_ in expected.items() if sum_}, (seed, folder)
            before = manifest["previous"]
            if before is None:
                assert balances(folder, "opening") == {}
                continue
            copy = stores.home.closes / before["month"] / f"{before['number']:03}"
            assert balances(folder, "opening") == balances(copy, "closing"), (seed, folder)


def balances(folder: Path, column: str) -> dict[tuple[str, str], Decimal]:
    file = folder / "rollforward.parquet"
    query = f"SELECT partner, currency, {column} FROM '{file}' WHERE {column} <> 0"
    return {(row[0], row[1]): row[2] for row in duckdb.sql(query).fetchall()}

"""A catalog of twenty homes, of which one publishes: each figure is that of its home, and whole."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.app.catalog import write_catalog
from pipelines.config.home import Home
from tests.reconcile.books import FIRST, bill, decide, line, partners, publish, used
from tests.versions.homes import Stores

pytestmark = pytest.mark.slow

HOMES = 20
WITHOUT_USAGE = 7
BUSY = 3  # it publishes while it is read
VERSIONS = 12
OF_HOMES = """
SELECT usage._home, sum(usage.amount), count(*)
FROM current.usage AS usage
GROUP BY ALL
ORDER BY ALL
"""
# Rows, their history and what the books say of them, in one query: version n of the busy home has n
# rows of 1.00, none of which is billed.
WHOLE = """
SELECT
    (SELECT count(*) FROM current.usage WHERE _home = $home),
    (SELECT sum(amount) FROM current.usage WHERE _home = $home),
    (SELECT count(*) FROM history.usage WHERE _home = $home AND _valid_to IS NULL),
    (SELECT sum(used) FROM finance.open_breaks WHERE _home = $home),
    (SELECT sum(used) FROM finance.partner_months WHERE _home = $home),
    (SELECT sum(used_amount) FROM reconciliation.month_facts WHERE _home = $home)
"""
VIEWS = """
SELECT views.schema_name, views.view_name
FROM duckdb_views() AS views
WHERE NOT views.internal
"""


def name_of(number: int) -> str:
    return f"home-{number:02}"


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Stores]]:
    """Twenty published homes with other amounts, bills and breaks, one of them without usage."""
    folder = tmp_path_factory.mktemp("homes")
    made = list[Stores]()
    for number in range(HOMES):
        stores = Stores.open(folder / name_of(number))
        stores.configure()
        made.append(stores)
        usage = [used(f"u{each}", f"{number}.{each:02}") for each in range(1 + number % 4)]
        bills = [bill("b", line("u0", f"{number + number % 2}.00"))]
        if number == BUSY:
            usage = [used("u0", "1.00")]
            bills = [bill("b", line(None, "1.00"))]
        if number == WITHOUT_USAGE:
            publish(stores, partners=partners([FIRST]))
        else:
            publish(stores, partners=partners([FIRST]), usage=usage, billing=bills)
    yield made
    for stores in made:
        stores.metadata.close()


def rows_of(file: Path, query: str, **values: Any) -> list[tuple[Any, ...]]:
    with closing(duckdb.connect(file, read_only=True)) as db:
        return db.execute(query, values).fetchall()


def of_homes(homes: list[Stores]) -> list[tuple[Any, ...]]:
    """Return what each home says of its usage itself."""
    query = "SELECT sum(amount), count(*) FROM current.usage"
    found = list[tuple[Any, ...]]()
    for stores in homes:
        if stores is not homes[WITHOUT_USAGE]:
            found += [(stores.home.root.name, *row) for row in rows_of(stores.home.link, query)]
    return found


def own_views(home: Home) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Return the rows of each view of the books of a home.

    Its file is closed before the catalog is read: DuckDB 1 can fail where a process has it open
    under its own name, too (docs/analysts.md).
    """
    with closing(duckdb.connect(home.books_link, read_only=True)) as books:
        return {
            (schema, view): books.execute(f"FROM {schema}.{view}").fetchall()
            for schema, view in books.execute(VIEWS).fetchall()
        }


def assert_same_views(db: duckdb.DuckDBPyConnection, home: Home) -> None:
    """Compare each view of the books of a home with its rows in the catalog."""
    own = own_views(home)
    assert len(own) >= 3
    for (schema, view), rows in own.items():
        query = f"SELECT * EXCLUDE (_home) FROM hub.{schema}.{view} WHERE _home = $home"
        shown = db.execute(query, {"home": home.root.name}).fetchall()
        assert sorted(shown, key=repr) == sorted(rows, key=repr), (home.root, schema, view)


def test_figures_are_those_of_the_homes_also_after_the_file_moved(
    homes: list[Stores], tmp_path: Path
) -> None:
    busy = homes[BUSY]
    decide(homes[2], "break_assign", *first_break(homes[2]), owner="ann")
    publish(homes[2], partners=partners([FIRST, "another"]))
    written = tmp_path / "all.duckdb"
    assert len(write_catalog(written, busy.home.root.parent)) == HOMES
    publish(busy, usage=[used("u0", "1.00"), used("u1", "1.00")])
    file = tmp_path / "elsewhere" / "all.duckdb"
    file.parent.mkdir()
    shutil.move(written, file)
    assert rows_of(file, OF_HOMES) == of_homes(homes)
    with closing(duckdb.connect()) as db:
        db.execute(f"ATTACH '{file}' AS hub (READ_ONLY)")  # under another name
        for stores in homes:
            assert_same_views(db, stores.home)
    owners = "SELECT DISTINCT _home FROM reconciliation.breaks WHERE owner = 'ann'"
    assert rows_of(file, owners) == [(name_of(2),)]


def first_break(stores: Stores) -> tuple[str]:
    ((break_id,),) = stores.rows("SELECT min(break_id) FROM reconciliation.breaks")
    return (break_id,)


def test_a_query_sees_one_version_and_one_file_of_books_of_each_home(
    homes: list[Stores], tmp_path: Path
) -> None:
    busy = homes[BUSY]
    file = tmp_path / "all.duckdb"
    write_catalog(file, busy.home.root.parent)
    failures = list[Exception]()

    def publish_often() -> None:
        try:
            for last in range(1, VERSIONS):
                records = [used(f"u{each}", "1.00") for each in range(last + 1)]
                publish(busy, usage=records)
        except Exception as error:  # noqa: BLE001 - it is raised in the test
            failures.append(error)

    others = [row for row in of_homes(homes) if row[0] != name_of(BUSY)]
    publisher = threading.Thread(target=publish_often)
    publisher.start()
    seen = set[int]()
    with closing(duckdb.connect(file, read_only=True)) as db:
        while publisher.is_alive():
            ((rows, amount, current, *books),) = db.execute(
                WHOLE, {"home": name_of(BUSY)}
            ).fetchall()
            assert (amount, current) == (rows, rows)
            assert len(set(books)) == 1, books
            # Books follow their version.
            assert rows - books[0] in {0, 1}
            seen.add(rows)
            all_rows = db.execute(OF_HOMES).fetchall()
            assert [row for row in all_rows if row[0] != name_of(BUSY)] == others
    publisher.join()
    assert failures == []
    assert len(seen) > VERSIONS // 2
    assert rows_of(file, WHOLE, home=name_of(BUSY)) == [(VERSIONS,) * 6]

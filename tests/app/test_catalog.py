"""One file shows what all homes have published, exactly, and always of whole versions."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.app.catalog import common_type, write_catalog
from pipelines.config.homes import find_homes
from pipelines.core.errors import ConfigurationError, StorageFailed
from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import Reading, Stores, made_home, read

SUM = """
SELECT usage._home, sum(usage.amount), count(*)
FROM current.usage AS usage
GROUP BY ALL
ORDER BY ALL
"""
LARGE = "123456789012345678901234567.25"


def ask(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(duckdb.connect(file, read_only=True)) as db:
        return db.execute(query).fetchall()


def open_home(folder: Path) -> Stores:
    stores = Stores.open(folder)
    stores.configure()
    return stores


@dataclass(frozen=True)
class Homes:
    """A folder of homes, and one of them."""

    folder: Path
    two: Stores


def publish_one(stores: Stores) -> None:
    stores.configure()
    publish(stores, partners=partners([FIRST]), usage=[used("u"), used("v", "0.50")])
    publish(stores, billing=[bill("b", line("u", "4.00"))])


def publish_two(stores: Stores) -> None:
    stores.configure()
    publish(stores, usage=[used("u", "1.2345", more="x"), used("w", LARGE)])


def publish_partners(stores: Stores) -> None:
    stores.configure()
    publish(stores, partners=partners(["p", "q"]))


@pytest.fixture
def homes(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Homes]:
    """Yield a folder of homes with other types, other columns, without usage, and not published."""
    folder = tmp_path / "homes"
    folder.mkdir()
    one = made_home(tmp_path_factory, publish_one).copied(folder / "it's one")
    two = made_home(tmp_path_factory, publish_two).copied(folder / "two")
    made_home(tmp_path_factory, publish_partners).copied(folder / "without-usage")
    open_home(folder / "never-synced")
    yield Homes(folder, two)
    for stores in (one, two):
        stores.metadata.close()


@pytest.mark.long
def test_sums_are_those_of_the_homes(homes: Homes, tmp_path: Path) -> None:
    file = tmp_path / "all.duckdb"
    (homes.folder / "no home").mkdir()
    rows = write_catalog(file, homes.folder)
    assert [(row["home"], bool(row["message"])) for row in rows] == [
        ("it's one", False),
        ("never-synced", True),
        ("two", False),
        ("without-usage", False),
    ]
    total = Decimal("123456789012345678901234568.4845")
    assert ask(file, SUM) == [("it's one", Decimal("5.5000"), 2), ("two", total, 2)]
    assert ask(file, "SELECT _home, count(*) FROM current.partners GROUP BY ALL ORDER BY ALL") == [
        ("it's one", 1),
        ("without-usage", 2),
    ]
    assert ask(file, "SELECT _home, more FROM current.usage WHERE more IS NOT NULL") == [
        ("two", "x")
    ]
    assert ask(file, "SELECT DISTINCT _home FROM reconciliation.break_facts") == [("it's one",)]
    views = "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal"
    for schema, view in ask(file, views):
        ask(file, f'FROM {schema}."{view}"')
    shown = "SELECT _home, cause FROM finance.open_breaks ORDER BY _home, cause"
    assert {home for home, _cause in ask(file, shown)} == {"it's one"}


@pytest.mark.long
def test_it_shows_what_is_published_later_and_moves(homes: Homes, tmp_path: Path) -> None:
    write_catalog(tmp_path / "all.duckdb", homes.folder)
    (tmp_path / "elsewhere").mkdir()
    file = Path(shutil.move(tmp_path / "all.duckdb", tmp_path / "elsewhere" / "my all.duckdb"))
    stores = homes.two
    large = used("w", "100.0000")
    publish(stores, usage=[used("u", "7.0000", more="x"), large])
    assert ask(file, SUM)[1] == ("two", Decimal("107.0000"), 2)
    publish(stores, usage=[used("u", "7.00005", more="x"), large])
    with pytest.raises(
        duckdb.Error, match=r"amount of home two has another type .* catalog` again"
    ):
        ask(file, SUM)
    write_catalog(file, homes.folder)
    assert ask(file, SUM)[1] == ("two", Decimal("107.00005"), 2)


@pytest.mark.long
def test_nothing_is_written_for_a_home_that_cannot_be_read(homes: Homes, tmp_path: Path) -> None:
    file = tmp_path / "all.duckdb"
    write_catalog(file, homes.folder)
    before = file.read_bytes()
    version = (homes.folder / "two" / "warehouse.duckdb").resolve()
    version.chmod(0o600)
    version.write_bytes(b"no database")
    with pytest.raises(StorageFailed):
        write_catalog(file, homes.folder)
    assert file.read_bytes() == before
    (homes.folder / "around").symlink_to("around")  # it cannot be read: perhaps it is a home
    assert "around" in find_homes(homes.folder)
    assert {each.name for each in tmp_path.iterdir()} == {"homes", "all.duckdb"}


@pytest.mark.long
def test_it_replaces_only_a_catalog_and_counts_a_home_once(homes: Homes, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    with pytest.raises(ConfigurationError, match="exists, and is no catalog"):
        write_catalog(file, homes.folder)
    assert file.read_text() == "mine"
    with pytest.raises(ConfigurationError, match="There is no home in"):
        write_catalog(tmp_path / "all.duckdb", tmp_path / "homes" / "two")
    file = tmp_path / "all.duckdb"
    again = homes.folder / "two-again"
    again.symlink_to("two")
    with pytest.raises(ConfigurationError, match="two and two-again are one home"):
        write_catalog(file, homes.folder)
    assert not file.exists()
    again.unlink()
    shown = Cli(homes.two.home)("catalog", str(file), "--homes", str(homes.folder)).stdout
    assert "never-synced" in shown
    assert "Open it with `duckdb -readonly " in shown


TYPES = st.sampled_from(["BIGINT", "DECIMAL(38,2)", "DECIMAL(38,7)", "DECIMAL(20,0)", "HUGEINT"])
NUMBERS = st.decimals(-(10**12), 10**12, places=7)


@pytest.mark.long
@given(st.lists(st.tuples(TYPES, NUMBERS), min_size=1))
def test_a_common_type_holds_every_number_exactly(given_values: list[tuple[str, Decimal]]) -> None:
    wanted = common_type(kind for kind, _value in given_values)
    with closing(duckdb.connect()) as db:
        for kind, value in given_values:
            query = f"SELECT CAST({value} AS {kind}), CAST(CAST({value} AS {kind}) AS {wanted})"
            ((own, common),) = db.execute(query).fetchall()
            assert own == common


def test_types_that_differ_otherwise_become_text() -> None:
    assert common_type(["DATE", "DATE"]) == "DATE"
    assert common_type(["DATE", "VARCHAR"]) == "VARCHAR"
    assert common_type(["DECIMAL(38,2)", "VARCHAR"]) == "VARCHAR"
    assert common_type(["DOUBLE", "BIGINT"]) == "VARCHAR"


@pytest.mark.long
def test_a_version_that_is_replaced_while_it_is_read_stays_whole(
    homes: Homes, tmp_path: Path
) -> None:
    file = tmp_path / "all.duckdb"
    write_catalog(file, homes.folder)
    stores = homes.two
    for number in range(3):
        others = [used(f"n{each}", "1.0000", more="x") for each in range(number)]
        records = [used("u", "1.0000", more="x"), used("w", "1.0000"), *others]
        read(stores, Reading(records, "usage"))
        publish(stores)
        assert ask(file, SUM)[1] == ("two", Decimal(number + 2), number + 2)

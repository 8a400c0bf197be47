"""Books that begin as earlier ones are equal to books that are made from nothing."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.errors import PartnerSyncError
from pipelines.core.files import write_durably
from pipelines.finance.books import make_books
from pipelines.finance.books_state import state_of, wanted
from pipelines.finance.close import close_month, reopen_month
from pipelines.finance.inputs import read_inputs, standing_closes
from pipelines.metadata.tables import BreakRow, CorrectionRow
from pipelines.versions.build import build
from pipelines.versions.rollback import roll_back
from pipelines.warehouse.books import BooksFolder
from tests.effort import EFFORT
from tests.reconcile.any_books import Books, Spelling, balanced
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, used
from tests.reconcile.months import SERVICE
from tests.reconcile.test_any_books import BY_MONTH, BY_USAGE, change
from tests.versions.homes import DAY, MadeHome, Reading, Stores, home_of, read

ANY = {"max_deleted_share": 1, "allow_empty": True}
STREAMS = dict.fromkeys(("partners", "usage", "billing"), ANY)
CONNECTIONS = ("acme-0001", "acme-0002", "acme-0003", "acme-0004", "zen")
NAMES = ("100", "101", "102", "103")  # of partners, the same ones of each connection
MAPPINGS = (
    BY_USAGE,
    BY_MONTH,
    f"grace_days = 45\n{BY_MONTH}",
    f"{BY_USAGE}\n[tolerance]\nmonth_minor = 100\n",
)
AUGUST = dict(used("v", day="2026-08-10"))
THREE = ("acme-0001", "acme-0002", "zen")
KINDS = ("break_assign", "break_resolve", "break_reopen")
# They say when the books before were made; after a decision, nothing is found again.
OF_MAKING = {"reconciliation.basis", "reconciliation.breaks"}
IN_PART = "changed connection"


def contents(stores: Stores) -> dict[str, Any]:
    """Return the rows, columns and comments of every table and view of the published books."""
    folder = BooksFolder(stores.warehouse)
    books = folder.published()
    assert books
    found: dict[str, Any] = {}
    with folder.open_alone(books) as db:
        for kind in ("table", "view"):
            about = (
                f"SELECT schema_name, {kind}_name, comment FROM duckdb_{kind}s() "
                "WHERE database_name = 'books' AND NOT internal"
            )
            for schema, name, comment in db.execute(about).fetchall():
                rows = db.execute(f"FROM books.{schema}.{name} ORDER BY ALL").fetchall()
                found[f"{schema}.{name}"] = (comment, rows)
        columns = "SELECT table_name, column_name, data_type, comment FROM duckdb_columns()"
        found["columns"] = db.execute(f"{columns} ORDER BY ALL").fetchall()
    return found


def remembered(stores: Stores) -> list[Any]:
    with stores.metadata.transaction() as session:
        rows = [*session.query(BreakRow), *session.query(CorrectionRow)]
        return sorted(
            str(
                {name: value for name, value in vars(row).items() if name[:3] not in {"_sa", "num"}}
            )
            for row in rows
        )


def has_same_facts(stores: Stores) -> bool:
    """Return whether only decisions are newer than the published books."""
    state = state_of(stores, BooksFolder(stores.warehouse).published())
    aim = wanted(stores.warehouse.require_published(), read_inputs(stores))
    return state is not None and state.has_facts_of(aim)


def check(stores: Stores, folder: Path) -> bool:
    """Make books, and the same from nothing in a copy of the home; return whether they are new."""
    copy = MadeHome(stores.home.root, stores.clock.now).copied(folder)
    is_decided = has_same_facts(stores)
    made = make_books(stores)
    if made.is_new:
        assert make_books(copy, again=True).is_new
        now = contents(stores)
        anew = contents(copy)
        assert now.keys() == anew.keys()
        for name in now.keys() - (OF_MAKING if is_decided else set()):
            assert now[name] == anew[name], name
        assert remembered(stores) == remembered(copy)
    copy.metadata.close()
    return made.is_new


class Home:
    """A home with random books of several connections, and what may happen to it."""

    def __init__(self, stores: Stores, seed: int) -> None:
        self.stores = stores
        self.chance = Random(seed)
        self.seed = seed
        self.spelling = Spelling(self.chance)
        self.books: dict[str, list[Books]] = {}
        for name in CONNECTIONS:
            stores.configure(name, **SERVICE)
            self.books[name] = [balanced(self.chance, partner) for partner in NAMES]
            self.read(name)
        self.map()

    def read(self, name: str) -> None:
        """Read some lists of a connection, with changes."""
        if self.chance.random() < 0.1:
            self.spelling = Spelling(self.chance)
        if self.chance.random() < 0.2:
            self.books[name] = [balanced(self.chance, partner) for partner in NAMES]
        books = [change(self.chance, each, self.seed) for each in self.books[name]]
        spelling = self.spelling
        lists = {
            "partners": [spelling.partner(each) for each in NAMES],
            "usage": [spelling.used(each) for one in books for each in one.usage],
            "billing": [spelling.bill(each) for one in books for each in one.bills],
        }
        chosen = [*lists] if self.chance.random() < 0.5 else [self.chance.choice([*lists])]
        for stream in chosen:
            complete = self.chance.random() < 0.9
            reading = Reading(lists[stream], stream, name, complete=complete, page_size=50)
            read(self.stores, reading)

    def read_some(self) -> None:
        self.stores.clock.now += self.chance.choice([timedelta(), DAY, 10 * DAY])
        for name in self.chance.sample(CONNECTIONS, self.chance.choice([1, 1, 1, 2, 3])):
            self.read(name)
        build(self.stores)

    def map(self) -> None:
        mapping = self.chance.choice(MAPPINGS)
        write_durably(self.stores.home.mapping_file, mapping.encode())

    def decide(self) -> None:
        breaks = self.stores.rows("SELECT break_id FROM reconciliation.breaks ORDER BY ALL")
        if breaks:
            owner = self.chance.choice(["ann", "bob"])
            decide(
                self.stores, self.chance.choice(KINDS), self.chance.choice(breaks)[0], owner=owner
            )

    def close(self) -> None:
        month = date(2026, self.chance.choice([7, 8, 9]), 1)
        with suppress(PartnerSyncError):
            close_month(self.stores, month, "ann", "bob")

    def reopen(self) -> None:
        for close in standing_closes(self.stores).values():
            reopen_month(self.stores, close.month, "ann", "wrong")
            return

    def roll_back(self) -> None:
        versions = [version.number for version in self.stores.warehouse.versions()]
        roll_back(self.stores, self.chance.choice(versions), "wrong")

    def step(self) -> None:
        """Let one thing happen."""
        if self.chance.random() < 0.6:
            self.read_some()
            return
        actions: list[Callable[[], None]] = [
            self.decide, self.decide, self.close, self.close, self.reopen, self.roll_back, self.map,
        ]  # fmt: skip
        self.chance.choice(actions)()


def publish_three(stores: Stores) -> None:
    """Publish lists of three connections, with the same identifiers."""
    write_durably(stores.home.mapping_file, MAPPING.encode())
    for name in THREE:
        stores.configure(name, **SERVICE)
        lists = {
            "partners": partners([FIRST]),
            "usage": [used("u"), AUGUST],
            "billing": [bill("b", line("u", "5.01"))],
        }
        for stream, records in lists.items():
            read(stores, Reading(records, stream, name))
    build_with_books(stores)


three = home_of(publish_three)


@pytest.mark.long
def test_books_begin_as_those_of_connections_that_did_not_change(
    three: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    close_month(three, date(2026, 8, 1), "ann", "bob")
    make_books(three)
    three.clock.now += 10 * DAY  # breaks of all are older, and more severe
    read(three, Reading([used("u"), AUGUST | {"amount": "7.00"}], "usage", THREE[1]))
    build(three)
    assert check(three, tmp_path / "copy")
    assert "reconciling 1 changed connection" in caplog.text
    ages = "SELECT connection, age_days FROM reconciliation.breaks WHERE rule = 'different'"
    assert {age > 10 for _, age in three.rows(ages)} == {True}
    posted = "SELECT connection, difference FROM finance.corrections"
    assert three.rows(posted) == [(THREE[1], Decimal("2.00"))]


@pytest.mark.long
def test_books_of_all_are_made_where_rows_of_all_were_written(
    three: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    read(three, Reading([used("u", "6.001"), AUGUST], "usage", THREE[1]))
    build(three)
    assert check(three, tmp_path / "copy")
    assert "changed connection" not in caplog.text


@pytest.mark.long
def test_books_of_all_are_made_where_values_are_read_otherwise(
    three: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One value that its column does not take: amounts of all have more digits then."""
    caplog.set_level("INFO")
    usage = three.settings.streams["usage"].model_copy(update={"contract": "discard"})
    fixed = three.changed(streams={**three.settings.streams, "usage": usage})
    read(fixed, Reading([used("u", "5.0001"), AUGUST], "usage", THREE[1]))
    build(fixed)
    assert check(fixed, tmp_path / "copy")
    assert "columns have other types" in caplog.text


@pytest.mark.long
def test_books_of_all_are_made_where_breaks_are_remembered_otherwise(
    three: Stores, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A rollback undoes what later books remember, of all connections."""
    caplog.set_level("INFO")
    read(three, Reading([used("u", "6.00"), AUGUST], "usage", THREE[1]))
    build_with_books(three)
    # August is no break any more; it is one again after the rollback.
    mapping = f"{MAPPING}\n[tolerance]\nline_minor = 5\n"
    write_durably(three.home.mapping_file, mapping.encode())
    make_books(three)
    roll_back(three, 1, "wrong")
    caplog.clear()
    assert check(three, tmp_path / "copy")
    assert "remembered otherwise" in caplog.text


def run(folder: Path, seed: int, steps: int) -> None:
    home = Home(Stores.open(folder / "home", streams=STREAMS), seed)
    build(home.stores)
    for _at in range(steps):
        with TemporaryDirectory(dir=folder) as copy:
            check(home.stores, Path(copy) / "home")
        home.step()
    home.stores.metadata.close()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_books_of_what_changed_are_those_of_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    for seed in range(EFFORT):
        with TemporaryDirectory() as folder:
            try:
                run(Path(folder), seed, 25)
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
    assert caplog.text.count(IN_PART) > 4 * EFFORT

"""What tells the rows of a scan apart: a key that holds on every page, else all that they say."""

import pytest

from pipelines.errors import ContractBroken
from pipelines.state import journal, registry
from pipelines.state.proof import Grade
from pipelines.state.registry import Pin
from tests.warehouse.conftest import Warehouse
from tests.warehouse.listed import DAY, KNOWN, Listed, Record, Scans, numbered, values

# Records of a first scan (pages of 10 share 3), the key it settles, and how many rows there are.
THIRTY = [{"id": n, "thingId": f"t{n}"} for n in range(30)]
SETTLED: list[tuple[list[Record], str | None, int]] = [
    (THIRTY, "id", 30),
    ([each | {"id": None} if each["id"] == 25 else each for each in THIRTY], "thingId", 30),
    (
        [{"thingId": each["thingId"]} if each["id"] == 25 else each for each in THIRTY],
        "thingId",
        30,
    ),
    ([each | {"id": 1 + n // 2} for n, each in enumerate(THIRTY)], "thingId", 30),
    ([each | {"id": min(22, n)} for n, each in enumerate(THIRTY)], "thingId", 30),
    ([{"name": f"n{n}"} for n in range(30)], None, 30),
    ([each | {"id": [n]} for n, each in enumerate(numbered(30))], None, 30),
]


@pytest.mark.parametrize(("records", "key", "rows"), SETTLED)
def test_a_key_that_fails_on_a_later_page_is_replaced_without_a_request(
    warehouse: Warehouse, records: list[Record], key: str | None, rows: int
) -> None:
    scans, listed = Scans(warehouse), Listed(records)
    row = scans.scan(listed)
    assert (row.proof.key, row.proof.inferred) == (key, True)
    assert len(listed.asked) == row.proof.requests == 5  # as if it had been known
    assert row.proof.grade is Grade.COMPLETE
    assert row.proof.rows == rows
    assert len(scans.folded(row)) == rows
    assert registry.pin(warehouse.ledger, "default", "things") == Pin(key, row.scan)


def test_a_key_is_not_settled_by_an_empty_list(warehouse: Warehouse) -> None:
    assert Scans(warehouse).scan(Listed([])).proof.grade is Grade.SNAPSHOT
    assert registry.pin(warehouse.ledger, "default", "things") is None


@pytest.mark.parametrize(("missing", "fails"), [(1, False), (3, True)])
def test_rows_without_the_known_key_are_set_aside_up_to_one_in_a_hundred(
    warehouse: Warehouse, missing: int, *, fails: bool
) -> None:
    records = numbered(200)
    for row in range(missing):
        records[row * 50 + 5] = {"name": "no key"}
    scans = Scans(warehouse)
    if fails:
        with pytest.raises(
            ContractBroken, match="things: 3 of 200 rows set aside: they have no id"
        ):
            scans.scan(Listed(records, limit=100), KNOWN)
        state = journal.latest_scan(warehouse.ledger, "default", "things", DAY)
        assert state is not None
        assert state.status == "unproven"
    else:
        assert scans.scan(Listed(records, limit=100), KNOWN).proof.grade is Grade.COMPLETE


# Records without a key, the grade, and in how many readings it was found.
KEYLESS: list[tuple[list[str], Grade, int]] = [
    ([f"n{n}" for n in range(57)], Grade.COMPLETE, 1),
    (["same"] * 57, Grade.COMPLETE, 2),
    (["a", "b"] * 28, Grade.COMPLETE, 2),
    ([f"n{n // 2}" for n in range(57)], Grade.COMPLETE, 2),
    ([f"n{n % 20}" for n in range(57)], Grade.COMPLETE, 2),
    (["same"] * 10, Grade.SNAPSHOT, 1),
]


@pytest.mark.parametrize(("names", "grade", "readings"), KEYLESS)
def test_equal_records_without_a_key_are_all_there_and_none_twice(
    warehouse: Warehouse, names: list[str], grade: Grade, readings: int
) -> None:
    scans = Scans(warehouse)
    row = scans.scan(Listed([{"name": name} for name in names]))
    assert (row.proof.grade, row.proof.chains) == (grade, readings)
    assert row.proof.rows == len(names)
    assert values(scans.folded(row), "name") == sorted(names)


def test_equal_records_that_change_meanwhile_are_never_complete(warehouse: Warehouse) -> None:
    def change(records: list[Record], number: int) -> None:
        if number:
            del records[0]

    listed = Listed([{"name": f"n{n % 7}"} for n in range(150)], change=change)
    assert Scans(warehouse).scan(listed).proof.grade is Grade.PARTIAL


def test_a_field_that_is_unique_on_each_page_only_is_not_the_key(warehouse: Warehouse) -> None:
    """Its values are those of many records: the list has many more places than values."""
    scans, listed = Scans(warehouse), Listed([{"id": n % 10, "thingId": n} for n in range(100)])
    row = scans.scan(listed)
    assert (row.proof.key, row.proof.grade, row.proof.rows) == ("thingId", Grade.COMPLETE, 100)
    assert values(scans.folded(row), "thing_id") == list(range(100))


def test_a_few_rows_without_the_likeliest_key_do_not_change_it_page_by_page(
    warehouse: Warehouse,
) -> None:
    """It is decided over the whole list: the first page alone would speak against it."""
    without = {3, 5}  # of 300
    records = [{"id": None if n in without else n, "thingId": n // 2} for n in range(300)]
    scans, listed = Scans(warehouse), Listed(records, limit=50)
    row = scans.scan(listed)
    assert (row.proof.key, row.proof.grade) == ("id", Grade.COMPLETE)
    assert len(listed.asked) == row.proof.requests <= 8
    assert len(scans.folded(row)) == 298

"""What is published, as frames: every digit, one version as long as it is open."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from pipelines.clock import SYSTEM
from pipelines.errors import NothingPublished
from pipelines.state.versions import Rollback
from pipelines.warehouse import frames, published
from pipelines.warehouse.database import scalar
from pipelines.warehouse.publish import Edition, publish, roll_back
from tests.virtual import EPOCH
from tests.warehouse.conftest import Warehouse

AMOUNT = "12345678901234567.89"


def night(warehouse: Warehouse, *amounts: str) -> None:
    rows = ", ".join(f'{{"id": {i}, "amount": {each}}}' for i, each in enumerate(amounts))
    warehouse.fold(warehouse.manifest(f"[{rows}]"))
    assert publish(warehouse.work, warehouse.ledger, Edition("run", 3), SYSTEM)


def test_a_decimal_keeps_every_digit_and_its_sum_too(warehouse: Warehouse) -> None:
    night(warehouse, AMOUNT, "0.01")
    with frames.connect(warehouse.home.root) as db:
        frame = db.frame("SELECT id, amount FROM current.things WHERE id >= ? ORDER BY id", [0])
    assert list(frame["amount"]) == [Decimal(AMOUNT), Decimal("0.01")]
    assert frame["amount"].sum() == Decimal("12345678901234567.90")
    assert isinstance(frame["amount"].dtype, pd.ArrowDtype)


def test_a_connection_keeps_its_version_and_a_new_one_has_the_newest(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(warehouse.home.root))
    night(warehouse, "1")
    with frames.connect() as old:
        night(warehouse, "1", "2")
        count = "SELECT count(*) AS n FROM current.things"
        assert (old.version, int(old.frame(count)["n"][0])) == ("v00000001", 1)
        with frames.connect() as new:
            assert (new.version, int(new.frame(count)["n"][0])) == ("v00000002", 2)


def test_times_are_in_utc_wherever_one_is(warehouse: Warehouse) -> None:
    night(warehouse, "1")
    with frames.connect(str(warehouse.home.root)) as db:
        at = db.frame("SELECT TIMESTAMPTZ '2026-11-21 12:00:00+02' AS at")["at"]
    assert at[0] == datetime(2026, 11, 21, 10, tzinfo=UTC)
    assert str(at.dt.tz) == "UTC"


def test_before_the_first_publication_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NothingPublished, match="nothing was published yet"):
        frames.connect(tmp_path)


def test_a_version_is_asked_once(warehouse: Warehouse) -> None:
    asked = list[str]()

    def ask(source: published.Published) -> int:
        asked.append(source.version)
        return scalar(source.database, "SELECT count(*) FROM current.things")

    with pytest.raises(NothingPublished, match="nothing was published yet"):
        published.kept(warehouse.home, ask)
    night(warehouse, "1")
    assert [published.kept(warehouse.home, ask) for _ in range(2)] == [1, 1]
    night(warehouse, "1", "2")
    assert [published.kept(warehouse.home, ask) for _ in range(2)] == [2, 2]
    roll_back(warehouse.work, warehouse.ledger, None, Rollback(0, 0, "ann", EPOCH, "wrong"))
    assert published.kept(warehouse.home, ask) == 1
    assert asked == ["v00000001", "v00000002", "v00000001"]


def test_an_answer_is_not_kept_where_another_version_came_meanwhile(warehouse: Warehouse) -> None:
    asked = list[str]()

    def ask(source: published.Published) -> None:
        asked.append(source.version)
        if len(asked) == 1:
            night(warehouse, "1", "2")

    night(warehouse, "1")
    for _ in range(3):
        published.kept(warehouse.home, ask)
    assert asked == ["v00000001", "v00000002"]


def test_there_are_no_rows_where_nothing_or_no_such_table_is_published(
    warehouse: Warehouse,
) -> None:
    asked = ("current", "things"), "SELECT amount FROM current.things WHERE id = $id", {"id": 1}
    assert published.rows(warehouse.home, *asked) == []
    night(warehouse, "1", "2")
    assert published.rows(warehouse.home, *asked) == [(2,)]
    assert published.rows(warehouse.home, ("reports", "none"), "FROM reports.none") == []

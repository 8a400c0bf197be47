"""The data from day to day: rows that are added, groups that are restated, and ``--now``.

Not here: what a record contains on any one day (test_data).
"""

from typing import Any

import pytest

from sandbox.__main__ import moment
from sandbox.data.calendar import days_since_epoch
from sandbox.data.sizes import Sizes
from tests.sandbox.lists import LISTS, dataset, everything, parsed
from tests.sandbox.running import Running, started


def test_each_day_adds_rows_at_the_end_and_restates_about_one_percent() -> None:
    before = dataset(7, Sizes(250, 20_000, 2_000, 10))
    after = dataset(7, Sizes(250, 20_000, 2_000, 11))
    for name in LISTS:
        old, new = everything(before, name), everything(after, name)
        added = {"usage": 100, "billing": 10}.get(name, 0)
        changed = sum(a != b for a, b in zip(old, new, strict=False))
        assert len(new) - len(old) == added
        share = changed / len(old)
        assert 0.005 < share < 0.02 if added else share == 0


def test_a_restatement_changes_record_and_rows_alike() -> None:
    days = (10, 11)
    usage_before, usage_after, billing_before, billing_after = (
        parsed(everything(dataset(7, Sizes(250, 20_000, 2_000, day)), name))
        for name in ("usage", "billing")
        for day in days
    )
    restated_rows = changes(usage_before, usage_after, {"quantity", "amount"})
    restated = changes(billing_before, billing_after, {"lines", "total", "subtotal", "tax"})
    assert restated_rows == {
        line["usageId"]
        for record in billing_after
        if record["billingId"] in restated
        for line in record["lines"]
    }


def changes(before: list[Any], after: list[Any], fields: set[str]) -> set[str]:
    """Give the ids of changed records, having looked at what changed in them."""
    found = set()
    for old, new in zip(before, after, strict=False):
        differing = {name for name in old if old[name] != new[name]}
        if differing:
            assert fields <= differing <= fields | {"revision", "updatedAt"}
            assert new["revision"] == old["revision"] + 1
            assert new["updatedAt"] == "2026-11-11T23:45:00Z"
            found.add(next(iter(new.values())))
    return found


NOWS = [
    ("2026-11-01", 0),
    ("2026-11-01T23:59:59Z", 0),
    ("2026-11-02T00:00:00Z", 1),
    ("2026-11-02T05:00:00+09:00", 0),
    ("2027-11-01T00:00:00.5Z", 365),
]


@pytest.mark.parametrize(("now", "days"), NOWS)
def test_only_whole_days_count(now: str, days: int) -> None:
    assert days_since_epoch(moment(now)) == days


def test_the_time_of_the_data_is_an_option() -> None:
    options = ("--rate", "0", "--partners", "3", "--usage", "400", "--billing", "40")
    with started(*options, "--now", "2026-11-15T07:00:00+02:00") as running:
        assert len(running.records("/v2/usage", 500)) == 400 + 14 * 2
        assert len(running.records("/v2/billing")) == 40 + 14
        assert len(running.records("/v2/partners")) == 3 + 2


def test_nothing_is_dated_after_the_day_it_is_served_on() -> None:
    data = dataset(7, Sizes(25, 2000, 200, 40))
    now = "2026-12-11T00:00:00"
    rows = parsed(everything(data, "usage")) + parsed(everything(data, "billing"))
    for row in rows:
        for name in ("recordedAt", "updatedAt", "issuedAt"):
            assert row.get(name, "") < now


def test_without_now_the_data_never_depend_on_the_date(sandbox: Running) -> None:
    assert len(sandbox.records("/v2/usage", 500)) == 1500

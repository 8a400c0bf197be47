"""Why a month is not like the one before: each part alone to the cent, and all of them add up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.finance.close import close_month
from tests.effort import EFFORT
from tests.reconcile.books import MAPPING
from tests.reconcile.flux_books import (
    ANY_LISTS,
    AUGUST,
    BEGIN,
    FIRST_ROWS,
    MONTHS,
    NOW,
    SEPTEMBER,
    THEN,
    Row,
    publish_now,
    publish_then_and_now,
    read_rows,
    with_roles,
)
from tests.reconcile.flux_model import (
    PARTS,
    ZERO,
    Cell,
    Item,
    Parts,
    Quantities,
    by_cell,
    expected_items,
    expected_parts,
    quantities_of,
)
from tests.reconcile.months import SERVICE
from tests.versions.homes import Stores, home_of

MINOR = {
    "EUR": Decimal("0.01"), "JPY": Decimal(1), "KWD": Decimal("0.001"), "POINTS": Decimal("0.01"),
}  # fmt: skip
FLUX = f"""
SELECT side, partner_id, currency, before, now, difference, {", ".join(PARTS)}
FROM finance.flux WHERE month = '2026-09-01' AND partner_id <> 'begin' ORDER BY ALL
"""
ITEMS = f"""
SELECT
    side, partner_id, currency, kind, plan, quantity_before, quantity, difference,
    {", ".join(PARTS)}
FROM finance.flux_items WHERE month = '2026-09-01' AND partner_id <> 'begin' ORDER BY ALL
"""
# What is in one table and not in the other, of all months.
NOT_THE_SUM = f"""
WITH sums AS (
    SELECT
        connection, side, partner_id, currency, month, is_due, history_from,
        {", ".join(f"sum({name}) AS {name}" for name in ("before", "now", "difference", *PARTS))}
    FROM finance.flux_items
    GROUP BY ALL
), flux AS (
    SELECT
        connection, side, partner_id, currency, month, is_due, history_from, before, now,
        difference, {", ".join(PARTS)}
    FROM finance.flux
)
SELECT * FROM ((FROM flux EXCEPT FROM sums) UNION ALL (FROM sums EXCEPT FROM flux))
"""


class Case(NamedTuple):
    """What is read then, and now (None: the same); the parts of the difference by side."""

    name: str
    then: Sequence[Row]
    now: Sequence[Row] | None = None
    billed: Mapping[str, str] = MappingProxyType({})
    used: Mapping[str, str] | None = None  # None: as billed

    def rows(self, *, is_now: bool) -> list[Row]:
        """Return its rows, which are of a partner of its own."""
        rows = self.now if is_now and self.now is not None else self.then
        return [replace(row, id=f"{self.name} {row.id}", partner=self.name) for row in rows]


A = Row("a", "100.00", month=AUGUST)
B = Row("b", "100.00")
C = Row("c", "3.21")
D = Row("d", "3.21", plan="max")
CHEAP, DEAR = replace(A, amount="10.00"), Row("d", "990.00", month=AUGUST, plan="max")
CASES = (
    Case("late", [A, B], [A, B, C], {"late": "3.21"}),
    Case("late before", [A, B], [A, B, replace(C, month=AUGUST)], {"late": "-3.21"}),
    Case("restated", [A, B], [A, replace(B, amount="101.01")], {"restated": "1.01"}),
    Case("withdrawn", [A, B], [A], {"restated": "-100.00"}),
    Case("moved", [A, B, D], [A, B, replace(D, month=AUGUST)],
         {"restated": "-6.42", "volume": "3.21"}),
    Case("credits", [A, B, Row("k", "-4.00", -1, credit=True)], None, {"credits": "-4.00"}, {}),
    Case("fees", [A, B, Row("f", "2.50", plan=None)], None, {"fees": "2.50"}, {}),
    Case("new", [B], None, {"new": "100.00"}),
    Case("lost", [A], None, {"lost": "-100.00"}),
    Case("volume", [A, replace(B, amount="130.00", quantity=13)], None, {"volume": "30.00"}),
    Case("price", [A, replace(B, amount="110.00")], None, {"price": "10.00"}),
    Case("half to even", [replace(A, amount="0.25"), replace(B, amount="0.27", quantity=11)], None,
         {"volume": "0.02"}),  # 0.025
    Case("another item", [A, B, replace(C, plan="max")], None, {"volume": "3.21"}),
    Case("no quantity", [A, replace(B, amount="90.00", quantity=None)], None,
         {"unexplained": "-10.00"}),
    # Without items, volume would be 500, and price -490.
    Case("another mix", [CHEAP, DEAR, replace(B, amount="20.00", quantity=20),
         Row("e", "990.00", plan="max")], None, {"volume": "10.00"}),
    Case("one plan", [A, replace(B, amount="110.01"), replace(DEAR, quantity=3),
         Row("e", "1980.00", 6, plan="max")], None, {"price": "10.01", "volume": "990.00"}),
)  # fmt: skip


def publish_cases(stores: Stores) -> None:
    """Publish all cases, each of a partner of its own."""
    then = [row for case in CASES for row in case.rows(is_now=False)]
    now = [row for case in CASES for row in case.rows(is_now=True)]
    publish_then_and_now(stores, then, now)


cases = home_of(publish_cases)


def found(stores: Stores) -> dict[Cell, Parts]:
    """Return the parts that are not 0, with the totals, by side, partner and currency."""
    parts = {}
    for side, partner, currency, before, now, difference, *amounts in stores.rows(FLUX):
        assert now - before == difference == sum(amounts, ZERO)
        named = dict(zip(PARTS, amounts, strict=True))
        parts[side, partner, currency] = {name: value for name, value in named.items() if value}
    return parts


def found_items(stores: Stores) -> dict[Cell, dict[Item, tuple[Quantities, Parts]]]:
    """Return the quantities of each item, and its parts that are not 0, by cell."""
    items: dict[Cell, dict[Item, tuple[Quantities, Parts]]] = {}
    for side, partner, currency, kind, plan, *values in stores.rows(ITEMS):
        before, now, difference, *amounts = values
        assert difference == sum(amounts, ZERO)
        named = dict(zip(PARTS, amounts, strict=True))
        parts = {name: value for name, value in named.items() if value}
        items.setdefault((side, partner, currency), {})[kind, plan] = (before, now), parts
    return items


@pytest.mark.long
def test_a_price_is_found_in_its_plan_and_nowhere_else(cases: Stores) -> None:
    of_case = "partner_id = 'one plan' AND month = '2026-09-01'"
    shown = f"""
    SELECT plan, quantity_before, quantity, before, now, volume, price, difference
    FROM finance.flux_items WHERE {of_case} AND side = '{{}}' ORDER BY plan
    """
    for side in ("usage", "billing"):
        assert cases.rows(shown.format(side)) == [
            ("max", 3, 6, Decimal(990), Decimal(1980), Decimal(990), ZERO, Decimal(990)),
            ("pro", 10, 10, Decimal(100), Decimal("110.01"), ZERO, Decimal("10.01"),
             Decimal("10.01")),
        ]  # fmt: skip
    assert cases.rows(NOT_THE_SUM) == []


@pytest.mark.long
def test_each_part_is_found_to_the_cent(cases: Stores) -> None:
    expected = {}
    for case in CASES:
        billed = {name: Decimal(value) for name, value in case.billed.items()}
        used = billed if case.used is None else {}
        expected["billing", case.name, "EUR"] = billed
        expected["usage", case.name, "EUR"] = used
    assert found(cases) == expected


def split(rows: Sequence[Row]) -> list[Row]:
    """Return rows in another order, of which some are two rows at an equal price."""
    parts = []
    for row in rows:
        amount = Decimal(row.amount)
        if row.kind == "usage" and row.quantity == 10 and amount % Decimal("0.1") == 0:
            first = replace(row, quantity=3, amount=f"{amount * 3 / 10:f}")
            rest = replace(row, quantity=7, amount=f"{amount * 7 / 10:f}", id=f"{row.id}/2")
            parts += [first, rest]
        else:
            parts.append(row)
    return parts[::-1]


@pytest.mark.long
def test_split_rows_in_another_order_change_nothing(cases: Stores, stores: Stores) -> None:
    expected = found(cases)
    then = [row for case in CASES for row in case.rows(is_now=False)]
    now = [row for case in CASES for row in case.rows(is_now=True)]
    assert len(split(now)) > len(now) + 10
    publish_then_and_now(stores, split(then), split(now))
    assert found(stores) == expected


@pytest.mark.long
def test_a_remainder_of_floating_point_leaves_the_volume_of_others(stores: Stores) -> None:
    """One such record gives the columns of all records 17 digits behind the point."""
    remainder = "0.30000000000000004"
    rows = [
        Row("a", "250000000.00", 250_000, month=AUGUST), Row("b", "300000010.00", 300_000),
        Row("c", remainder, remainder, month=AUGUST, partner="second"),
        Row("d", remainder, remainder, partner="second"),
    ]  # fmt: skip
    publish_then_and_now(stores, rows, rows)
    parts = {"volume": Decimal(50_000_000), "price": Decimal(10)}
    for side in ("usage", "billing"):
        assert found(stores)[side, "first", "EUR"] == parts
        assert found(stores)[side, "second", "EUR"] == {}


@pytest.mark.long
def test_a_record_without_an_amount_makes_no_price(stores: Stores) -> None:
    """Its quantity alone would halve the price, and be volume."""
    rows = [A, B, replace(B, id="unreadable", amount="n/a")]
    read_rows(stores, BEGIN, FIRST_ROWS)
    for moment in (THEN, NOW):
        read_rows(stores, moment, [*FIRST_ROWS, *rows])
    publish_now(stores)
    items = (
        "SELECT quantity_before, quantity, now, volume, price, unexplained FROM finance.flux_items"
    )
    assert stores.rows(
        f"{items} WHERE side = 'usage' AND partner_id = 'first' AND month = '2026-09-01'"
    ) == [(10, None, Decimal(100), ZERO, ZERO, ZERO)]


@pytest.mark.long
def test_without_roles_of_items_there_is_one_item(stores: Stores) -> None:
    mix = next(case for case in CASES if case.name == "another mix")
    publish_then_and_now(stores, mix.then, mix.then, MAPPING)
    expected = {"volume": Decimal(500), "price": Decimal(-490)}
    assert found(stores) == {(side, "first", "EUR"): expected for side in ("usage", "billing")}


@pytest.mark.long
def test_lines_may_say_themselves_what_they_are_of(stores: Stores) -> None:
    mix = next(case for case in CASES if case.name == "another mix")
    mapping = with_roles([], ["plan"])
    publish_then_and_now(stores, mix.then, mix.then, mapping)
    assert found(stores)["billing", "first", "EUR"] == {"volume": Decimal("10.00")}


SINCE = """
SELECT side, late::VARCHAR, restated::VARCHAR, price::VARCHAR, history_from::DATE::VARCHAR
FROM finance.flux WHERE month = '2026-09-01' ORDER BY side
"""


@pytest.mark.long
def test_where_history_begins_later_nobody_knows_what_was_late(stores: Stores) -> None:
    restated = [A, replace(B, amount="101.00")]
    read_rows(stores, THEN, [A, B])
    read_rows(stores, NOW, restated)
    publish_now(stores)
    assert stores.rows(SINCE) == [
        ("billing", None, None, "1.0000", "2026-10-06"),
        ("usage", None, None, "1.0000", "2026-10-05"),
    ]


@pytest.mark.long
def test_a_close_is_the_cut_off_of_its_month(stores: Stores) -> None:
    """What changed between the grace days and the close is no restatement."""
    stores.configure(**SERVICE)
    between = [A, replace(B, amount="101.00")]
    publish_then_and_now(stores, [A, B], between)
    close_month(stores, MONTHS[1], "ann", "bob")
    read_rows(stores, stores.clock.now, [*FIRST_ROWS, A, replace(B, amount="103.00")])
    publish_now(stores)
    parts = {"restated": Decimal("2.00"), "price": Decimal("1.00")}
    assert found(stores) == {(side, "first", "EUR"): parts for side in ("usage", "billing")}


@pytest.mark.long
def test_a_month_that_is_not_due_has_nothing_late(stores: Stores) -> None:
    read_rows(stores, BEGIN, [A])
    early = THEN.replace(day=1, month=9)
    read_rows(stores, early, [A, B])
    read_rows(stores, early.replace(day=10), [A, replace(B, amount="90.00")])
    publish_now(stores)
    known = "SELECT is_due, restated, price FROM finance.flux WHERE month = '2026-09-01'"
    assert set(stores.rows(known)) == {(False, ZERO, Decimal(-10))}


amounts = st.integers(-400, 400)
rows_of_cell = st.lists(
    st.tuples(
        amounts,
        st.sampled_from([None, -3, 0, 1, 2, 3, 4, 7, 8]),
        st.sampled_from([AUGUST, SEPTEMBER]),
        st.sampled_from(["pro", "max", "pro", "max", None, "credit"]),
        # Now: as it was, gone, late, of another amount, or in the other month.
        st.sampled_from(["", "", "", "gone", "late", "other", "moved"]),
        amounts,
    ),
    max_size=6,
)
any_cells = st.lists(
    st.tuples(st.sampled_from(sorted(MINOR)), rows_of_cell), min_size=30, max_size=30
)


def as_text(minor_units: int, currency: str) -> str:
    return f"{minor_units * MINOR[currency]:f}"


def row_of(row_id: str, partner: str, currency: str, drawn: Any) -> Row:
    amount, quantity, month, plan, _change, _other = drawn
    is_credit = plan == "credit"
    if is_credit:
        amount, quantity = -abs(amount), -abs(quantity or 1)
    text = as_text(amount, currency)
    plan = "pro" if is_credit else plan
    return Row(row_id, text, quantity, month, plan, partner, currency, is_credit)


def then_and_now(cells: Any) -> tuple[list[Row], list[Row]]:
    """Return the rows then and now. Those that are not there now, or were not then, are random."""
    then: list[Row] = []
    now: list[Row] = []
    for number, (currency, drawn) in enumerate(cells):
        for at, values in enumerate(drawn):
            row = row_of(f"r{number}-{at}", f"p{number % 12}", currency, values)
            change, other = values[-2:]
            if change != "late":
                then.append(row)
            if change == "other":
                amount = -abs(other) if row.credit else other
                now.append(replace(row, amount=as_text(amount, currency)))
            elif change == "moved":
                month = AUGUST if row.month == SEPTEMBER else SEPTEMBER
                now.append(replace(row, month=month))
            elif change != "gone":
                now.append(row)
    return then, now


@pytest.mark.long
@given(any_cells)
@settings(max_examples=2 * EFFORT, suppress_health_check=[*HealthCheck])
def test_any_books_add_up_and_each_part_is_right(cells: Any) -> None:
    then, now = then_and_now(cells)
    expected: dict[Cell, Parts] = {}
    items: dict[Cell, dict[Item, tuple[Quantities, Parts]]] = {}
    for side in ("usage", "billing"):
        of_then = by_cell(then, side)
        of_now = by_cell(now, side)
        for cell in of_then.keys() | of_now.keys():
            both = of_then.get(cell, []), of_now.get(cell, [])
            expected[cell] = expected_parts(*both)
            items[cell] = {
                item: (quantities_of(both[1], item), parts)
                for item, parts in expected_items(*both).items()
            }
    with TemporaryDirectory() as folder:
        stores = Stores.open(Path(folder, "home"), streams=ANY_LISTS)
        publish_then_and_now(stores, then, now)
        assert found(stores) == expected
        assert found_items(stores) == items
        assert stores.rows(NOT_THE_SUM) == []
        stores.metadata.close()

"""Flux of the sandbox's lists: other prices, late and restated records, alike on both sides."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from sandbox.data.dataset import Dataset, dataset
from sandbox.data.plant import Plant, plant
from sandbox.data.sizes import Sizes
from tests.reconcile.books import SANDBOX_MAPPING
from tests.reconcile.flux_books import ANY_LISTS, Row
from tests.reconcile.flux_model import PARTS, Parts, by_cell, expected_items, expected_parts
from tests.versions.homes import Reading, Stores, read

SEED = 7
LISTS = {"partners": "partnerId", "usage": "usageId", "billing": "billingId"}
COUNTED = {"paid", "issued"}
# History begins when August is over, and is read again after the grace days of September.
TIMES = [datetime(2026, month, day, 2, tzinfo=UTC) for month, day in ((8, 28), (10, 3), (10, 20))]
FLUX = f"""
SELECT side, partner_id, currency, strftime(month, '%Y-%m'), difference, {", ".join(PARTS)}
FROM finance.flux
"""
ITEMS = f"""
SELECT
    side, partner_id, currency, strftime(month, '%Y-%m'), concat(plan, ' ', metric),
    {", ".join(PARTS)}
FROM finance.flux_items
WHERE kind = 'usage'
"""
Lists = dict[str, list[dict[str, Any]]]
Sides = dict[str, list[Row]]


def lists_of(data: Dataset) -> Lists:
    found = {}
    for name in LISTS:
        one = getattr(data, name)
        found[name] = [json.loads(record) for record in one.rows(0, one.count)]
    return found


def without(lists: Lists, billing_id: str) -> Lists:
    """Return lists in which a bill and its usage are not known yet."""
    (bill,) = (each for each in lists["billing"] if each["billingId"] == billing_id)
    usage = {line["usageId"] for line in bill["lines"]}
    kept = [each for each in lists["usage"] if each["usageId"] not in usage]
    bills = [each for each in lists["billing"] if each["billingId"] != billing_id]
    return {**lists, "usage": kept, "billing": bills}


def rows_of(lists: Lists, items: dict[str, str]) -> Sides:
    """Return the rows of both sides; `items` has the plan and metric of each usage record."""
    usage = [row_of(each, each["usageId"], each, items[each["usageId"]]) for each in lists["usage"]]
    billing = []
    for bill in lists["billing"]:
        if bill["status"] in COUNTED | {"credit_note"}:
            for line in [*bill["lines"], *rest_of(bill)]:
                item = items.get(line["usageId"])  # a fee names no usage
                billing.append(row_of(bill, bill["billingId"], line, item))
    return {"usage": usage, "billing": billing}


def rest_of(bill: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the total of a bill is more than its lines, as a line."""
    rest = Decimal(bill["total"]) - sum(Decimal(line["amount"]) for line in bill["lines"])
    return [{"usageId": None, "quantity": None, "amount": rest}] if rest else []


def row_of(record: dict[str, Any], row_id: str, measured: dict[str, Any], item: str | None) -> Row:
    return Row(
        id=row_id,
        amount=str(measured["amount"]),
        quantity=measured["quantity"],
        month=record["period"]["start"][:7],
        plan=item,
        partner=record["partnerId"],
        currency=record["currency"],
        credit=record.get("kind") == "credit_note",
    )


def expected(then: Sides, now: Sides) -> dict[tuple[str, ...], Parts]:
    """Return the parts of September, and of earlier months, whose history begins later."""
    found: dict[tuple[str, ...], Parts] = {}
    months = sorted({row.month for rows in now.values() for row in rows if row.month < "2026-10"})
    for side, rows in now.items():
        now_cells = by_cell(rows, side)
        then_cells = by_cell(then[side], side)
        for cell in now_cells.keys() | then_cells.keys():
            for pair in pairwise(months):
                of_now = now_cells.get(cell, [])
                of_then = then_cells.get(cell, []) if pair[1] == "2026-09" else of_now
                if any(row.month in pair for row in (*of_now, *of_then)):
                    found[*cell, pair[1]] = expected_parts(of_then, of_now, pair)
    return found


def expected_items_of(then: Sides, now: Sides) -> dict[tuple[str, ...], Parts]:
    """Return the parts of each item of usage in September."""
    found: dict[tuple[str, ...], Parts] = {}
    for side, rows in now.items():
        now_cells = by_cell(rows, side)
        then_cells = by_cell(then[side], side)
        for cell in now_cells.keys() | then_cells.keys():
            both = then_cells.get(cell, []), now_cells.get(cell, [])
            for (kind, plan), parts in expected_items(*both).items():
                if kind == "usage" and plan and parts:
                    found[*cell, plan] = parts
    return found


def found_items_in(stores: Stores) -> dict[tuple[str, ...], Parts]:
    found: dict[tuple[str, ...], Parts] = {}
    for side, partner, currency, month, item, *amounts in stores.rows(ITEMS):
        named = zip(PARTS, amounts, strict=True)
        parts = {name: amount for name, amount in named if amount}
        if month == "2026-09" and parts:
            found[side, partner, currency, item] = parts
    return found


def found_in(stores: Stores) -> dict[tuple[str, ...], Parts]:
    found: dict[tuple[str, ...], Parts] = {}
    for side, partner, currency, month, difference, *amounts in stores.rows(FLUX):
        assert difference == sum(each or 0 for each in amounts)
        if month < "2026-10":
            named = zip(PARTS, amounts, strict=True)
            found[side, partner, currency, month] = {
                name: amount for name, amount in named if amount
            }
    return found


@pytest.fixture(scope="module")
def errors() -> Plant:
    return plant(SEED, Sizes(12, 1500, 300))


@pytest.mark.long
def test_flux_of_the_sandbox_is_what_its_lists_say(errors: Plant, tmp_path: Any) -> None:
    first = lists_of(dataset(SEED, Sizes(12, 1500, 300), errors))
    later = lists_of(dataset(SEED, Sizes(12, 1500, 300, 40), errors))
    late = next(
        each["billingId"] for each in first["billing"]
        if each["period"]["start"] == "2026-09-01" and len(each["lines"]) > 2
    )  # fmt: skip
    then = without(first, late)
    stores = Stores.open(tmp_path / "home", streams=ANY_LISTS)
    write_durably(stores.home.mapping_file, SANDBOX_MAPPING.encode())
    for time, lists in zip(TIMES, (then, then, later), strict=True):
        stores.clock.now = time
        for name, key in LISTS.items():
            read(stores, Reading(lists[name], name, page_size=500, key=key))
    build_with_books(stores)
    items = {each["usageId"]: f"{each['planId']} {each['metric']}" for each in later["usage"]}
    wanted = expected(rows_of(then, items), rows_of(later, items))
    found = found_in(stores)
    assert found == wanted
    assert found_items_in(stores) == expected_items_of(rows_of(then, items), rows_of(later, items))
    planted = [
        (error.partner_id, error.currency, error.month[:7])
        for error in errors.errors
        if error.kind == "price_change"
    ]
    of_september = [parts for (*_cell, month), parts in wanted.items() if month == "2026-09"]
    assert {"late", "restated", "volume", "price"} <= {
        part for parts in of_september for part in parts
    }
    for side in ("usage", "billing"):
        # Of an item that was there before, another price is more than what is rounded.
        prices = [found[side, *cell].get("price", 0) for cell in planted if (side, *cell) in found]
        assert max(prices) > 1
    stores.metadata.close()

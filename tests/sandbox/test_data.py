"""The data: repeatable, exact, awkward on purpose.

Not here: ordinary data (test_ordinary), growth from day to day (test_growth), what the description
says (test_description).
"""

import re
from collections import Counter
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import httpx
import pytest

from sandbox.data.dataset import Dataset
from sandbox.data.sizes import Sizes
from tests.sandbox.lists import LISTS, dataset, everything, parsed

MINOR_UNITS = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0, "KWD": 3}
OFFSETS = {"Z", "+01:00", "-05:00", "+05:30", "+09:00"}
SCRIPTS = ["[à-ž]", "[Ͱ-Ͽ]", "[Ѐ-ӿ]", "[一-鿿]", "[぀-ヿ]", "[؀-ۿ]", "[ऀ-ॿ]", "[가-힯]"]
ID = re.compile(r"[0-9a-f]{24}")
SIZES = [
    (0, 0, 0),
    (1, 0, 0),
    (1, 1, 1),
    (1, 1, 0),
    (1, 0, 1),
    (3, 7, 100),
    (7, 100, 7),
    (5, 1, 500),
]


@pytest.fixture(scope="module")
def base() -> Dataset:
    return dataset(7, Sizes())


@pytest.fixture(scope="module")
def usage(base: Dataset) -> list[Any]:
    return parsed(everything(base, "usage"))


@pytest.fixture(scope="module")
def billing(base: Dataset) -> list[Any]:
    return parsed(everything(base, "billing"))


def test_what_is_served_is_what_the_dataset_holds(demo: httpx.Client) -> None:
    data = dataset(7, Sizes(25, 1500, 150))
    for name in LISTS:
        body = demo.get(f"/v2/{name}", params={"limit": 7, "offset": 3}).content
        rows = b",".join(getattr(data, name).rows(3, 10))
        assert body.startswith(b'{"data":[' + rows + b'],"pagination":{')


@pytest.mark.parametrize("name", LISTS)
def test_another_seed_gives_other_records(name: str) -> None:
    sizes = Sizes(25, 300, 30)
    first, same, other = (everything(dataset(seed, sizes), name) for seed in (7, 7, 8))
    assert first == same
    assert not set(first) & set(other)


@pytest.mark.parametrize("limits", [(1, 500), (13, 250), (249, 251)])
def test_bytes_do_not_depend_on_how_they_are_read(limits: tuple[int, int]) -> None:
    data = dataset(3, Sizes(5, 1000, 90))
    for limit in limits:
        rows = [
            row for start in range(0, 1000, limit) for row in data.usage.rows(start, start + limit)
        ]
        assert rows == everything(data, "usage")


@pytest.mark.parametrize(("partners", "usage_rows", "records"), SIZES)
@pytest.mark.parametrize("days", [0, 1, 400])
def test_sizes_are_exact_at_any_size(
    partners: int, usage_rows: int, records: int, days: int
) -> None:
    data = dataset(1, Sizes(partners, usage_rows, records, days))
    counts = [len(everything(data, name)) for name in ("partners", "usage", "billing")]
    assert counts == [data.partners.count, data.usage.count, data.billing.count]
    assert counts == [
        partners + (days // 7 if partners else 0),
        usage_rows + days * (max(1, round(usage_rows / 200)) if usage_rows else 0),
        records + days * (max(1, round(records / 200)) if records else 0),
    ]
    billed = Counter(
        line["usageId"] for row in parsed(everything(data, "billing")) for line in row["lines"]
    )
    used = Counter(row["usageId"] for row in parsed(everything(data, "usage")))
    assert billed == (used if records else Counter())


def test_defaults_are_the_documented_sizes(base: Dataset) -> None:
    counts = {name: getattr(base, name).count for name in LISTS}
    expected = {"plans": 15, "partners": 250, "organizations": 750}
    assert counts == expected | {"usage": 20_000, "billing": 2_000}


def test_identifiers_are_24_hexadecimal_characters_and_unique(base: Dataset) -> None:
    for name in LISTS:
        key = "billingId" if name == "billing" else f"{name.removesuffix('s')}Id"
        found = [row[key] for row in parsed(everything(base, name))]
        assert all(ID.fullmatch(one) for one in found)
        assert len(set(found)) == len(found)


def test_partners_have_exactly_the_documented_fields(base: Dataset) -> None:
    partners = parsed(everything(base, "partners"))
    assert {tuple(row) for row in partners} == {("partnerId", "name", "externalId")}
    names = " ".join(row["name"] for row in partners)
    assert all(re.search(script, names) for script in SCRIPTS)
    assert any(row["externalId"].startswith("0") for row in partners)
    assert len({row["externalId"] for row in partners}) == 250


def test_references_between_the_lists_hold(base: Dataset, usage: list[Any]) -> None:
    partners = {row["partnerId"] for row in parsed(everything(base, "partners"))}
    plans = {row["planId"]: row for row in parsed(everything(base, "plans"))}
    organizations = {
        row["organizationId"]: row["partnerId"] for row in parsed(everything(base, "organizations"))
    }
    assert set(organizations.values()) == partners
    for row in usage:
        assert row["partnerId"] in partners
        assert organizations[row["organizationId"]] == row["partnerId"]
        assert plans[row["planId"]]["unitPrice"] == row["unitPrice"]
        assert plans[row["planId"]]["metric"] == row["metric"]


def test_amounts_are_quantity_times_price_rounded_half_even(usage: list[Any]) -> None:
    ties = 0
    for row in usage:
        unit = Decimal(1).scaleb(-MINOR_UNITS[row["currency"]])
        product = Decimal(row["quantity"]) * row["unitPrice"]
        exact = product.quantize(unit, ROUND_HALF_EVEN)
        assert Decimal(row["amount"]) == exact
        assert len(row["amount"].partition(".")[2]) == (MINOR_UNITS[row["currency"]] or 2)
        ties += abs(product - exact) == unit / 2
    assert {row["currency"] for row in usage} == set(MINOR_UNITS)
    assert ties > 0  # otherwise half-even would not be tried


def test_usage_is_awkward_in_every_promised_way(usage: list[Any]) -> None:
    assert all(row["sequence"] > 2**53 and row["sequence"] % 2 for row in usage)
    assert all(int(float(row["sequence"])) != row["sequence"] for row in usage)
    assert all(re.fullmatch(r"0\d{9}", row["reference"]) for row in usage)
    assert {type(row["unitPrice"]) for row in usage} == {Decimal, int}
    assert {row["period"]["start"][19:] for row in usage} == OFFSETS
    assert {len(row["events"]) for row in usage} == {0, 1, 2, 3}
    assert {type(event["fee"]) for row in usage for event in row["events"]} == {Decimal, int}
    assert {type(row.get("note", ...)) for row in usage} == {type(None), str, type(...)}
    notes = " ".join(row.get("note") or "" for row in usage)
    assert "💶" in notes
    assert "\n" in notes
    assert '"' in notes


def test_about_one_amount_in_1000_has_18_significant_digits(usage: list[Any]) -> None:
    digits = [len(row["amount"].replace(".", "")) - 2 * (row["currency"] == "JPY") for row in usage]
    assert digits.count(18) == 21
    assert max(digits) == 18
    big = [row["currency"] for row, count in zip(usage, digits, strict=True) if count == 18]
    assert set(big) == set(MINOR_UNITS)


def test_billing_is_awkward_in_every_promised_way(billing: list[Any]) -> None:
    assert {type(row["subtotal"]) for row in billing} == {Decimal}
    assert {type(row["tax"]) for row in billing} == {str}
    assert {type(row.get("credit", ...)) for row in billing} == {type(None), dict, type(...)}
    assert all(re.fullmatch(r"0\d{7}", row["invoiceNumber"]) for row in billing)


def reconciled(usage: list[Any], billing: list[Any]) -> int:
    """Compare every line with its usage row; gives the lines compared."""
    rows = {row["usageId"]: row for row in usage}
    for record in billing:
        assert sum(Decimal(line["amount"]) for line in record["lines"]) == Decimal(record["total"])
        assert record["subtotal"] + Decimal(record["tax"]) == Decimal(record["total"])
        assert Decimal(record["total"]).as_tuple().exponent == -(
            MINOR_UNITS[record["currency"]] or 2
        )
        for line in record["lines"]:
            row = rows.pop(line["usageId"])
            shared = ("quantity", "unitPrice", "amount")
            assert [line[name] for name in shared] == [row[name] for name in shared]
            same = ("partnerId", "currency", "revision")
            assert [record[name] for name in same] == [row[name] for name in same]
            day = datetime.fromisoformat(row["period"]["start"]).date().isoformat()
            assert record["period"]["start"] <= day <= record["period"]["end"]
    assert not rows
    return sum(len(record["lines"]) for record in billing)


def test_clean_data_reconciles(usage: list[Any], billing: list[Any]) -> None:
    assert reconciled(usage, billing) == 20_000


@pytest.mark.parametrize("days", [1, 2, 30, 250])
def test_clean_data_reconciles_on_any_day(days: int) -> None:
    data = dataset(7, Sizes(25, 2000, 200, days))
    assert reconciled(parsed(everything(data, "usage")), parsed(everything(data, "billing")))


def test_local_and_utc_day_are_the_same(usage: list[Any]) -> None:
    # So the month of a row does not depend on the zone that somebody sums in.
    for row in usage:
        for text in (row["period"]["start"], row["period"]["end"], row["recordedAt"]):
            moment = datetime.fromisoformat(text)
            assert moment.date() == (moment - (moment.utcoffset() or timedelta(0))).date()

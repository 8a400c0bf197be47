"""Chapter 2 of the interface, "Resources and their fields": envelope, partner item, token."""

import re
from itertools import chain
from typing import Any

import jwt
import pytest

from tests.interface.calling import ACTORS, Surfaces, claims
from tests.interface.routes import LISTS, bounds

FIELDS = {"limit", "offset", "has_more", "next_offset", "prev_offset"}
ITEM = {"partnerId", "name", "externalId"}
# The records whose fields are not shown, by the name of their schema.
NOT_SHOWN = {
    "gateways": "Gateway",
    "invoices": "Invoice",
    "customers": "Customer",
    "notes": "CustomerNote",
    "payment methods": "PaymentMethod",
    "payment links": "PaymentLink",
    "payment method requests": "PaymentMethodRequest",
    "settings": "Settings",
    "transactions": "Transaction",
    "users": "User",
    "emails": "Email",
    "forecast": "ForecastItem",
    "profile": "Profile",
    "plans": "Plan",
    "organizations": "Organization",
    "usage": "Usage",
    "billing": "Billing",
}
CLIENTS = {"whole": "distributor", "reseller": "partner", "merchant": "organization"}


@pytest.mark.parametrize("path", LISTS)
def test_2_1_data_is_an_array_of_items(whole: Surfaces, path: str) -> None:
    data = whole.page(path)["data"]
    assert isinstance(data, list)
    assert data
    assert all(isinstance(item, dict) for item in data)


@pytest.mark.parametrize("path", LISTS)
def test_2_2_pagination_is_an_object_of_five_fields(whole: Surfaces, path: str) -> None:
    page = whole.page(path)
    assert set(page) - {"total"} == {"data", "pagination"}
    assert set(page["pagination"]) == FIELDS


@pytest.mark.parametrize("path", LISTS)
def test_2_3_limit_is_the_page_size_used(whole: Surfaces, path: str) -> None:
    assert whole.page(path)["pagination"]["limit"] == bounds(path)[0]
    page = whole.page(path, limit=2)
    assert page["pagination"]["limit"] == 2
    assert len(page["data"]) == 2


@pytest.mark.parametrize("path", LISTS)
def test_2_4_offset_is_that_of_the_page(whole: Surfaces, path: str) -> None:
    both = whole.page(path, limit=2)
    second = whole.page(path, limit=1, offset=1)
    assert (both["pagination"]["offset"], second["pagination"]["offset"]) == (0, 1)
    assert both["data"][1:] == second["data"]


@pytest.mark.parametrize("path", LISTS)
def test_2_5_has_more_is_whether_items_exist_beyond(whole: Surfaces, path: str) -> None:
    for page in whole.pages(path, bounds(path)[1]):
        at = page["pagination"]["offset"] + len(page["data"])
        assert page["pagination"]["has_more"] is bool(whole.page(path, offset=at)["data"])


def kinds(whole: Surfaces, path: str, name: str) -> list[Any]:
    return [page["pagination"][name] for page in whole.pages(path, bounds(path)[1])]


@pytest.mark.parametrize("path", LISTS)
def test_2_6_next_offset_is_an_integer_or_null(whole: Surfaces, path: str) -> None:
    *before, last = kinds(whole, path, "next_offset")
    assert last is None
    assert all(type(one) is int for one in before)


@pytest.mark.parametrize("path", LISTS)
def test_2_7_prev_offset_is_an_integer_or_null(whole: Surfaces, path: str) -> None:
    first, *after = kinds(whole, path, "prev_offset")
    assert first is None
    assert after == [place * bounds(path)[1] for place in range(len(after))]


def test_2_8_the_invoice_list_alone_adds_a_total_across_all_pages(whole: Surfaces) -> None:
    pages = list(whole.pages("/v2/invoices", 100))
    count = len(list(chain.from_iterable(page["data"] for page in pages)))
    assert len(pages) > 1
    assert [page["total"] for page in pages] == [count] * len(pages)
    others = [path for path in LISTS if path != "/v2/invoices"]
    assert not [path for path in others if "total" in str(whole.page(path, limit=1).keys())]


def test_2_9_the_place_of_the_total_is_assumed(whole: Surfaces) -> None:
    assert set(whole.page("/v2/invoices")) == {"data", "pagination", "total"}
    schema = whole.described()["components"]["schemas"]["CountedPage_Invoice_"]
    assert schema["properties"]["total"]["x-assumed-place"] is True


def partners(whole: Surfaces) -> list[Any]:
    return list(chain.from_iterable(page["data"] for page in whole.pages("/v2/partners", 100)))


def test_2_10_partner_id_is_24_hexadecimal_characters(whole: Surfaces) -> None:
    found = [item["partnerId"] for item in partners(whole)]
    assert all(re.fullmatch("[0-9a-f]{24}", one) for one in found)
    assert len(set(found)) == len(found) >= 25


@pytest.mark.parametrize("name", ["name", "externalId"])
def test_2_11_name_and_external_id_are_strings(whole: Surfaces, name: str) -> None:
    assert all(isinstance(item[name], str) for item in partners(whole))


def test_2_12_a_partner_item_has_these_three_fields(whole: Surfaces) -> None:
    assert all(set(item) == ITEM for item in partners(whole))
    properties = whole.described()["components"]["schemas"]["Partner"]["properties"]
    assert not [one for one in properties.values() if "x-assumed" in one]


def test_2_13_access_token_is_a_jwt(whole: Surfaces) -> None:
    answer = whole.running.token_answer(client_id="whole", client_secret="s-whole").json()
    assert jwt.get_unverified_header(answer["access_token"])["typ"] == "JWT"
    assert len(answer["access_token"].split(".")) == 3


def test_2_14_token_type_is_bearer(whole: Surfaces) -> None:
    answer = whole.running.token_answer(client_id="whole", client_secret="s-whole")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["token_type"] == "Bearer"


def test_2_15_expires_in_is_an_integer_and_3600_by_default(whole: Surfaces) -> None:
    answer = whole.running.token_answer(client_id="whole", client_secret="s-whole").json()
    assert type(answer["expires_in"]) is int
    assert answer["expires_in"] == 3600


@pytest.mark.parametrize("client_id", CLIENTS)
def test_2_16_the_actor_claim_is_one_of_three(whole: Surfaces, client_id: str) -> None:
    actor = claims(whole.running.token(client_id, f"s-{client_id}"))["actor"]
    assert actor == CLIENTS[client_id]
    assert actor in ACTORS


@pytest.mark.parametrize("record", NOT_SHOWN)
def test_2_17_fields_that_are_not_shown_are_assumed(whole: Surfaces, record: str) -> None:
    properties = whole.described()["components"]["schemas"][NOT_SHOWN[record]]["properties"]
    assert properties
    assert all(one["x-assumed"] for one in properties.values())

"""The streams: the document's three lists on the shelf, and those that settings switch on."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import streams
from pipelines.errors import ConfigurationError
from pipelines.settings import Settings, StreamSettings
from pipelines.streams import STREAMS
from pipelines.streams.base import Stream, fits_a_table, singular

# From "Endpoints" and "Paging limits" of the interface document: path and largest page.
DOCUMENTED = {
    "billing": ("/v2/billing", 100),
    "partners": ("/v2/partners", 100),
    "usage": ("/v2/usage", 500),
}


def test_the_lists_of_the_document() -> None:
    assert {each.name: (each.path, each.limit) for each in STREAMS} == DOCUMENTED


def test_a_file_is_called_as_its_stream() -> None:
    files = {file.stem for file in Path(streams.__path__[0]).glob("*.py")}
    assert files - {"__init__", "base"} == {each.name for each in STREAMS}


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_a_stream_describes_itself(stream: Stream) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", stream.name)
    assert stream.path.startswith("/v2/")
    assert stream.description.endswith(".")


NAMES = {
    "partner": ("id", "partnerId", "partner_id"),
    "usage": ("id", "usageId", "usage_id"),
    "line-item": ("id", "lineItemId", "line_item_id"),
    "payment_method": ("id", "paymentMethodId", "payment_method_id"),
}


@pytest.mark.parametrize(("singular", "names"), NAMES.items())
def test_the_names_that_a_key_may_have(singular: str, names: tuple[str, ...]) -> None:
    assert Stream("s", "/v2/s", 20, singular, "A list.").key_candidates == names


@given(st.from_regex(r"[a-z]{1,8}([-_][a-z]{1,8}){0,3}", fullmatch=True))
def test_id_comes_first_and_no_name_twice(singular: str) -> None:
    candidates = Stream("s", "/v2/s", 20, singular, "A list.").key_candidates
    assert candidates[0] == "id"
    assert len(set(candidates)) == len(candidates)
    assert all(name.isidentifier() for name in candidates)


def known(**given: StreamSettings) -> tuple[Stream, ...]:
    return streams.known(Settings(streams=given))


PLANS = StreamSettings(path="/v2/plans")
INVOICES = StreamSettings(path="/v2/invoices", surface="merchant")


def test_settings_add_to_the_shelf() -> None:
    assert known() == STREAMS
    every = known(plans=PLANS, usage=StreamSettings(key="sequence"))
    assert every[:-1] == STREAMS
    plans = every[-1]
    assert (plans.name, plans.path, plans.limit, plans.surface) == (
        "plans",
        PLANS.path,
        100,
        "partner",
    )
    assert plans.key_candidates == ("id", "planId", "plan_id")


def test_a_limit_makes_pages_smaller_and_is_believed_where_nothing_else_is_known() -> None:
    limits = {"usage": 50, "partners": 5000, "plans": 500}
    given = {name: StreamSettings(limit=limit) for name, limit in limits.items()}
    given["plans"] = StreamSettings(limit=500, path="/v2/plans")
    found = {each.name: each.limit for each in known(**given)}
    assert found == {"billing": 100, "partners": 100, "usage": 50, "plans": 500}


def test_a_connection_reads_its_own_surface() -> None:
    given = Settings(streams={"plans": PLANS, "invoices": INVOICES})
    partner = {each.name for each in streams.known(given, "partner")}
    assert partner == {"billing", "partners", "plans", "usage"}
    assert [each.name for each in streams.known(given, "merchant")] == ["invoices"]


REFUSED = {
    "no path": ({"plans": StreamSettings(key="id")}, r"\[streams.plans\]: no stream .* discover"),
    "a known path": ({"usage": PLANS}, "path of usage is known"),
    "twice": ({"a": PLANS, "b": PLANS}, r"\[streams.b\]: /v2/plans is read as a already"),
    "the shelf's": ({"more": StreamSettings(path="/v2/usage")}, "/v2/usage is read as usage"),
    "no name of a table": ({"usage__events": PLANS}, "cannot be called so"),
}


@pytest.mark.parametrize(("given", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_cannot_be_read_or_landed_is_refused(
    given: dict[str, StreamSettings], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        known(**given)


TABLES = {
    "plans": True,
    "payment_methods": True,
    "v2": True,
    "a" * 40: True,
    "a" * 41: False,
    "Plans": False,
    "2nd": False,
    "usage__events": False,
    "plans_": False,
    "plans_seen": False,
    "pläne": False,
    "plan s": False,
    "": False,
}


@pytest.mark.parametrize(("name", "fits"), TABLES.items())
def test_names_of_tables(name: str, fits: bool) -> None:  # noqa: FBT001
    assert fits_a_table(name) is fits


SINGULARS = {
    "plans": "plan",
    "gateways": "gateway",
    "invoices": "invoice",
    "companies": "company",
    "addresses": "address",
    "statuses": "status",
    "boxes": "box",
    "batches": "batch",
    "usage": "usage",
    "status": "status",
    "payment_methods": "payment_method",
    "purchases": "purchase",
}


@pytest.mark.parametrize(("name", "one"), SINGULARS.items())
def test_what_one_record_is_called(name: str, one: str) -> None:
    assert singular(name) == one


def test_the_described_key_is_looked_at_first() -> None:
    stream = Stream("plans", "/v2/plans", 20, "plan", "A list.", likely_key="planId")
    assert stream.key_candidates == ("planId", "id", "plan_id")

"""The shelf of streams: the document's three lists, no more and no less."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import streams
from pipelines.streams import STREAMS
from pipelines.streams.base import Stream

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

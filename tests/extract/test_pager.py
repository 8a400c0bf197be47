"""How far a list may be read."""

import pytest

from pipelines.core.proof import ListTraits
from pipelines.extract.key import KeySearch
from pipelines.extract.pager import Pager
from pipelines.extract.pages import ReadingEnded

FURTHEST = {None: 20_000, 10: 2_500, 1_000: 25_000}  # offset of a page of one row, by known length


@pytest.mark.parametrize("length", FURTHEST)
def test_a_list_that_does_not_end_is_given_up(length: int | None) -> None:
    traits = ListTraits(length=length)
    pager = Pager(traits, KeySearch(None, traits), [])
    assert next(pager.page(FURTHEST[length])).request.offset == FURTHEST[length]
    with pytest.raises(ReadingEnded, match="the list does not end"):
        next(pager.page(FURTHEST[length] + 1))

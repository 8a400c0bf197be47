"""A list read from offset 0 to its end."""

import asyncio
from collections.abc import Mapping

import pytest

from pipelines.api import chain
from pipelines.api.page import Page
from pipelines.errors import Unavailable
from tests.api.test_page import answer

# Next offset of each page of a list, by the offset it is at.
LISTS: list[tuple[dict[int, int | None], list[int]]] = [
    ({0: None}, [0]),
    ({0: 500, 500: 1000, 1000: None}, [0, 500, 1000]),
    ({0: 7, 7: 9, 9: 500, 500: None}, [0, 7, 9, 500]),
]


async def walked(following: Mapping[int, int | None]) -> tuple[list[int], list[int]]:
    """Return the offsets that were asked for, and those of the pages that came."""
    asked: list[int] = []

    async def fetch(offset: int) -> Page:
        asked.append(offset)
        if offset not in following:
            raise Unavailable("gone")
        after = following[offset]
        return Page(offset, 500, 0, after is not None, after, answer(b""))

    return asked, [page.offset async for page in chain.walk(fetch)]


@pytest.mark.parametrize(("following", "offsets"), LISTS)
def test_a_list_is_walked_by_its_next_offsets(
    following: dict[int, int | None], offsets: list[int]
) -> None:
    assert asyncio.run(walked(following)) == (offsets, offsets)


def test_a_page_that_fails_ends_the_walk() -> None:
    with pytest.raises(Unavailable, match="gone"):
        asyncio.run(walked({0: 500}))


def test_no_page_is_asked_for_before_the_last_was_taken() -> None:
    asked: list[int] = []

    async def fetch(offset: int) -> Page:
        asked.append(offset)
        return Page(offset, 1, 1, True, offset + 1, answer(b""))

    async def main() -> None:
        async for page in chain.walk(fetch):
            if page.offset == 2:
                break

    asyncio.run(main())
    assert asked == [0, 1, 2]

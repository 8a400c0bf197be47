"""The chain of pages: one list, read from offset 0 to its end.

For now a plain walk by `next_offset` (Pagination rules 1 and 2). The proof of completeness, with
its anchors and grades, takes this function's place and keeps its shape.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from pipelines.api.page import Page


async def walk(fetch: Callable[[int], Awaitable[Page]]) -> AsyncIterator[Page]:
    """Yield a list's pages in order; `fetch` returns the page at an offset.

    An empty page without more is a valid end (Pagination rule 4).
    """
    offset: int | None = 0
    while offset is not None:
        page = await fetch(offset)
        yield page
        offset = page.next_offset

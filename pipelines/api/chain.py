"""The chain of pages: one list, read from offset 0 to its end.

For now a plain walk by `next_offset` (Pagination rules 1 and 2). The proof of completeness, with
its anchors and grades, takes this function's place and keeps its shape.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

from pipelines.api.page import Page
from pipelines.errors import ContractBroken


async def walk(fetch: Callable[[int], Awaitable[Page]]) -> AsyncIterator[Page]:
    """Yield a list's pages in order; `fetch` returns the page at an offset.

    An empty page without more is a valid end (Pagination rule 4).
    """
    offset: int | None = 0
    while offset is not None:
        page = await fetch(offset)
        yield page
        offset = _next(page) if page.has_more else None


def _next(page: Page) -> int:
    """Return the offset of the next page (Pagination rule 1)."""
    following = page.offset + page.rows if page.next_offset is None else page.next_offset
    if following <= page.offset:
        raise ContractBroken(f"server does not advance (offset {page.offset} -> {following})")
    return following

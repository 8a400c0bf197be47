"""What a page says of its place in the list, and how far that can be believed.

Here: where a page ends, how much the next one overlaps it, and what is wrong with its metadata.
Not here: what the chain does about it (chain).
"""

from math import ceil

from pipelines.api.page import Page

SMALL_LIMIT = 100
GROWTH = 25  # a list may be so many times as long as last time, and at least so many pages
PAGES = 2_500


def overlap(limit: int) -> int:
    """Return how many rows back of a page's end the next one begins, so that they share one.

    A page of one row cannot overlap and still go on: 0.
    """
    return min(3 if limit <= SMALL_LIMIT else 5, limit - 1)


def quiet_cost(rows: int, limit: int) -> int:
    """Return the requests that a list of so many rows takes where nothing changes meanwhile."""
    step = max(1, limit - overlap(limit))
    full = rows >= limit and (rows - limit) % step == 0  # the last page: one request behind it
    if rows <= limit:
        return 1 + full
    return 1 + ceil((rows - limit) / step) + full + 1


def endless(offset: int, expected: int, limit: int) -> bool:
    """Whether a page begins further on than a list of `expected` rows can have grown.

    Where nobody knows the length (0), it may be any.
    """
    return expected > 0 and offset >= max(GROWTH * expected, PAGES * limit)


def end(page: Page) -> int:
    """Return the offset behind a page.

    A short page with more behind it, whose next offset is as if it were whole, comes from a
    service that filters after paging: its offsets count what it left out.
    """
    behind = page.offset + page.rows
    following = page.next_offset
    if not page.has_more or following is None or page.rows >= page.limit:
        return behind
    return following if behind < following <= page.offset + page.limit else behind


def doubtful(page: Page) -> bool:
    """Whether a page should be asked for once more before it is taken at its word."""
    if not page.has_more:
        return False
    following = page.next_offset
    return page.rows == 0 or following is None or following <= page.offset or bool(hidden(page))


def hidden(page: Page) -> str:
    """Say that a page lacks rows where it stands, empty where it does not say so.

    It is short, more follows, and what follows is said to begin behind rows that nobody showed.
    """
    following = page.next_offset
    if not page.has_more or not page.rows or following is None:
        return ""
    if page.rows >= page.limit or following <= page.offset + page.rows:
        return ""
    return (
        f"the page at offset {page.offset:,} has {page.rows:,} of {page.limit:,} rows, "
        f"and next_offset is {following:,}"
    )


def stands_still(page: Page) -> bool:
    """Whether following the page's own metadata would never end."""
    following = page.next_offset
    return page.has_more and following is not None and following <= page.offset


def flag(page: Page) -> str | None:
    """Say what a page's metadata say against the rules, though it can be used."""
    following, where = page.next_offset, f"at offset {page.offset}"
    if not page.has_more:
        return None if following is None else f"next_offset without has_more {where}"
    if page.rows == 0:
        return f"has_more without rows {where}"
    if following is None:
        return f"has_more without next_offset {where}"
    if following > max(page.offset + page.limit, page.offset + page.rows):
        return f"next_offset {following} leaves out rows {where}"
    return None

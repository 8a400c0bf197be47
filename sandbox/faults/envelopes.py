"""Paging metadata that breaks the rules ("Pagination parameters", "Pagination envelope").

Not here: what the page holds (contents).
"""

from sandbox.faults.kind import Kind, Stage
from sandbox.faults.page import Page


def wrong_offset(page: Page, _value: None) -> None:
    """Say another offset than the one asked for."""
    page.say(offset=page.offset + 1)


def no_next(page: Page, _value: None) -> None:
    """Say that there is more, and not where (against rule 1)."""
    if page.has_more:
        page.say(next_offset=None)


def more_after_the_end(page: Page, _value: None) -> None:
    """Say that there is more, with an offset, where there is nothing."""
    page.say(has_more=True, next_offset=page.offset + len(page.rows))


def end_in_the_middle(page: Page, _value: None) -> None:
    """Say that this is the end while there is more."""
    page.say(has_more=False, next_offset=None)


def empty_page(page: Page, _value: None) -> None:
    """Hold nothing although there is more."""
    if page.has_more:
        page.rows = []


def standstill(page: Page, _value: None) -> None:
    """Say the same offset again."""
    if page.has_more:
        page.say(next_offset=page.offset)


def jump(page: Page, value: float) -> None:
    """Leave out some items between this page and the next."""
    following = page.pagination["next_offset"] if page.pagination else None
    if following is not None:
        page.say(next_offset=following + round(value))


def no_pagination(page: Page, _value: None) -> None:
    """Leave the paging metadata out."""
    page.pagination = None


def texts(page: Page, _value: None) -> None:
    """Write the integers as texts."""
    names = ("limit", "offset", "next_offset")
    known = page.pagination or {}
    page.say(**{name: str(known[name]) for name in names if known.get(name) is not None})


PAGE = Stage.PAGE
FAMILY = (
    Kind("wrong-offset", "pagination.offset is one more than asked", PAGE, wrong_offset),
    Kind("no-next-offset", "has_more true, next_offset null", PAGE, no_next),
    Kind("endless", "has_more true on every page, the last too", PAGE, more_after_the_end),
    Kind("false-end", "has_more false while there is more", PAGE, end_in_the_middle),
    Kind("empty-page", "data empty, has_more true", PAGE, empty_page),
    Kind("standstill", "next_offset is the page's own offset", PAGE, standstill),
    Kind("jump", "next_offset leaves out value items", PAGE, jump, 7.0),
    Kind("no-pagination", "no pagination object", PAGE, no_pagination),
    Kind("pagination-texts", "pagination's integers as texts", PAGE, texts),
)

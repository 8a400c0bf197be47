"""The page of a statement, which prints on A4; and the list of all statements."""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple

from jinja2 import Environment

from pipelines.core.text import counted
from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.templates import templates_of
from pipelines.finance.statements import words
from pipelines.finance.statements.figures import Request, Statement

# Of the page; the workbook has more.
MOST_LINES: Final = 30
MOST_REQUESTS: Final = 30
MOST_CORRECTIONS: Final = 30


class Rest(NamedTuple):
    """What a page has no room for: how many differences of a currency, and their sum."""

    currency: str | None
    number: int
    difference: Decimal


def render_statement(statement: Statement) -> str:
    """Return the page of a statement: the same statement has the same page."""
    page = _environment().get_template("statement.html")
    return page.render(
        statement=statement,
        balance_columns=words.BALANCE,
        about_balance=words.ABOUT_BALANCE,
        asks=words.ASKS[statement.side],
        requests=_shortened(statement.requests[:MOST_REQUESTS]),
        other_requests=_rest(
            (each.currency, each.difference) for each in statement.requests[MOST_REQUESTS:]
        ),
        corrections=statement.corrections[:MOST_CORRECTIONS],
        other_corrections=_rest(
            (row["currency"], row["difference"]) for row in statement.corrections[MOST_CORRECTIONS:]
        ),
        currencies={row["currency"] for row in statement.totals},
    )


def render_list(statements: Iterable[tuple[Any, str | None, str | None]]) -> str:
    """Return the page that lists statements, newest first: each with the day and the recipient."""
    return _environment().get_template("list.html").render(statements=statements)


def _shortened(requests: Sequence[Request]) -> list[tuple[Request, Sequence[Any], int]]:
    """Return requests with the lines for which the page has room, and how many it lacks."""
    room = MOST_LINES
    shown = []
    for request in requests:
        lines = request.lines[:room]
        room -= len(lines)
        shown.append((request, lines, request.left_out + len(request.lines) - len(lines)))
    return shown


def _rest(differences: Iterable[tuple[str | None, Decimal | None]]) -> list[Rest]:
    """Return the number and the sum of differences by currency; without an amount, they count."""
    rest: dict[str | None, Rest] = {}
    for currency, difference in differences:
        before = rest.get(currency, Rest(currency, 0, Decimal(0)))
        total = EXACT.add(before.difference, difference or Decimal(0))
        rest[currency] = Rest(currency, before.number + 1, total)
    return list(rest.values())


def format_number(value: Decimal | None) -> str:
    """Return a quantity or price with all its digits, and none that say nothing; empty for None."""
    if value is None:
        return ""
    return f"{value.normalize(EXACT):,f}".replace("-", "\u2212")


@cache
def _environment() -> Environment:
    made = templates_of("pipelines.finance.statements")
    made.filters |= {"number": format_number, "counted": counted, "exact": Decimal}
    return made

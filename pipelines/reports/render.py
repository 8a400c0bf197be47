"""Turns figures into one HTML page that needs no other file, no script and no network."""

import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from pipelines.core.currencies import USUAL_DIGITS
from pipelines.core.text import printable
from pipelines.reports.chart import axis_of
from pipelines.reports.queries import Figures
from pipelines.reports.text import digits_of, format_amount, format_month, format_time

WRONG: Final = {  # what a cause does not say itself
    "not_billed": "Used and not billed",
    "not_used": "Billed without usage",
    "billed_twice": "Billed more than once",
    "different": "Bill and usage differ",
}
TO_DO: Final = {  # what the remedy of a rule says of several causes
    "missing on the bill": "Ask why the bill lacks it.",
    "recorded after the last bill": "Put it on the next bill.",
    "changed after the bill": "Ask for a correction of the bill.",
}
CODE: Final = re.compile(r"`([^`]+)`")
FIGURE_SPACE, POINT_SPACE = "\u2007", "\u2008"  # as wide as a digit, and as a point


class PastReport(NamedTuple):
    """A report that was written earlier."""

    version: int
    file: str
    written_at: datetime


def render_report(figures: Figures) -> str:
    """Return the page of a version."""
    currencies = [row["currency"] for row in figures.tables["currencies"]]
    digits = max(map(digits_of, currencies), default=USUAL_DIGITS)

    def money(value: Decimal | None, currency: str | None, *, signed: bool = False) -> Markup:
        """Format an amount for a column in which decimal points stand below each other."""
        text = format_amount(value, currency, signed=signed)
        lacks = digits - len(text.partition(".")[2])
        is_padded = value is not None and lacks > 0
        point = "" if "." in text else POINT_SPACE
        return escape(text) + Markup(point + FIGURE_SPACE * lacks if is_padded else "")  # noqa: S704 - spaces

    page = _environment().get_template("page.html")
    return page.render(figures.tables, figures=figures, money=money)


def render_index(reports: Sequence[PastReport]) -> str:
    """Return the page that links to the reports."""
    return _environment().get_template("index.html").render(reports=reports)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("pipelines.reports", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"month": format_month, "time": format_time, "amount": format_amount}
    made.filters["marked"] = _marked
    made.globals |= {"axis_of": axis_of, "wrong": WRONG, "to_do": TO_DO}
    return made


def _visible(value: object) -> object:
    """Make control characters of foreign text visible, wherever it is put into the page."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _marked(text: str) -> Markup:
    """Show commands in backticks as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))  # noqa: S704 - escaped

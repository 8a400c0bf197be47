"""Here: how pages are made of templates: no foreign text is markup, and none is invisible.

Not here: what they show (render, finance.statements.page).
"""

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipelines.core.text import printable
from pipelines.finance.reports.text import format_amount, format_day, format_month, format_time


def templates_of(package: str) -> Environment:
    """Return the templates in the folder of a package, with the filters that all pages have."""
    templates = Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"month": format_month, "day": format_day, "time": format_time}
    templates.filters["amount"] = format_amount
    return templates


def _visible(value: object) -> object:
    """Make control characters of foreign text visible, wherever it is put into the page."""
    is_foreign = isinstance(value, str) and not isinstance(value, Markup)
    return printable(value) if is_foreign else value

"""Turns figures into one HTML page that needs no other file, no script and no network."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal, localcontext
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from jinja2 import Environment
from markupsafe import Markup, escape

from pipelines.core.text import counted
from pipelines.finance.currencies import USUAL_DIGITS, digits_of
from pipelines.finance.reconcile.statements import RULES, read_statement
from pipelines.finance.reports.amounts import EXACT
from pipelines.finance.reports.charts import brief, scale_of
from pipelines.finance.reports.embed import Packed, pack
from pipelines.finance.reports.listings import ABOUT_PARTS, PARTS
from pipelines.finance.reports.month_verdicts import (
    OPEN_BREAKS,
    Answer,
    SignOff,
    order_of,
    sums_by_reason,
)
from pipelines.finance.reports.operator import OperatorNotes, mark_code
from pipelines.finance.reports.queries import Figures
from pipelines.finance.reports.tables import (
    by_currency,
    lay_out_ages,
    lay_out_breaks,
    lay_out_due,
    lay_out_overdue,
    lay_out_signs,
)
from pipelines.finance.reports.templates import templates_of
from pipelines.finance.reports.text import ISSUER, format_amount, format_cause, stop_after
from pipelines.finance.reports.to_do import TREATMENTS, to_do
from pipelines.finance.reports.told import count_by_state
from pipelines.finance.reports.verdicts import judge
from pipelines.warehouse.duckdb_file import Row

# As wide as a digit, and as a point; no line breaks at them.
FIGURE_SPACE: Final = "\u2007"
POINT_SPACE: Final = "\u2060\u2008\u2060"


# In this order: no text becomes HTML, also not while the library starts.
SCRIPTS: Final = (
    "script/trusted.js", "vendor/dataTables.LICENSE.txt", "vendor/dataTables.min.js",
    "script/amounts.js", "script/lists.js", "script/cells.js", "script/tables.js",
    "script/page.js",
)  # fmt: skip


class PastReport(NamedTuple):
    """A report that was written earlier."""

    version: int
    file: str
    written_at: datetime


class Beside(NamedTuple):
    """Files that lie beside the page, to which it links.

    `has_statements`: there is a list of statements for partners; None: the page says nothing about
    statements. `copies` has, by month and number of a close, files of its copy: the name that the
    page shows, and the path from the folder of the page.
    """

    has_statements: bool | None
    copies: Mapping[tuple[date, int], Mapping[str, str]]


NOTHING_BESIDE: Final = Beside(None, {})


def render_report(figures: Figures) -> str:
    """Return the page of a version, without a script: as it is printed, and as it is signed."""
    return _render(figures, [])


def render_page(figures: Figures, beside: Beside = NOTHING_BESIDE) -> str:
    """Return the page of a version that also answers by clicking, as far as its rows have room."""
    plain = _render(figures, [], beside)
    taken = len(plain.encode()) + sum(len(script.encode()) for script in _scripts())
    currencies = order_of(figures)
    digits = {currency: digits_of(currency) for currency in currencies if currency}
    lists = pack(figures.details, taken, {"": USUAL_DIGITS, **digits})
    return _render(figures, lists, beside)


def _render(figures: Figures, lists: Sequence[Packed], beside: Beside = NOTHING_BESIDE) -> str:
    tables = figures.tables
    order = order_of(figures)
    not_open = [row for row in tables["reasons"] if row["reason"] != OPEN_BREAKS]
    page = _environment().get_template("page.html")
    scripts = _scripts() if lists else ()
    style = _read("page.css")
    operator = OperatorNotes()
    # Charts divide amounts, which may have more digits than Python's default context.
    with localcontext(EXACT):
        return page.render(
            tables,
            figures=figures,
            verdicts=judge(figures),
            money=_money_of(order),
            connections={row["connection"] for row in tables["proofs"]},
            unknown_partners=_unknown_partners(tables["open_breaks"]),
            shown_breaks=lay_out_breaks(tables["open_breaks"], order),
            open_with=by_currency(tables["partners"]),
            charts=by_currency(tables["trend"]),
            ages=lay_out_ages(tables["ageing"]),
            signs=lay_out_signs(tables["ageing"]),
            due=lay_out_due(tables["receivables"]),
            overdue_ages=lay_out_overdue(tables["receivables"]),
            other_differences=sums_by_reason(not_open, order),
            set_apart=sums_by_reason(tables["apart"], order),
            lists=lists,
            told_counts=_told_counts(figures),
            has_statements=beside.has_statements,
            copies=beside.copies,
            operator=operator,
            said=operator.said,
            note=operator.note,
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our files
            style=Markup(style),  # noqa: S704 - our file
            policy=_policy(style, scripts),
        )


def _told_counts(figures: Figures) -> dict[str | None, int]:
    """Return how many open breaks partners were told of; empty where that is not read."""
    if figures.told is None:
        return {}
    breaks = [row for row in figures.tables["open_breaks"] if row["own_source"] is None]
    return count_by_state(breaks, figures.told)


@cache
def _scripts() -> tuple[str, ...]:
    """Return the scripts of the page. The license of the library is a comment in it."""
    scripts = []
    for name in SCRIPTS:
        text = _read(name)
        scripts.append(f"/*\n{text}*/" if name.endswith(".txt") else text)
    return tuple(scripts)


@cache
def _read(name: str) -> str:
    return files("pipelines.finance.reports").joinpath(name).read_text("utf-8")


def _policy(style: str, scripts: Sequence[str]) -> str:
    """Return the policy of the page: only its own style and scripts act, and nothing is loaded."""
    parts = ["default-src 'none'", f"style-src {_source(style)}"]
    parts += ["base-uri 'none'", "form-action 'none'"]
    if scripts:
        parts.append(f"script-src {' '.join(map(_source, scripts))}")
        parts += ["require-trusted-types-for 'script'", "trusted-types default"]
    return "; ".join(parts)


def _source(text: str) -> str:
    """Return the source of a policy that is exactly this text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _money_of(currencies: Iterable[str | None]) -> Callable[..., Markup]:
    """Return what formats amounts for columns in which decimal points stand below each other."""
    digits = max(map(digits_of, currencies), default=USUAL_DIGITS)

    def money(value: Decimal | None, currency: str | None, *, signed: bool = False) -> Markup:
        text = format_amount(value, currency, signed=signed)
        padding = ""
        lacking = digits - len(text.partition(".")[2])
        if value is not None and lacking > 0:
            padding = FIGURE_SPACE * lacking
            if "." not in text:
                padding = POINT_SPACE + padding
        return escape(text) + Markup(padding)  # noqa: S704 - spaces

    return money


def render_index(reports: Sequence[PastReport]) -> str:
    """Return the page that links to the reports."""
    return _environment().get_template("index.html").render(reports=reports)


@cache
def _environment() -> Environment:
    made = templates_of("pipelines.finance.reports")
    made.filters |= {"code": mark_code, "kind": _kind, "finding": _finding}
    made.filters |= {"to_do": _to_do, "brief": brief, "cause": format_cause}
    made.globals |= {"issuer": ISSUER, "treatments": TREATMENTS, "stop": stop_after}
    made.globals |= {"flux_parts": PARTS, "about_parts": ABOUT_PARTS}
    made.globals |= {
        "scale_of": scale_of,
        "zip": zip,
        "number": counted,
        "Answer": Answer,
        "SignOff": SignOff,
    }
    return made


def _unknown_partners(open_breaks: Sequence[Row]) -> set[str]:
    """Return the identifiers that are named on a record and are in no list of partners."""
    return {row["partner"] for row in open_breaks if row["rule"] == "unknown_partner"}


def _kind(rule: str) -> str:
    """Return what breaks of a rule are, as a heading."""
    return _labels().get(rule) or rule.replace("_", " ").capitalize()


def _finding(row: Row) -> str:
    """Return what is wrong of a break: its kind and its cause, once if they are the same."""
    label = _labels().get(row["rule"])
    cause: str = row["cause"]
    if label and label.lower() != cause:
        return f"{label}: {format_cause(cause)}"
    text = format_cause(cause) or cause
    return text[:1].upper() + text[1:]


def _to_do(row: Row) -> str:
    return to_do(row["rule"], row["cause"], row["difference"], row["remedy"])


@cache
def _labels() -> dict[str, str]:
    """Return what breaks of a rule are called, of rules whose causes do not say it."""
    labels = {rule: read_statement(rule).label for rule in RULES}
    return {rule: label for rule, label in labels.items() if label}

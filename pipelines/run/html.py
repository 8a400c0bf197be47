"""What is on the page of the reports: tables, charts, breaks with their rows, all of it escaped.

Here: what is shown and how much of it. Not here: how it looks (report.html, report.css,
report.js), the pictures (charts), where it is written (reporting).
"""

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipelines.reports import REPORTS, Report
from pipelines.run import charts
from pipelines.settings.currencies import unit
from pipelines.warehouse import frames
from pipelines.warehouse.database import exists, listed
from pipelines.warehouse.published import Published

LARGEST, LEAST = 2_000_000, 1 / 64  # bytes of a page; the part of the rows that is shown at least
ROWS, BREAKS, OF_BREAK, TOTALS = 250, 120, 20, 200
LETTERS, LINE = 300, 40  # of a text in a cell, and of one that stays on its line
FIRST = "reconciliation_pack"  # what is read first
HERE = Path(__file__).parent
WORST = "list_position(['high', 'medium', 'low'], severity)"
OPEN = f"""
SELECT breaks.*, means, remedy
FROM reconciliation.breaks LEFT JOIN (SELECT rule, means, remedy FROM reconciliation.rules)
USING (rule) WHERE state <> 'RESOLVED'
ORDER BY artefact, {WORST}, currency, abs(difference) DESC NULLS LAST, break_id
"""
COUNTED = "SELECT count(*) FROM reconciliation.breaks WHERE state <> 'RESOLVED'"
RECORDS = """
FROM reconciliation.break_rows WHERE break_id IN ({ids})
QUALIFY row_number() OVER (PARTITION BY break_id ORDER BY side, id, page, row) <= {most}
ORDER BY side, id, page, row
"""
PROOFS = """
SELECT connection, stream, coalesce(sentence, f.grade) AS sentence, doubt, f.ended_at,
       f.published_at
FROM meta.freshness AS f LEFT JOIN meta.proofs AS p USING (connection, stream, manifest)
ORDER BY doubt IS NULL, connection, stream
"""
MONEY = ("used_amount", "billed_amount", "difference")  # of a break
NUMBERS = (int, Decimal, float)
LONGEST = Context(prec=100)  # more digits than any DECIMAL


@dataclass(frozen=True)
class Told:
    """What the contents say of a report."""

    rows: int
    unsaid: str


@dataclass(frozen=True)
class Cell:
    """A value as it is shown, and how: n(umber) or l(ong); `anchor` leads to a break."""

    text: str
    look: str = ""
    anchor: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table on the page: its header, the rows there is room for, how many there are more."""

    names: list[str]
    texts: list[str]
    looks: list[str]
    rows: list[list[Cell]]
    more: int
    table: str


@dataclass(frozen=True)
class Part:
    """Rows that are to be shown: of which table, how many there are more, what is money in them."""

    rows: pd.DataFrame
    table: str
    more: int
    texts: Mapping[str, str]
    money: Collection[str]
    currency: str = ""  # of all of them, where no column says it

    def shown(self, anchors: Collection[str] = ()) -> Sheet:
        """Return them as they are shown; a column in which nothing is said is left out."""
        kept = [str(name) for name in self.rows if _says(self.rows[name], str(name))]
        cells = [
            [self._cell(name, row, anchors) for name in kept]
            for row in self.rows.to_dict("records")
        ]
        names = [name.replace("_", " ") for name in kept]
        texts = [self.texts.get(name, "") for name in kept]
        looks = [
            "n" if "n" in {cell.look for cell in each} else "" for each in zip(*cells, strict=True)
        ]
        return Sheet(names, texts, looks or [""] * len(kept), cells, self.more, self.table)

    def _cell(self, name: str, row: Mapping[Any, Any], anchors: Collection[str]) -> Cell:
        value = row[name]
        if isinstance(value, Decimal) and name in self.money:
            return Cell(_amount(value, str(row.get("currency", self.currency))), "n")
        text = _said(value)
        if isinstance(value, NUMBERS) and not isinstance(value, bool):
            return Cell(text, "n")
        return Cell(text, "l" if len(text) > LINE else "", text in anchors)


@dataclass(frozen=True)
class Picture:
    """A chart on the page, and what it shows; nothing where there is nothing to draw."""

    svg: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A report on the page."""

    report: Report
    sheet: Sheet
    unsaid: str
    picture: Picture


@dataclass(frozen=True)
class Break:
    """A break on the page: its columns by name, and its records."""

    of: dict[str, str]
    records: Sheet


def page(source: Published) -> str:
    """Return the page; of long tables as many rows as it has room for."""
    pictures = {each.name: _picture(source.database, each) for each in REPORTS}
    text, room = "", 1.0
    while not text or (len(text.encode()) > LARGEST and room > LEAST):
        text, room = _rendered(source, pictures, room), room / 2
    return text


def contents(database: duckdb.DuckDBPyConnection) -> dict[str, Told]:
    """Return what the reports of a file are, by name."""
    found = database.execute("SELECT report, rows, not_evaluated FROM reports.contents").fetchall()
    return {name: Told(rows, unsaid or "") for name, rows, unsaid in found}


def totals(database: duckdb.DuckDBPyConnection, report: Report) -> list[dict[str, object]]:
    """Return a report's sums by its grain, as many as a preview shows."""
    rows: list[dict[str, object]] = database.sql(report.totals).to_arrow_table().to_pylist()
    return rows[:TOTALS]


def picture(database: duckdb.DuckDBPyConnection, report: Report) -> bytes:
    """Return a report's chart as PNG; nothing where it has none or nothing to draw."""
    frame = _drawn(database, report)
    return charts.png(report, frame) if frame is not None else b""


def _drawn(database: duckdb.DuckDBPyConnection, report: Report) -> pd.DataFrame | None:
    frame = frames.query(database, report.drawn) if report.chart else None
    return frame if frame is not None and len(frame) else None


def _rendered(source: Published, pictures: Mapping[str, Picture], room: float) -> str:
    database = source.database
    breaks, more = _breaks(database, room)
    anchors = {each.of["break_id"] for each in breaks}
    told = contents(database)
    ordered = sorted(REPORTS, key=lambda each: (each.name != FIRST, each.title))
    script = (HERE / "report.js").read_text()
    engine = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return engine.get_template("report.html").render(
        script=Markup(script),  # noqa: S704 ours, and by its hash the only one that runs
        style=Markup((HERE / "report.css").read_text()),  # noqa: S704 ours
        hash=base64.b64encode(sha256(script.encode()).digest()).decode(),
        version=source.version,
        proofs=frames.query(database, PROOFS).to_dict("records"),
        unsaid=_unsaid(database),
        sections=[
            Section(
                each,
                _part(database, each, told[each.name], room).shown(anchors),
                told[each.name].unsaid,
                pictures[each.name],
            )
            for each in ordered
            if each.name in told
        ],
        breaks=breaks,
        more_breaks=more,
        said=_said,
    )


def _picture(database: duckdb.DuckDBPyConnection, report: Report) -> Picture:
    frame = _drawn(database, report)
    if frame is None:
        return Picture()
    drawn = Markup(charts.svg(report, frame))  # noqa: S704 matplotlib escapes every text
    return Picture(drawn, charts.caption(report, frame))


def _part(database: duckdb.DuckDBPyConnection, report: Report, told: Told, room: float) -> Part:
    rows = frames.query(database, f"FROM {report.table} LIMIT {int(ROWS * room)}")
    texts = {name: column.text for name, column in report.columns.items()}
    return Part(rows, report.table, told.rows - len(rows), texts, report.money)


def _says(column: pd.Series, name: str) -> bool:
    """Tell whether a column says something; that all is of one connection does not."""
    return bool(column.notna().any()) and (name != "connection" or len(set(column.dropna())) > 1)


def _breaks(database: duckdb.DuckDBPyConnection, room: float) -> tuple[list[Break], int]:
    """Return the open breaks there is room for, the worst first, and how many there are more."""
    if not _known(database):
        return [], 0
    found = frames.query(database, f"{OPEN} LIMIT {int(BREAKS * room)}")
    [(every,)] = database.execute(COUNTED).fetchall()
    ids = listed(map(str, found["break_id"])) or "NULL"
    records = frames.query(database, RECORDS.format(ids=ids, most=OF_BREAK))
    breaks = []
    for row in found.to_dict("records"):
        own = records[records["break_id"] == row["break_id"]].drop(columns="break_id")
        more = max(0, int(row["rows"]) - len(own))
        currency = _said(row["currency"])
        told = {str(name): _said(value) for name, value in row.items()}
        told |= {name: _amount(row[name], currency) for name in MONEY}
        part = Part(own, "reconciliation.break_rows", more, {}, {"amount"}, currency)
        breaks.append(Break(told, part.shown()))
    return breaks, every - len(found)


def _known(database: duckdb.DuckDBPyConnection) -> bool:
    return all(exists(database, "reconciliation", table) for table in ("breaks", "rules"))


def _unsaid(database: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return what was not evaluated and why: rules, then reports that lack their tables."""
    rules: list[tuple[str, Any]] = []
    if exists(database, "reconciliation", "rules"):
        rules = database.execute(
            "SELECT rule, not_evaluated FROM reconciliation.rules WHERE NOT evaluated ORDER BY rule"
        ).fetchall()
    missing = [(name, told.unsaid) for name, told in contents(database).items() if told.unsaid]
    missing = [] if rules else missing
    return [(name, _said(why)) for name, why in [*rules, *missing]]


def _amount(value: Any, currency: str) -> str:
    """Return an amount with the places of its currency, or as many more as it has."""
    if not isinstance(value, Decimal):
        return _said(value)
    whole = value.quantize(unit(currency), context=LONGEST)
    return f"{whole:,f}" if whole == value else _said(value)


def _said(value: Any) -> str:
    """Return a value in words, numbers to the last digit; a text as long as a cell has room."""
    match value:
        case None | bool():
            return "" if value is None else "yes" if value else "no"
        case int() | Decimal():
            return f"{Decimal(value).normalize(LONGEST):,f}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M} UTC"
        case date():
            return value.isoformat()
    if value is pd.NA or value is pd.NaT:
        return ""
    text = str(value)
    return text if len(text) <= LETTERS else f"{text[:LETTERS]}…"

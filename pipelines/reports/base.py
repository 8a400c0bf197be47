"""What a report is, and what writes one as a table: its columns, its comments, what it cannot say.

Here: no report and no picture of one (run/charts). A report reads what publication has made ready;
its query never sums across currencies, and its money is DECIMAL.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import duckdb

from pipelines.warehouse.database import exists, literal, quoted, scalar, together

MONEY = "DECIMAL(38, 4)"  # where a table is missing; else as many places as the data have
UNSAID = "not_evaluated"
SILENT = "SELECT rule, not_evaluated FROM reconciliation.rules WHERE NOT evaluated"


class Column(NamedTuple):
    """A column of a report: its meaning, its type where there are no data, whether it is money."""

    text: str
    type: str = "VARCHAR"
    money: bool = False


def money(text: str) -> Column:
    """Return a column of amounts, each in the currency of its row."""
    return Column(text, MONEY, money=True)


def count(text: str) -> Column:
    """Return a column of whole numbers."""
    return Column(text, "BIGINT")


# The columns that most reports begin with, and the one that all end with.
KEYS = {
    "connection": Column("the set of credentials that read it"),
    "partner": Column("the partner's identifier, as usage and billing name it"),
    "partner_name": Column("the partner's name; empty: no such partner is in the list"),
    "month": Column("its first day, in the time zone of the mapping", "DATE"),
    "currency": Column("of every amount in this row; nothing is summed across currencies"),
}
LAST = {
    UNSAID: Column("what this row cannot say and why; empty: nothing is left out"),
}


@dataclass(frozen=True)
class Chart:
    """A picture: sums of columns (`bars`) along an axis, one panel for each value of `panel`.

    `only` is an SQL condition on the rows. No axis names a partner: a picture is kept for ever.
    """

    words: str
    across: str
    bars: tuple[str, ...]
    panel: str = "currency"
    only: str = "true"


@dataclass(frozen=True)
class Report:
    """One report: the question it answers, the tables it needs, its query and its columns.

    `rests_on` are the rules without which it is not whole. `grain` are the columns that its totals
    are shown by where no partner may be named.
    """

    name: str
    title: str
    question: str
    needs: tuple[str, ...]
    sql: str
    columns: Mapping[str, Column]
    grain: tuple[str, ...]
    rests_on: tuple[str, ...] = ()
    chart: Chart | None = None

    @property
    def money(self) -> tuple[str, ...]:
        """Its columns of amounts."""
        return tuple(name for name, column in self.columns.items() if column.money)

    @property
    def table(self) -> str:
        """Its name in SQL."""
        return f"reports.{self.name}"

    @property
    def totals(self) -> str:
        """The query of its rows and sums by `grain`: what is shown where no partner is named."""
        summed = _sums([*self.money, *(self.chart.bars if self.chart else ())])
        keys = ", ".join(map(quoted, self.grain))
        return (
            f'SELECT {keys}, count(*) AS "rows of the report", {summed} FROM {self.table} '
            f"GROUP BY {keys} ORDER BY {keys}"
        )

    @property
    def drawn(self) -> str:
        """The query of its chart: panel, place on the axis, one sum for each bar."""
        chart = self.chart
        if chart is None:
            return ""
        keys = f"{quoted(chart.panel)}, {quoted(chart.across)}"
        return (
            f"SELECT {keys}, {_sums(chart.bars)} FROM {self.table} WHERE {chart.only} "
            f"AND {quoted(chart.across)} IS NOT NULL GROUP BY {keys} ORDER BY {keys}"
        )


def _sums(columns: Iterable[str]) -> str:
    return ", ".join(f"sum({quoted(name)}) AS {quoted(name)}" for name in dict.fromkeys(columns))


def reasons(database: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Return why each rule was not evaluated, of those that were not."""
    if not exists(database, "reconciliation", "rules"):
        return {}
    return {rule: why or "no reason" for rule, why in database.execute(SILENT).fetchall()}


def make(
    database: duckdb.DuckDBPyConnection, report: Report, unsaid: Mapping[str, str]
) -> tuple[int, str | None]:
    """Write a report's table; return its rows, and what it cannot say."""
    missing = [table for table in report.needs if not exists(database, *table.split("."))]
    if missing:
        why = f"nothing was evaluated: there is no {', '.join(missing)}"
        _empty(database, report, why)
    else:
        database.execute(f"CREATE TABLE {report.table} AS {report.sql}")
        silent = [f"{rule}: {unsaid[rule]}" for rule in report.rests_on if rule in unsaid]
        why = "; ".join(silent)
    _comment(database, report)
    return scalar(database, f"SELECT count(*) FROM {report.table}"), why or None


def _empty(database: duckdb.DuckDBPyConnection, report: Report, why: str) -> None:
    """Write a table of one row, which says why there are no others."""
    columns = ", ".join(f"{quoted(name)} {each.type}" for name, each in report.columns.items())
    database.execute(f"CREATE TABLE {report.table} ({columns})")
    database.execute(f"INSERT INTO {report.table} ({UNSAID}) VALUES (?)", [why])


def _comment(database: duckdb.DuckDBPyConnection, report: Report) -> None:
    columns = (
        f"COLUMN {report.table}.{quoted(name)} IS {literal(each.text)}"
        for name, each in report.columns.items()
    )
    said = (f"TABLE {report.table} IS {literal(report.question)}", *columns)
    together(database, (f"COMMENT ON {each}" for each in said))

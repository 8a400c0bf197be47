"""Metadata as Dagster shows it: counts and aggregates, never rows (its log keeps them for ever).

In Markdown of our own: pandas would be loaded with every definition, and rounds long sums. Dagster
shows a text of less than a thousand characters at once and hides a longer one behind a click, and
in a check every list and table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

from pipelines.state.runs import Effort

FEW = 5  # lines that are read at once
NUMBER = re.compile(r"-?\d+(\.\d+)?|")


def preview(rows: Sequence[Mapping[str, object]]) -> dg.MarkdownMetadataValue:
    """Return records of ours as a table in Markdown, numbers to the last digit."""
    names = list(rows[0]) if rows else []
    cells = [[_cell(row[name]) for name in names] for row in rows]
    numbers = [all(map(NUMBER.fullmatch, column)) for column in zip(*cells, strict=True)]
    sides = ["--:" if each else "---" for each in numbers]
    return dg.MetadataValue.md("\n".join(map(_line, [names, sides, *cells])) if rows else "")


def cost(efforts: Iterable[Effort]) -> dict[str, dg.MetadataValue]:
    """Return what readings took together; Dagster plots the numbers over nights."""
    every = list(efforts)
    return {
        "requests": dg.MetadataValue.int(sum(each.requests for each in every)),
        "429s": dg.MetadataValue.int(sum(each.refused for each in every)),
        "seconds waited": dg.MetadataValue.float(
            round(sum((each.waited for each in every), 0.0), 3)
        ),
    }


def told(lines: Sequence[str]) -> str | list[str]:
    """Return lines as a text where they are few."""
    return list(lines) if len(lines) > FEW else " · ".join(lines) or "none"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object) -> str:
    """Return a value on one line, in which a stroke begins no new cell and a star no emphasis."""
    text = "" if value is None else " ".join(str(value).split())
    return re.sub(r"([|*])", r"\\\1", text)

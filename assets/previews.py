"""Metadata as Dagster shows it: counts and aggregates, never rows (its log keeps them for ever).

Dagster shows a text of less than a thousand characters at once and hides a longer one behind a
click, and so it does with every list and table in a check.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import dagster as dg

FEW = 5  # lines that are read at once
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def preview(rows: Sequence[Mapping[str, object]]) -> dg.MarkdownMetadataValue:
    """Return records of ours as a table in Markdown: no cell is padded, no number rounded."""
    if not rows:
        return dg.MetadataValue.md("none")
    names = list(rows[0])
    cells = [[str(row[name]) for name in names] for row in rows]
    numbers = [all(map(NUMBER.fullmatch, column)) for column in zip(*cells, strict=True)]
    marks = ["-:" if each else "-" for each in numbers]
    lines = [_line(names), f"|{'|'.join(marks)}|", *map(_line, cells)]
    return dg.MetadataValue.md("\n".join(lines))


def told(lines: Sequence[str]) -> str | list[str]:
    """Return lines as a text where they are few."""
    return list(lines) if len(lines) > FEW else " · ".join(lines) or "none"


def _line(cells: Iterable[str]) -> str:
    escaped = (re.sub(r"([|*])", r"\\\1", each) for each in cells)
    return f"| {' | '.join(escaped)} |"

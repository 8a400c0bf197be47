"""Metadata as Dagster shows it: counts and aggregates, never rows (its log keeps them for ever).

In Markdown of our own: pandas would be loaded with every definition, and rounds long sums.
"""

from collections.abc import Iterable, Mapping, Sequence

import dagster as dg


def preview(rows: Sequence[Mapping[str, object]]) -> dg.MarkdownMetadataValue:
    """Return records of ours as a table in Markdown, numbers to the last digit."""
    names = list(rows[0]) if rows else []
    sides = ["---" if any(isinstance(row[name], str) for row in rows) else "--:" for name in names]
    cells = ([_cell(row[name]) for name in names] for row in rows)
    return dg.MetadataValue.md("\n".join(map(_line, [names, sides, *cells])) if rows else "")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: object) -> str:
    """Return a value on one line, in which a stroke begins no new cell."""
    return "" if value is None else " ".join(str(value).replace("|", "\\|").split())

"""What the commands print: tables, JSON, errors. Foreign text is escaped here and nowhere else."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.core.errors import PartnerSyncError
from pipelines.core.text import printable

PIPE_WIDTH = 10_000  # a value stays on one line for grep and awk
Rows = Sequence[Mapping[str, object]]


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


OUT = _console(stderr=False)
ERR = _console(stderr=True)


def line(text: str, *, style: str = "", error: bool = False) -> None:
    """Print one line of foreign or own text."""
    (ERR if error else OUT).print(Text(printable(text, limit=2_000), style=style))


def table(rows: Rows, title: str = "") -> None:
    """Print rows as a table; the first row names the columns."""
    if not rows:
        return
    drawn = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", title_style="bold")
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | Decimal | None) for row in rows)
        drawn.add_column(
            name.replace("_", " "), justify="right" if numeric else "left", overflow="fold"
        )
    for row in rows:
        drawn.add_row(*(Text(shown(value)) for value in row.values()))
    OUT.print(drawn, soft_wrap=False)


def shown(value: object) -> str:
    """Return a value as people read it: decimals without an exponent, times in UTC."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S} UTC"
    return printable(value)


def as_json(value: object) -> None:
    """Print JSON: numbers as numbers, decimals as exact strings, times in ISO 8601."""
    sys.stdout.write(json.dumps(value, default=_plain, indent=2, ensure_ascii=True) + "\n")


def _plain(value: Any) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if hasattr(value, "__struct_fields__"):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return str(value)


def failure(error: Exception) -> int | None:
    """Print an expected failure and return its exit code; None for a defect."""
    if not isinstance(error, PartnerSyncError):
        return None
    ERR.print(Text.assemble(("Error: ", "bold red"), printable(str(error), limit=2_000)))
    if error.remedy:
        ERR.print(Text(printable(error.remedy, limit=2_000)))
    return int(error.exit_code)

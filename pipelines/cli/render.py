"""What the commands print: tables, JSON, errors. Foreign text is escaped here and nowhere else."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.core.errors import PartnerSyncError
from pipelines.core.finding import Finding
from pipelines.core.text import printable

PIPE_WIDTH = 10_000  # a value stays on one line for grep and awk
LONGEST_LINE = 2_000  # characters
SEVERITIES = ("error", "warning", "info")
Rows = Sequence[Mapping[str, object]]


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


OUT = _console(stderr=False)
ERR = _console(stderr=True)


def line(text: str, *, style: str = "") -> None:
    """Print one line of foreign or own text."""
    OUT.print(Text(printable(text, LONGEST_LINE), style=style))


def remedy(text: str) -> None:
    """Print what to do; a bare command is introduced as one."""
    if text:
        line(f"  Run `{text}`." if text.startswith("partner-sync ") else f"  {text}")


def table(rows: Rows, columns: Mapping[str, str] | None = None) -> None:
    """Print rows as a table. `columns` maps the members that are shown to their headings."""
    if not rows:
        return
    columns = columns or {name: name.replace("_", " ") for name in rows[0]}
    drawn = Table(box=SIMPLE_HEAD)
    for name, heading in columns.items():
        is_number = all(isinstance(row[name], int | Decimal | None) for row in rows)
        drawn.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(shown(row[name])) for name in columns))
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
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return printable(value)


def findings(found: Sequence[Finding]) -> None:
    """Print findings, most severe first."""
    for each in sorted(found, key=lambda one: SEVERITIES.index(one.severity)):
        place = "/".join(part for part in (each.connection, each.stream) if part)
        subject = f" {place}:" if place else ""
        style = "" if each.severity == "info" else "yellow"
        line(f"{each.severity}:{subject} {each.message}", style=style)
        remedy(each.remedy)


def as_json(value: object) -> None:
    """Print JSON: numbers as numbers, decimals as exact strings, times in ISO 8601."""
    sys.stdout.write(json.dumps(value, default=_plain, indent=2, ensure_ascii=True) + "\n")


def _plain(value: Any) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


def failure(error: PartnerSyncError) -> None:
    """Print an expected failure and what to do."""
    ERR.print(Text.assemble(("Error: ", "bold red"), printable(str(error), LONGEST_LINE)))
    if error.remedy:
        ERR.print(Text(printable(error.remedy, LONGEST_LINE)))

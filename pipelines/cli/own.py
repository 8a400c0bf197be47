"""The command for own books: what is understood of them."""

from typing import Any

from pipelines import finance
from pipelines.cli import program
from pipelines.cli.terminal import line, open_home, show, show_table, shown
from pipelines.core.errors import ExitCode
from pipelines.core.text import counted, printable

FILES = ("name", "sha256")
TOTALS = ("month", "currency", "rows", "amount")
LEFT_OUT = ("value", "rows")
UNREAD = ("file", "row", "role", "sent")
FIFTEEN_DIGITS = "A number of a workbook has at most 15 digits. For more, use CSV or Parquet."
MAY_CHANGE = (
    "The database may show changes while it is read: only of PostgreSQL and SQLite are all rows "
    "of one moment."
)


@program.own.command()
def check(*, _json: program.Json = False) -> int:
    """Show what is understood of your own books; changes nothing."""
    sources = finance.own_check.check(open_home())
    show([], json_value=sources)
    for source in sources:
        _show(source)
    is_known = not any(source["problem"] or source["not_understood"] for source in sources)
    return ExitCode.DONE if is_known else ExitCode.NEEDS_ATTENTION


def _show(source: dict[str, Any]) -> None:
    """Print a source: what it has, its totals, then what is not understood."""
    line(f"{source['source']}: {source['place']}, against {source['against']}", style="bold")
    roles = [f"{role} = {printable(column)}" for role, column in source["roles"].items()]
    line(f"Roles: {', '.join(roles)}.")
    show_table(source["files"], FILES)
    if source["problem"]:
        line(f"Not compared: {source['problem']}.", style="red")
    if source["rows"] is None:
        return
    if not source["is_of_one_moment"]:
        line(MAY_CHANGE, style="yellow")
    line(f"{counted(source['rows'], 'row')}. SHA-256: {source['sha256']}.")
    if source["left_out"]:
        line("Left out, as they are of other connections:")
        show_table(source["left_out"], LEFT_OUT)
    if source["matched"] is not None:
        by_totals = source["match_by"] == "totals"
        what = "partner, month and currency" if by_totals else source["match_by"]
        line(f"In {source['against']}, too, by {what}: {shown(source['matched'])}.")
    show_table(source["totals"], TOTALS)
    if any(file["name"].lower().endswith(".xlsx") for file in source["files"]):
        line(FIFTEEN_DIGITS)
    if source["not_understood"]:
        line(f"{counted(source['not_understood'], 'row')} not understood:", style="yellow")
        show_table(source["unread"], UNREAD)

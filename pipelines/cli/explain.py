"""The verb `explain`: a figure back to its rows, its rule, and the archived pages it comes from."""

from typing import Annotated

import typer
from rich.markup import escape

from pipelines import run, settings
from pipelines.cli import screen
from pipelines.run import Explanation
from pipelines.run.explanation import Figure, Line
from pipelines.run.raw import Raw

app = typer.Typer()


@app.command()
def explain(
    target: Annotated[
        str,
        typer.Argument(
            help="A break's id, PARTNER/2026-09 (all/2026-09: every partner), or a list."
        ),
    ],
    currency: Annotated[str | None, typer.Option(help="Of a month: this currency only.")] = None,
    most: Annotated[int, typer.Option(min=0, help="Records shown; 0: all of them.")] = 20,
    *,
    whole: Annotated[
        bool, typer.Option("--whole", help="Of a month: from every page of both lists, too.")
    ] = False,
) -> None:
    """Walk a figure back to the archive, and add it up again from archived pages alone.

    Exit codes: 0 the same; 1 not the same, or a page is damaged; 2 there is no such figure.
    """
    with run.open(settings.load()) as session:
        found = run.explain(session, target, currency, whole=whole)
    for each in found:
        _show(each, most or len(each.lines))
    raise typer.Exit(0 if all(each.equal for each in found) else 1)


def _show(each: Explanation, most: int) -> None:
    screen.OUT.print(f"[bold]{escape(each.title)}[/]", soft_wrap=True)
    for words in each.words:
        screen.OUT.print(f"  {escape(words)}", soft_wrap=True)
    if each.lines:
        screen.show([_row(line) for line in each.lines[:most]])
    if len(each.lines) > most:
        rest = len(each.lines) - most
        screen.OUT.print(f"and {rest:,} records more: --most 0 shows all of them")
    if each.pages:
        screen.show([_page(one) for one in each.pages[:most]], "below archive/pages/")
    for words in each.redactions:
        screen.OUT.print(escape(words), soft_wrap=True)
    _judge(each)


def _judge(each: Explanation) -> None:
    if each.figures:
        screen.show([_figure(one) for one in each.figures])
    for words in each.troubles:
        screen.ERR.print(f"[bold red]not the same:[/] {escape(words)}", soft_wrap=True)
    if each.equal and each.figures:
        pages = f"{len(each.pages):,} " if each.pages else ""
        said = f"the same again from {pages}archived pages alone; each is what was read (SHA-256)\n"
        screen.OUT.print(said, soft_wrap=True)


def _row(line: Line) -> dict[str, object]:
    return {
        "side": line.side,
        "id": line.id,
        "amount": line.amount,
        "as sent": line.sent_amount,
        "quantity": line.quantity,
        "as it was sent": line.sent_quantity,
        "page": line.raw.digest[:12],
        "row": line.raw.row,
    }


def _page(raw: Raw) -> dict[str, object]:
    read = raw.read
    return {
        "page (its name is its SHA-256)": f"{raw.digest[:2]}/{raw.digest}.json.zst",
        "list": raw.list_of,
        "offset": read.offset if read else None,
        "request id": read.request_id if read else None,
        "answered (UTC)": f"{read.answered_at:%Y-%m-%d %H:%M:%S}" if read else "",
        "status": read.status if read else None,
    }


def _figure(one: Figure) -> dict[str, object]:
    return {
        "figure": one.name,
        "published": one.published,
        "from the archive": one.again,
        "": "equal" if one.equal else "NOT EQUAL",
    }

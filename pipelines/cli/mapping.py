"""Commands for the fields that reconciliation compares."""

from typing import Annotated

import typer

from pipelines import app
from pipelines.cli.program import Json, NoBuild, mapping
from pipelines.cli.terminal import line, opened, show, show_and_build
from pipelines.core.errors import ExitCode


@mapping.command()
def propose(*, json: Json = False) -> int:
    """Propose a field for each role in reconciliation, and show the evidence."""
    with opened() as session:
        rows = app.mapping.propose(session)
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    show(rows, columns, as_json=json)
    if not json:
        line("Run `partner-sync mapping accept` to use these fields.")
    return ExitCode.NEEDS_ATTENTION if any(row["problem"] for row in rows) else ExitCode.DONE


@mapping.command()
def accept(
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a mapping.toml that differs.")
    ] = False,
    no_build: NoBuild = False,
) -> int:
    """Write the proposed fields to mapping.toml, then build a version with them."""
    with opened() as session:
        text = app.mapping.accept(session, replace=replace)
        return show_and_build(session, text, no_build=no_build)

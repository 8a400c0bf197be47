"""The program `partner-sync`: its verbs, its exit codes, and failures in words.

0 done; 1 nothing published, or the verb failed; 2 usage or configuration; 3 published, but a
stream failed or is PARTIAL; 130 stopped by Ctrl-C. An expected failure is one sentence on stderr,
never a traceback.
"""

import sys
from importlib.metadata import version as installed

import typer
from rich.markup import escape

from pipelines.cli import (
    breaks,
    check,
    close,
    connections,
    demo,
    disappeared,
    discover,
    erase,
    explain,
    export,
    plan,
    publish,
    quarantine,
    replay,
    report,
    retain,
    runs,
    sandbox,
    schema,
    screen,
    status,
    sync,
    verify,
)
from pipelines.cli import (
    map as map_,
)
from pipelines.errors import ConfigurationError, PartnerSyncError

app = typer.Typer(
    name="partner-sync",
    help="Partners, usage and billing of a payments service, exact and complete, in DuckDB.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for group in (
    demo.app,
    sandbox.app,
    check.app,
    discover.app,
    map_.app,
    explain.app,
    plan.app,
    sync.app,
    publish.app,
    verify.app,
    erase.app,
    retain.app,
    status.app,
    runs.app,
    disappeared.app,
    replay.app,
    export.app,
    report.app,
    connections.app,
    schema.app,
    quarantine.app,
    breaks.app,
    close.app,
):
    app.add_typer(group)


@app.command()
def version() -> None:
    """Say which version this is."""
    screen.OUT.print(f"partner-sync {installed('partner-sync')}")


def main() -> None:
    """Run the program; expected failures become a sentence and an exit code."""
    try:
        app()
    except PartnerSyncError as error:
        screen.ERR.print(f"[bold red]error[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(2 if isinstance(error, ConfigurationError) else 1)

"""`demo` and `sandbox`: a local copy of the service, and the whole job on it."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from pipelines import app, finance
from pipelines.cli import program
from pipelines.cli.outcomes import run_sync
from pipelines.cli.terminal import OUT, line, open_home


@program.command(rich_help_panel=program.TRY)
def demo(
    home: Annotated[str, Option(help="Folder that the demo empties and fills.")] = ".demo",
) -> int:
    """Start the sandbox, sync from it, and show three queries with their results."""
    began = time.monotonic()
    demo_home = app.demo.prepare_home(Path(home))
    with app.demo.running_sandbox(demo_home, "demo", "--port=0", *app.demo.SIZES):
        session = open_home(demo_home)
        code = run_sync(session, [app.results.ReadRequest("demo")])
        line(finance.proposals.accept(session))
        report = app.nightly.after_reading(session).report
        for question, answer in app.demo.answers(demo_home):
            line(question, style="bold")
            OUT.print(answer.to_string(index=False), end="\n\n", markup=False)
        line(f"The finance report: {report}")
    line(f"The demo took {time.monotonic() - began:.0f} seconds.")
    return code


@program.command(
    rich_help_panel=program.TRY,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def sandbox(context: typer.Context) -> None:
    """Serve a local copy of the service. Takes the options of `python -m sandbox`."""
    options = ["--help" if option == "-h" else option for option in context.args]
    command = [sys.executable, "-m", "sandbox", *options]
    # In place of this process: signals and the exit code are then those of the sandbox.
    os.execv(sys.executable, command)  # noqa: S606 - our own program

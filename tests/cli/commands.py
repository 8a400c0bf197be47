"""Every command of the program, as the program itself lists them, with arguments to try it."""

from collections.abc import Iterator
from typing import Any

import typer.main

from pipelines.cli.main import program

PROGRAM = typer.main.get_command(program.root)
ARGUMENTS = {
    "approve": "acme partners --reason=why",
    "breaks assign": "--reason=why",
    "breaks decide": "file.csv",
    "breaks reopen": "--reason=why",
    "breaks resolve": "--reason=why",
    "catalog": "HOME/all.duckdb --homes=HOME/..",
    "close prepare": "2026-09",
    "close approve": "2026-09",
    "close month": "2026-09 --preparer=ann --reviewer=bob",
    "close reopen": "2026-09 --reason=why",
    "configuration accept": "--reason=why",
    "connections accept": "acme --reason=why",
    "connections unblock": "acme",
    "discover": "acme",
    "erase": "KEY --reason=why --yes",
    "export": "xlsx",
    "prune": "--days=1",
    "sql": "FROM/**/current.partners",  # as one argument; without any, it waits for queries
    "trace break": "B1",
    "trace month": "name 2026-09",
    "trace record": "acme partners KEY",
    "versions rollback": "--reason=why",
}


def commands(group: Any = PROGRAM, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every command as it is typed."""
    for name, command in getattr(group, "commands", {}).items():
        yield " ".join((*path, name))
        yield from commands(command, (*path, name))


def options_of(command: str) -> list[str]:
    """Return the options of a command that take a value, as they are typed."""
    found: Any = PROGRAM
    for name in command.split():
        found = found.commands[name]
    options = [each for each in found.params if each.param_type_name == "option"]
    return [name for each in options if not each.is_flag for name in each.opts]


FORMATS = (
    r"Formats: scan file \d+, version \d+, books \d+, metadata \d{4}, close \d+, statement \d+\."
)
GROUPS = {
    "close",
    "configuration",
    "mapping",
    "notify",
    "own",
    "trace",
    "versions",
}  # do nothing without a command
ON_A_HOME = (
    set(commands()) - GROUPS - {"init", "demo", "sandbox", "catalog", "pull", "close approve"}
)

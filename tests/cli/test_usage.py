"""What is wrong with a command is said before anything happens; every command explains itself."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from pipelines.cli.main import PANELS, app
from pipelines.config.home import Home
from tests.cli.commands import Cli

SOURCES = Path(__file__).parents[2]
HEAVY = {"duckdb", "pandas", "dagster", "sqlalchemy", "pydantic", "matplotlib", "httpx"}
PROGRAM = typer.main.get_command(app)
READING = (
    "check",
    "connections",
    "connections unblock acme",
    "connections accept acme --reason why",
    "sync",
    "plan",
    "status",
    "runs",
    "approve acme usage --reason why",
    "versions list",
    "versions build",
    "versions rollback --reason why",
    "versions rebuild",
    "verify",
)
WRONG = {
    "sync -c nobody": "Connections: acme.",
    "check -c nobody": "Connections: acme.",
    "plan -c nobody": "Connections: acme.",
    "connections unblock nobody": "Connections: acme.",
    "connections accept nobody --reason why": "Connections: acme.",
    "approve nobody usage --reason why": "Connections: acme.",
    "approve acme nothing --reason why": "Possible streams: partners, usage, billing.",
    "sync -s nothing": "Possible streams: partners, usage, billing.",
    "sync -s usage -s nothing": "Possible streams: partners, usage, billing.",
    "approve acme usage": "--reason",
    "connections accept acme": "--reason",
    "versions rollback": "--reason",
    "runs --limit -1": "--limit",
    "init --surface other": "'partner', 'merchant'",
    "nothing": "No such command",
    "sync --nothing": "No such option",
}


def commands(group: Any = PROGRAM, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield every command as it is typed."""
    for name, command in getattr(group, "commands", {}).items():
        yield " ".join((*path, name))
        yield from commands(command, (*path, name))


@pytest.mark.parametrize("command", READING)
def test_a_home_that_does_not_exist_is_an_error(command: str, tmp_path: Path) -> None:
    home = Home(tmp_path / "absent")
    result = Cli(home)(*command.split(), code=2)
    assert f"The home {home.root} does not exist." in result.stderr
    assert "partner-sync init" in result.stderr
    assert not home.root.exists()


@pytest.mark.parametrize("command", READING)
def test_a_folder_that_is_not_a_home_stays_as_it_is(command: str, tmp_path: Path) -> None:
    result = Cli(Home(tmp_path))(*command.split(), code=2)
    assert "names no connection" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", WRONG)
def test_a_wrong_command_is_refused_with_what_is_possible(command: str, synced: Cli) -> None:
    result = synced(*command.split(), code=2)
    assert WRONG[command] in re.sub(r"\s*│?\n│?\s*", " ", result.stderr)
    assert result.stdout == ""


def test_every_command_is_explained(synced: Cli) -> None:
    for command in commands():
        if command != "sandbox":  # `python -m sandbox` explains it
            text = synced(*command.split(), "-h", code=0).stdout
            assert re.search(r"\n +(?!Usage)[A-Z][a-z]+[ ,][^╭]*\.", text), command


def test_help_shows_the_groups_in_their_order(synced: Cli) -> None:
    text = synced("--help", code=0).stdout
    places = [text.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert synced(code=2).output.strip() == text.strip()


def test_help_loads_no_heavy_library() -> None:
    program = (
        "import sys; from pipelines.cli.main import app\n"
        "try: app(['--help'])\n"
        "finally: print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Set up" in done.stdout
    assert HEAVY & set(done.stderr.split()) == set()


def test_the_version_is_shown(synced: Cli) -> None:
    assert re.fullmatch(r"partner-sync \d+\.\d+\.\d+\n", synced("--version", code=0).stdout)


def named_commands() -> Iterator[tuple[str, str]]:
    """Yield each `partner-sync …` that a text in the sources names, and the file."""
    for folder in ("pipelines", "assets"):
        for file in sorted((SOURCES / folder).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            for text in texts(ast.parse(source)) if "partner-sync " in source else ():
                found = re.findall(r"`(partner-sync [^`]*)`", text)
                found += [text] if re.fullmatch(r"partner-sync [a-z]{2}[^`.]*", text) else []
                for command in found:
                    yield command, str(file.relative_to(SOURCES))


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module; what is filled in later is `x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{\w+\}", "x", node.value)


def unknown_part(command: str) -> str:
    """Return the word of a command that the program does not know."""
    words = shlex.split(command)[1:]
    known: Any = PROGRAM
    arguments = 0
    while words:
        word, *words = words
        options = {name: each for each in known.params for name in each.opts}
        if word in getattr(known, "commands", {}):
            known = known.commands[word]
        elif word in options:
            takes_value = not getattr(options[word], "is_flag", False)
            words = words[takes_value:]
        elif word.startswith("-"):
            return word
        else:
            arguments += 1
            if arguments > sum(each.param_type_name == "argument" for each in known.params):
                return word
    return ""


def test_every_command_that_a_text_names_exists() -> None:
    named = set(named_commands())
    assert len(named) > 20
    assert [(each, unknown_part(each[0])) for each in named if unknown_part(each[0])] == []

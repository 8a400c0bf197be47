"""What is wrong with a command is said before anything happens; every command explains itself."""

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.cli.main import program
from pipelines.config.home import Home
from tests.cli.commands import ARGUMENTS, FORMATS, ON_A_HOME, commands, options_of
from tests.cli.conftest import Cli
from tests.sandbox.running import SECRET

SOURCES = Path(__file__).parents[2]
HEAVY = {"duckdb", "pandas", "dagster", "sqlalchemy", "pydantic", "matplotlib", "httpx"}
# Options with texts that are kept.
KEPT = {"--accept-open", "--note", "--owner", "--preparer", "--reason", "--reviewer", "--to"}
WRONG = {
    "sync -c nobody": "Connections: acme.",
    "connections unblock nobody": "Connections: acme.",
    "approve nobody usage --reason why": "Connections: acme.",
    "approve acme nothing --reason why": "Possible streams: partners, usage, billing.",
    "sync -s usage -s nothing": "Possible streams: partners, usage, billing.",
    "discover nobody": "Connections: acme.",
    "discover acme --description http://127.0.0.1/docs/a": "must be a path below /docs/.",
    "trace record nobody usage key": "Connections: acme.",
    "trace record acme nothing key": "Possible streams: partners, usage, billing.",
    "trace record acme usage key": "Keys of this list are values of `usageId`, such as `",
    "trace month nobody 2026-09": "Nothing is mapped",
    "breaks": "Nothing is mapped",
    "breaks decide file.csv": "Nothing is mapped",
    "export pdf": "Unknown format `pdf`. Use csv, parquet, xlsx, dbt, books, or the name of",
    "export csv -t usage": "Possible tables: current.billing,",
    "connections accept acme": "--reason",
    "runs --limit -1": "--limit",
    "init --surface other": "'partner', 'merchant'",
    "nothing": "No such command",
    "sync --nothing": "No such option",
}


def test_no_command_makes_a_home(tmp_path: Path) -> None:
    absent = Home(tmp_path / "absent")
    for command in sorted(ON_A_HOME):
        arguments = f"{command} {ARGUMENTS.get(command, '')}".split()
        message = Cli(absent)(*arguments, code=2).stderr
        assert f"The home {absent.root} does not exist." in message
        assert "partner-sync init" in message
        assert "names no connection" in Cli(Home(tmp_path))(*arguments, code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_lost_its_connections_is_not_taken_for_a_new_one(synced: Cli) -> None:
    synced.home.connections_file.unlink()
    message = " ".join(synced("status", code=2).stderr.split())
    assert "names no connection, although this home was synced" in message
    assert "Restore it from a backup" in message


def test_a_wrong_command_is_refused_with_what_is_possible(synced: Cli) -> None:
    for command, said in WRONG.items():
        result = synced(*command.split(), code=2)
        assert said in re.sub(r"\s*│?\n│?\s*", " ", result.stderr), command
        assert result.stdout == ""


@pytest.mark.parametrize("command", sorted(commands()))
def test_no_option_or_argument_may_be_empty(empty: Cli, command: str) -> None:
    """An empty one would mean "all", or today: mostly, a script has a variable that is not set."""
    for option in options_of(command):
        joined = [[f"{option}="]] if option.startswith("--") else []
        for given in ([option, ""], [option, "  "], *joined):
            said = " ".join(empty(*command.split(), *given, code=2).stderr.split())
            assert f"Invalid value for {option}: It is empty. Nothing was done" in said
    assert "for an argument: It is empty" in empty(*command.split(), "", code=2).stderr
    assert list(empty.home.root.parent.iterdir()) == []


def test_no_text_that_is_kept_has_a_secret(synced: Cli) -> None:
    """It would be in the metadata database, on pages, and in copies that are never changed."""
    before = {file: file.read_bytes() for file in synced.home.root.rglob("*.*") if file.is_file()}
    refused = set()
    for command in sorted(ON_A_HOME):
        arguments = f"{command} {ARGUMENTS.get(command, '')}".split()
        for option in sorted(KEPT & set(options_of(command))):
            result = synced(*arguments, f"{option}=see {SECRET}!", code=2)
            assert "has the secret of a connection" in " ".join(result.stderr.split()), command
            assert SECRET not in result.output
            refused.add(option)
    assert refused == KEPT
    after = {file: file.read_bytes() for file in synced.home.root.rglob("*.*") if file.is_file()}
    assert after == before


def test_every_command_is_explained(empty: Cli) -> None:
    for command in commands():
        if command != "sandbox":  # `python -m sandbox` explains it
            text = empty(*command.split(), "-h").stdout
            assert re.search(r"\n +(?!Usage)[A-Z][a-z]+[ ,][^╭]*\.", text), command


def test_help_shows_the_groups_in_their_order(empty: Cli) -> None:
    text = empty("--help").stdout
    places = [text.index(f"─ {panel} ─") for panel in program.PANELS]
    assert places == sorted(places)
    assert empty(code=2).output.strip() == text.strip()
    assert re.fullmatch(f"partner-sync \\d+\\.\\d+\\.\\d+\n{FORMATS}\n", empty("--version").stdout)


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys; from pipelines.cli.main import program\n"
        "try: program.root(['--help'])\n"
        "finally: print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Set up" in done.stdout
    assert HEAVY & set(done.stderr.split()) == set()


INCOMPLETE = "does not exist|Missing|requires an arg|Without a terminal|--from|valid int"


def test_every_command_that_a_text_names_exists(empty: Cli) -> None:
    """As far as it comes without a home: its words are known, if not complete."""
    named = {command for command in named_commands() if "demo" not in command}
    assert len(named) > 10
    for command in named:
        message = empty(*shlex.split(command)[1:], code=2).stderr
        assert re.search(INCOMPLETE, message), command


def named_commands() -> Iterator[str]:
    """Yield each `partner-sync …` that a text in the sources names; what is filled in is `x`."""
    for file in (*SOURCES.glob("pipelines/**/*.py"), *SOURCES.glob("assets/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            text = ""
            if isinstance(node, ast.JoinedStr):
                parts = (
                    each.value if isinstance(each, ast.Constant) else "x" for each in node.values
                )
                text = "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = re.sub(r"\{\w+\}", "x", node.value)
            yield from re.findall(r"`(partner-sync [^`]*)`", text)
            yield from re.findall(r"\A(partner-sync [a-z]{2}[^`.]*)\Z", text)

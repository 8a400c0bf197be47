"""Every command on a terminal, on a home full of control and bidirectional characters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from tests.cli.commands import ARGUMENTS, GROUPS, commands
from tests.cli.test_setup import options
from tests.end_to_end.proxy import changed_answers
from tests.forked import run_forked
from tests.homes import copied, make_home, rows, sync_once
from tests.sandbox.running import Running

pytestmark = pytest.mark.long
# Clear the screen, set its title, backspace, CSI as one character, bidirectional, a line separator.
KEY = "\x1b[2J\x1b]0;owned\x07\r\x08\x9b31m\u202e\u2066\u200f\u2028"
EVIL = f"{KEY}\x00"
ESCAPED = r"\x1b[2J\x1b]0;owned\x07\r\x08\x9b31m\u202e\u2066\u200f\u2028"
# What rich writes: styles, the cursor hidden and shown, progress bars drawn again.
OURS = re.compile(r"\r?\x1b\[([0-9;]*m|\?25l|\?25h\r?|1A|2K)|\r+\n")
DONE, USAGE, ATTENTION = ExitCode.DONE, ExitCode.USAGE, ExitCode.NEEDS_ATTENTION
CALLS = {**ARGUMENTS, "demo": "--home=HOME", "init": "--name=second OPTIONS"}
CALLS["erase"] += " --force"  # of 25 records, one is more than a hundredth
CODES = dict.fromkeys(("check", "demo", "notify test", "pull"), USAGE) | dict.fromkeys(
    ("approve", "init", "status", "sync", "versions build", "versions rebuild"), ATTENTION
)
SHOWING = {  # what the service said
    *("approve", "check", "connections accept", "discover", "init", "runs", "status", "sync"),
    *("sql", "trace record", "versions build", "versions rebuild"),
}
# Of these only the help is shown: this home has nothing to reconcile.
RECONCILIATION = (
    *("breaks", "close", "mapping", "own", "report", "statement", "trace break", "trace month"),
)


@dataclass
class Evil:
    """Puts hostile characters into every answer; there are `partners` at most."""

    partners: int = 100
    turn: int = 0

    def __call__(self, request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        path, headers = request.url.path, {b"x-request-id": b"\x9b2J" + KEY[-4:].encode()}
        if path == "/v2/plans":
            problem = {"title": EVIL, "detail": EVIL, "type": EVIL}
            return httpx.Response(403, headers=headers, json=problem)
        if not path.startswith(("/v2/", "/docs/")):
            return answer
        document = answer.json()
        if path.startswith("/docs/"):
            document["paths"] |= {f"/v2/{EVIL}": document["paths"]["/v2/plans"]}
        elif path == "/v2/whoami":
            document |= {"name": EVIL, EVIL: "name"}
        elif path == "/v2/partners":
            left = max(0, self.partners - int(request.url.params["offset"]))
            document["data"] = [
                record | {"partnerId": KEY + record["partnerId"]}
                for record in document["data"][:left]
            ]
        for record in document.get("data", ()):
            record |= {"note": f"{self.turn}{EVIL}", KEY: [{KEY: EVIL}], "long": 10**30}
        return httpx.Response(200, headers=headers, json=document)


@pytest.fixture(scope="session")  # a process of pytest leaves this file and comes back
def evil(
    tmp_path_factory: pytest.TempPathFactory, sandbox_process: Running
) -> Iterator[tuple[Home, str]]:
    """A home with two versions, a failed list and a held scan; the service's options for `init`."""
    change = Evil()
    with changed_answers(sandbox_process, change) as service:
        home = make_home(tmp_path_factory.mktemp("evil") / "home", service)
        home.settings_file.write_text('[streams.plans]\npath = "/v2/plans"\n')
        for change.turn, change.partners in enumerate((100, 100, 5)):
            assert sync_once(home).exit_code == ATTENTION
        yield home, " ".join(options(service, home.root.parent))


def on_terminal(home: Home, arguments: list[str]) -> tuple[int, str]:
    """Run a command on a pseudo-terminal; return its exit code and what the terminal received."""
    terminal = {"TERM": "xterm-256color", "COLUMNS": "500", "LINES": "100"}
    environment = terminal | {"PARTNER_SYNC_HOME": str(home.root)}
    return run_forked(arguments, environment, terminal=True)


@pytest.mark.parametrize("command", sorted(commands()))
def test_no_character_of_a_record_reaches_the_terminal(
    command: str, evil: tuple[Home, str], tmp_path: Path
) -> None:
    home = copied(evil[0], tmp_path / "home")
    ((key,),) = rows(home, "SELECT min(_key) FROM current.partners")
    text = CALLS.get(command, "")
    if command in {*GROUPS, "sandbox"} or command.startswith(RECONCILIATION):
        text = "--help"
    filled = text.replace("OPTIONS", evil[1]).replace("HOME", str(home.root)).split()
    arguments = [each.replace("KEY", key) for each in filled]
    found, received = on_terminal(home, [*command.split(), *arguments])
    shown = OURS.sub("", received)
    assert [character for character in shown if not character.isprintable()] == []
    assert "Traceback" not in shown
    assert (found, ESCAPED in shown) == (CODES.get(command, DONE), command in SHOWING), shown

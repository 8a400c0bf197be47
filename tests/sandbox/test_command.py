"""The command line: options, ready line, secrets, exit codes.

Not here: what an option does to the service; that is tested beside the thing it changes.
"""

import re
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sandbox.__main__ import command as verb
from tests.sandbox.running import API_KEY, CLIENTS, SECRET, Running, clients_file, command, started

BAD_OPTIONS = [
    (("--port", "-1"), "--port"),
    (("--port", "70000"), "--port"),
    (("--usage", "-5"), "--usage"),
    (("--rate", "five"), "--rate"),
    (("--window", "0"), "--window"),
    (("--now", "yesterday"), "neither a date nor an RFC 3339 time"),
    (("--now", "2026-11-02T10:00:00"), "no UTC offset"),
    (("--now", "2026-10-31"), "outside"),
    (("--now", "9999-12-31"), "outside"),
    (("--window", "nan"), "greater than or equal to 0.001"),
    (("--latency-ms", "inf"), "finite"),
    (("--partners", "0"), "at least one partner"),
    (("--clients", "/nowhere/clients.toml"), "cannot be read"),
    (("--nonsense",), "--nonsense"),
]
KEY = """
[[keys]]
id = "a"
key = "s-whole-key-1"
organization = 0
login = "l"
"""
BAD_CLIENTS = [
    ("clients = 3", "[[clients]]"),
    ("", "[[clients]] or [[keys]]"),
    ("nothing", "cannot be read"),
    ('[[clients]]\nid = "a"\nsecret = "b"\nactor = "king"', "actor must be one of"),
    ('[[clients]]\nid = "a"\nsecret = ""\nactor = "partner"', "secret must be"),
    ('[[clients]]\nid = 7\nsecret = "b"\nactor = "partner"', "id must be"),
    ('[[clients]]\nid = "a"\nsecret = "b"\nactor = "partner"\nscopes = ["all"]', "scopes must"),
    ('[[clients]]\nid = "a"\nsecret = "b"\nactor = "partner"\nseed = "7"', "seed must"),
    ('[[clients]]\nid = "a"\nsecret = "b"\nactor = "partner"\nkey = 1', "the fields are"),
    ('[[clients]]\nid = "a\\nb"\nsecret = "b"\nactor = "partner"', "printable"),
    (CLIENTS + CLIENTS, "same id"),
    ("keys = 3", "[[keys]]"),
    ("[[keys]]\nid = 7", "id must be"),
    (KEY + "more = 1", "the fields are"),
    (KEY.replace("s-whole-key", "short"), "8 ASCII characters"),
    (KEY.replace("= 0", "= true"), "organization must be"),
    (KEY.replace("= 0", "= 750"), "no organization 750"),
    (KEY.replace("= 0", '= "unknown"'), "no organization unknown"),
    (KEY + 'mappings = "companyAdmin"', "mappings must be"),
    (KEY + 'internal = "no"', "internal must be"),
    (KEY + KEY, "same id"),
    (KEY + KEY.replace('"a"', '"b"'), "same key"),
    (KEY + KEY.replace('"a"', '"b"').replace("key-1", "key-2") + "mappings = []", "two sets"),
]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*options), capture_output=True, text=True, timeout=20, check=False
    )


def invoked(*options: str) -> tuple[int, str]:
    """Run the verb in this process, for what ends before anything is served."""
    ended = CliRunner().invoke(verb, ["--port", "0", *options])
    return ended.exit_code, " ".join(ended.stderr.replace("│", " ").split())


@pytest.mark.parametrize(("options", "reason"), BAD_OPTIONS)
def test_bad_options_are_a_clear_error(options: tuple[str, ...], reason: str) -> None:
    code, said = invoked(*options)
    assert code == 2
    assert reason in said


def test_a_bad_option_shows_no_traceback_and_prints_nothing() -> None:
    ended = run("--now", "2026-10-31")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(("text", "reason"), BAD_CLIENTS)
def test_bad_clients_are_a_clear_error(tmp_path: Path, text: str, reason: str) -> None:
    code, said = invoked("--clients", str(clients_file(tmp_path, text)))
    assert code == 2
    assert reason in said
    assert "s-whole" not in said


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_clients_file_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    code, said = invoked("--clients", str(clients_file(tmp_path, mode=mode)))
    assert code == 2
    assert f"{mode:04o}" in said


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_clients_file_of_the_owner_alone_is_read(tmp_path: Path, mode: int) -> None:
    file = clients_file(tmp_path, mode=mode)
    with started("--clients", str(file), "--usage", "1") as running:
        assert running.place == str(file)
        assert "clients whole, reseller, merchant, narrow" in running.line
        assert running.token("reseller", "s-reseller")


def test_a_port_in_use_is_one_sentence_and_exit_1() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--port", str(port))
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert f"port {port} of 127.0.0.1 is in use" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_promptly_with_exit_0(number: signal.Signals) -> None:
    with started("--usage", "1") as running, running.client() as idle:
        idle.get("/healthz")
        running.process.send_signal(number)
        assert running.process.wait(20) == 0  # not only when the client closes its connection


def test_the_ready_line_names_client_audience_and_variable() -> None:
    with started("--audience", "elsewhere", "--usage", "1") as running:
        places = "API key in SANDBOX_API_KEY, secret in SANDBOX_CLIENT_SECRET"
        details = f"client demo, audience elsewhere, {places}"
        assert running.line == f"sandbox ready: {running.url} ({details})\n"
        assert SECRET not in running.line


def test_without_a_secret_one_is_made_and_removed_at_the_end() -> None:
    with started("--usage", "1", secret=None) as running:
        file = Path(running.place)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        secret = file.read_text(encoding="utf-8")
        assert len(secret) >= 32
        assert secret not in running.line
        assert running.token("demo", secret)
        made = re.search(r"API key in (\S+),", running.line)
        assert made
        key_file = Path(made[1])
        assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
        key = key_file.read_text(encoding="utf-8")
        assert key not in running.line
        with running.client(key=key) as client:
            assert client.get("/v2/gateways").status_code == 200
    assert not file.exists()
    assert not key_file.exists()


def test_a_clients_file_may_hold_keys_alone(tmp_path: Path) -> None:
    with started("--usage", "1", "--clients", str(clients_file(tmp_path, KEY))) as running:
        assert running.line.startswith(f"sandbox ready: {running.url} (clients none, audience")
        with running.client(key="s-whole-key-1") as client:
            assert client.get("/v2/gateways").status_code == 200


def test_without_organizations_there_is_no_key() -> None:
    nothing = ("--partners", "0", "--usage", "0", "--billing", "0")
    with started(*nothing) as running, running.client(key=API_KEY) as client:
        assert client.get("/v2/gateways").status_code == 401
        assert client.get("/docs/").status_code == 200


def test_only_the_loopback_address_answers(sandbox: Running) -> None:
    port = int(sandbox.url.rsplit(":", 1)[1])
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=2):  # noqa: PT011 - refused or unreachable
        pass

"""`init`, `check`, `connections`: from nothing to a first sync, and what a person accepts."""

import os
import pty
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from pipelines.config.home import Home
from pipelines.config.settings import Settings, load_settings
from pipelines.metadata.decisions import list_decisions
from pipelines.metadata.tables import Identity, RateLimitActor
from tests.cli.commands import Cli
from tests.homes import make_home, opened, rows
from tests.sandbox.running import AUDIENCE, SECRET, Running

LISTS = {"/v2/partners", "/v2/usage", "/v2/billing"}
ANSWER_SECONDS = 60  # on a busy machine


def options(sandbox: Running, folder: Path) -> list[str]:
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    return [
        f"--base-url={sandbox.url}",
        f"--auth-url={sandbox.url}",
        f"--audience={AUDIENCE}",
        "--client-id=demo",
        f"--secret-file={secret}",
    ]


def test_init_writes_checks_and_syncs(sandbox: Running, tmp_path: Path) -> None:
    cli = Cli(Home(tmp_path / "home"))
    text = cli("init", "--name=acme", *options(sandbox, tmp_path), code=0).stdout
    assert "accepted: " in text
    assert "Published version 1." in text
    assert rows(cli.home, "SELECT count(*) FROM current.usage") == [(1500,)]
    again = cli("init", "--name=acme", *options(sandbox, tmp_path), code=2)
    assert "already has a connection `acme`" in again.stderr


def test_the_settings_file_explains_every_setting(sandbox: Running, tmp_path: Path) -> None:
    cli = Cli(Home(tmp_path / "home"))
    cli("init", "--no-sync", *options(sandbox, tmp_path), code=0)
    text = cli.home.settings_file.read_text()
    assert tomllib.loads(text) == {}
    lines = [line.removeprefix("# ") for line in text.splitlines() if " = " in line]
    given = [line for line in lines if not line.startswith(("metadata_url", "key"))]
    defaults = load_settings(cli.home)
    cli.home.settings_file.write_text("\n".join(given))
    assert load_settings(cli.home) == defaults
    named = {line.partition(" = ")[0] for line in lines} - {"key"}
    assert named == Settings.model_fields.keys() - {"home", "streams"}
    assert "secret_file: " in cli.home.connections_file.read_text()


def test_init_needs_options_without_a_terminal(tmp_path: Path) -> None:
    cli = Cli(Home(tmp_path / "home"))
    result = cli("init", code=2)
    assert "--base-url, --auth-url, --audience, --client-id, --secret" in result.stderr
    assert not cli.home.root.exists()


@pytest.mark.long
def test_init_asks_on_a_terminal(sandbox: Running, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"PARTNER_SYNC_HOME": str(tmp_path / "home"), "ACME_SECRET": SECRET}
    command = [sys.executable, "-m", "pipelines.cli.main", "init", "--no-sync"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        answers = {
            b"Address of the service: ": sandbox.url,
            b"identity provider: ": sandbox.url,
            b"(audience): ": AUDIENCE,
            b"Client id: ": "demo",
            b"holds the secret: ": "ACME_SECRET",
        }
        for question, answer in answers.items():
            read_until(ours, question)
            os.write(ours, f"{answer}\n".encode())
        assert process.wait(ANSWER_SECONDS) == 0
    os.close(ours)
    assert Home(tmp_path / "home").connections_file.read_text().count("ACME_SECRET") == 1


def read_until(terminal: int, text: bytes) -> None:
    shown, end = b"", time.monotonic() + ANSWER_SECONDS
    while text not in shown and time.monotonic() < end:
        shown += os.read(terminal, 4096)
    assert text in shown


def test_a_secret_that_is_not_accepted_is_said(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox)
    (home.root / "config" / "acme-secret").write_text("another secret")
    result = Cli(home)("check", code=2)
    assert "credentials" in result.stdout
    assert "another secret" not in result.output
    assert "Nothing is published" in Cli(home)("sync", code=1).stdout


def test_a_variable_that_is_not_set_is_a_matter_of_configuration(
    sandbox: Running, tmp_path: Path
) -> None:
    home = make_home(tmp_path / "home", sandbox, secret="NO_SUCH_SECRET")
    text = home.connections_file.read_text()
    without_file = [line for line in text.splitlines() if not line.startswith("secret_file")]
    home.connections_file.write_text("\n".join(without_file))
    assert "NO_SUCH_SECRET is not set" in Cli(home)("sync", code=2).stdout


def test_a_route_that_is_closed_can_be_left_out(sandbox: Running, synced: Cli) -> None:
    sandbox.fault("scope-revoked", "/v2/billing")
    result = synced("check", code=2).stdout
    assert 'add skip = ["billing"] to [acme]' in result
    assert synced.json("check")[1]["passed"] is True


def test_another_account_is_refused_until_it_is_accepted(sandbox: Running, synced: Cli) -> None:
    with opened(synced.home) as session, session.metadata.transaction() as db:
        pinned = db.get_one(Identity, "acme")
        pinned.identity = {"id": "somebody else"}
    result = synced.json("sync", code=1)
    assert {row["result"] for row in result["lists"]} == {"failed"}
    assert "belong to a different account" in result["lists"][0]["message"]
    assert "`partner-sync connections accept acme`" in result["lists"][0]["remedy"]
    assert result["build"]["version"] == 1
    assert "`partner-sync connections accept acme`" in synced("check", code=2).stdout
    assert not LISTS & sandbox.statistics()["requests"].keys()
    accepted = synced("connections", "accept", "acme", "--reason=renamed", code=0)
    assert accepted.stdout.startswith("Accepted: connection `acme` is ")
    with opened(synced.home) as session, session.metadata.transaction() as db:
        (decision,) = list_decisions(db, "accept_identity", "acme")
        assert decision.reason == "renamed"
    synced("sync", code=0)
    again = synced("connections", "accept", "acme", "--reason=renamed", code=0)
    assert "as before" in again.stdout


def test_a_long_pause_is_kept_until_it_is_forgotten(sandbox: Running, synced: Cli) -> None:
    sandbox.fault("storm-seconds", "/v2/billing", value=4000)
    first = synced.json("sync", "-s", "billing", code=1)["lists"][0]
    assert (first["requests"], first["rate_limited"]) == (1, 1)
    assert "`partner-sync connections unblock acme`" in first["remedy"]
    sandbox.reset()
    second = synced.json("sync", code=1)
    assert {row["requests"] for row in second["lists"]} == {0}
    assert all("unblock acme" in row["remedy"] for row in second["lists"])
    with opened(synced.home) as session, session.metadata.transaction() as db:
        assert {actor.actor[:9] for actor in db.query(RateLimitActor)} >= {"identity:"}
    assert synced.json("runs")[0]["outcome"] == "failed"
    synced("connections", "unblock", "acme", code=0)
    assert synced.json("sync", code=0)["lists"][2]["result"] == "resumed"

"""`init`, `check`, `connections`: from nothing to a first sync, and what a person accepts."""

import os
import pty
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipelines.config.home import Home
from pipelines.metadata.tables import Decision, Identity
from tests.cli.conftest import Cli
from tests.homes import opened, rows
from tests.sandbox.running import AUDIENCE, SECRET, SMALL, Running, clients_file, started

READABLE = ("list_readable", "info", "billing")
LISTS = {"/v2/partners", "/v2/usage", "/v2/billing"}
ANSWER_SECONDS = 60  # on a busy machine


def options(sandbox: Running, folder: Path) -> list[str]:
    secret = folder / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    urls = [f"--base-url={sandbox.url}", f"--auth-url={sandbox.url}"]
    return [*urls, f"--audience={AUDIENCE}", "--client-id=demo", f"--secret-file={secret}"]


def test_init_writes_checks_and_syncs(sandbox: Running, empty: Cli, tmp_path: Path) -> None:
    needed = "--base-url, --auth-url, --audience, --client-id, --secret"
    assert needed in empty("init", code=2).stderr
    assert not empty.home.root.exists()
    text = empty("init", "--name=acme", *options(sandbox, tmp_path)).stdout
    assert "accepted: " in text
    assert "Published version 1." in text
    assert rows(empty.home, "SELECT count(*) FROM current.usage") == [(1500,)]
    again = empty("init", "--name=acme", *options(sandbox, tmp_path), code=2)
    assert "already has a connection `acme`" in again.stderr
    assert tomllib.loads(empty.home.settings_file.read_text()) == {}
    assert "# secret_file = " in empty.home.connections_file.read_text()


@pytest.mark.long
def test_init_asks_on_a_terminal(sandbox: Running, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"PARTNER_SYNC_HOME": str(tmp_path / "home"), "ACME_SECRET": SECRET}
    command = [sys.executable, "-m", "pipelines.cli.main", "init", "--no-sync"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        answers = [
            (b"address of the service: ", "http://example.com"),
            (b"must be https: http is for a service on this machine only.", ""),
            (b"address of the service: ", sandbox.url),
            (b"the identity provider: ", sandbox.url),
            (b"API identifier: ", AUDIENCE),
            (b"client ID: ", "demo"),
            (b"API key: ", "ACME_SECRET"),
        ]
        shown = b""
        for question, answer in answers:
            end = time.monotonic() + ANSWER_SECONDS
            while question not in shown and time.monotonic() < end:
                shown += os.read(ours, 4096)
            _, found, shown = shown.partition(question)
            assert found
            os.write(ours, f"{answer}\n".encode() if answer else b"")
        assert process.wait(ANSWER_SECONDS) == 0
    os.close(ours)
    assert Home(tmp_path / "home").connections_file.read_text().count("ACME_SECRET") == 1


def test_wrong_credentials_publish_nothing(fresh: Cli) -> None:
    (fresh.home.root / "config" / "acme-secret").write_text("another secret")
    result = fresh("check", code=2)
    assert "credentials" in result.stdout
    assert "another secret" not in result.output
    assert "Nothing is published" in fresh("sync", code=1).stdout
    file = fresh.home.connections_file
    lines = [line for line in file.read_text().splitlines() if not line.startswith("secret_file")]
    file.write_text("\n".join([*lines, 'secret = "NO_SUCH_SECRET"']))
    assert "NO_SUCH_SECRET is not set" in fresh("sync", code=2).stdout


def test_a_route_that_is_closed_can_be_left_out(sandbox: Running, synced: Cli) -> None:
    sandbox.fault("scope-revoked", "/v2/billing")
    checked = synced.json("check", code=2)
    assert [row["passed"] for row in checked] == [True, True, True, False]
    assert 'add skip = ["billing"] to [acme]' in checked[3]["remedy"]
    lists = synced.json("sync", code=3)["lists"]
    assert lists[2]["remedy"] == checked[3]["remedy"]


def found(result: Any) -> list[tuple[str, str, str]]:
    return [(each["code"], each["severity"], each["stream"]) for each in result["findings"]]


@pytest.mark.long
def test_lists_that_a_partner_may_not_read_are_skipped_and_watched(
    empty: Cli, tmp_path: Path
) -> None:
    clients = clients_file(tmp_path)
    with started("--rate", "0", *SMALL, "--clients", str(clients)) as service:
        service.fault("scope-revoked", "/v2/billing")
        account = [*options(service, tmp_path), "--client-id=reseller"]
        (tmp_path / "secret").write_text("s-reseller")
        printed = " ".join(empty("init", "--name=acme", *account).stdout.split())
        assert printed.count("this account may not read it (403)") == 2
        text = empty.home.connections_file.read_text()
        assert tomllib.loads(text)["acme"]["skip"] == ["partners", "billing"]
        assert READABLE not in found(empty.json("status"))
        checked = {row["checked"]: row for row in empty.json("check")}
        assert "The actor partner may not use this route." in checked["partners"]["message"]
        assert "scope" in checked["billing"]["message"]
        assert [row["stream"] for row in empty.json("sync")["lists"]] == ["usage"]
        service.reset()  # the scope is granted
        assert READABLE in found(empty.json("sync"))
        status = empty.json("status")
        assert [each for each in found(status) if each[0] == "list_readable"] == [READABLE]
        (remedy,) = [each["remedy"] for each in status["findings"] if each["stream"] == "billing"]
        checked = {row["checked"]: row for row in empty.json("check")}
        assert checked["billing"]["remedy"] == remedy
        assert remedy.startswith("To read it, remove `billing` from skip of [acme]")
        service.fault("scope-revoked", "/v2/billing")
        empty("check")
        assert READABLE not in found(empty.json("status"))
        service.reset()
        empty.home.connections_file.write_text(text.replace(', "billing"', ""))
        assert [row["stream"] for row in empty.json("sync")["lists"]] == ["usage", "billing"]
        empty.home.connections_file.write_text(text)  # now a person wants it so
        assert READABLE not in found(empty.json("sync"))


def test_no_list_is_skipped_if_the_account_may_read_none(
    sandbox: Running, empty: Cli, tmp_path: Path
) -> None:
    sandbox.fault("scope-revoked")
    empty("init", "--name=acme", *options(sandbox, tmp_path), code=2)
    assert "skip" not in tomllib.loads(empty.home.connections_file.read_text())["acme"]


@pytest.mark.long
def test_another_account_is_refused_until_it_is_accepted(sandbox: Running, synced: Cli) -> None:
    with opened(synced.home) as session, session.metadata.transaction() as db:
        db.get_one(Identity, "acme").identity = {"id": "somebody else"}
    result = synced.json("sync", code=1)
    assert {row["result"] for row in result["lists"]} == {"failed"}
    message = result["lists"][0]["message"]
    assert "may belong to a different account than the data loaded before: " in message
    assert "id was somebody else and is " in message
    assert '`partner-sync connections accept acme --reason "..."`' in result["lists"][0]["remedy"]
    assert result["build"]["version"] == 1
    assert '`partner-sync connections accept acme --reason "..."`' in synced("check", code=2).stdout
    assert not LISTS & sandbox.statistics()["requests"].keys()
    accept = ("connections", "accept", "acme", "--reason=renamed")
    assert synced(*accept).stdout.startswith("Accepted: connection `acme` is ")
    with opened(synced.home) as session, session.metadata.transaction() as db:
        decision = db.query(Decision).one()
    decided = (decision.kind, decision.subject, decision.reason)
    assert decided == ("accept_identity", "acme", "renamed")
    assert decision.details["before"] == {"id": "somebody else"}
    synced("sync")
    assert "as before" in synced(*accept).stdout


@pytest.mark.long
def test_a_long_pause_is_kept_until_it_is_forgotten(sandbox: Running, synced: Cli) -> None:
    sandbox.fault("storm-seconds", "/v2/billing", value=4000)
    first = synced.json("sync", "-s", "billing", code=1)["lists"][0]
    assert (first["requests"], first["rate_limited"]) == (1, 1)
    assert "`partner-sync connections unblock acme`" in first["remedy"]
    sandbox.reset()
    second = synced.json("sync", code=1)
    assert {row["requests"] for row in second["lists"]} == {0}
    assert all("unblock acme" in row["remedy"] for row in second["lists"])
    assert synced.json("runs")[0]["outcome"] == "failed"
    synced("connections", "unblock", "acme")
    assert synced.json("sync")["lists"][2]["result"] == "resumed"

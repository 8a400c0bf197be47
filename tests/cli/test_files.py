"""Commands that delete and erase, and messages as JSON lines."""

import json

import pytest

from tests.cli.conftest import Cli
from tests.homes import rows


def test_erase_shows_what_it_touches_and_wants_a_yes(synced: Cli) -> None:
    ((partner, name),) = rows(synced.home, "SELECT _key, name FROM current.partners LIMIT 1")
    shown = synced("erase", name, "--reason", "law", code=2)
    assert "v00000001.duckdb" in shown.stdout
    assert "nobody can be asked. Use --yes" in shown.stdout
    query = f"SELECT count(*) FROM history.partners WHERE _key = '{partner}'"
    assert rows(synced.home, query) == [(1,)]
    done = synced("erase", name, "--reason", "law", "--yes")
    assert "Nothing contains the identifier any more" in done.stdout
    assert rows(synced.home, query) == [(0,)]
    refused = synced("erase", name, "--reason", "law", "--yes", code=2)
    assert "No file contains the identifier. Nothing was changed." in refused.stderr
    refused = synced("erase", name, "--reason", f"{name} asked", "--yes", code=2)
    assert "the reason contains it" in refused.stderr
    assert name.encode() not in (synced.home.locks / "build.holder").read_bytes()


def test_prune_shows_what_is_old_and_deletes_it(synced: Cli) -> None:
    assert "Set keep_days" in synced("prune", code=2).stderr
    assert synced.json("prune", "--days", "1") == []
    assert "0 files would be deleted" in synced("prune", "--days", "1", "--dry-run").stdout


def test_messages_are_json_lines_if_a_setting_says_so(
    synced: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_LOG_FORMAT", "json")
    entries = [json.loads(line) for line in synced("versions", "rebuild").stderr.splitlines()]
    assert "Version 2: loading acme/" in entries[0]["message"]
    assert {entry["level"] for entry in entries} == {"info"}
    (entry,) = synced("versions", "rollback", "7", "--reason", "x", code=1).stderr.splitlines()
    assert json.loads(entry)["level"] == "error"
    assert "Version 7 is not kept" in json.loads(entry)["message"]


def test_a_test_of_channels_says_what_is_missing(
    synced: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Set notify in settings.toml" in synced("notify", "test", code=2).stdout
    monkeypatch.setenv("PARTNER_SYNC_NOTIFY", "OPS_HOOK, OTHER_HOOK")
    (first, _second) = synced.json("notify", "test", code=2)
    assert first["message"] == "The environment variable OPS_HOOK is not set."
    assert "Findings were not sent" in synced("status", code=3).stdout

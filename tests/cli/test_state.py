"""No command shows success without data; decisions and versions do what they say."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from pipelines.core.files import write_durably
from pipelines.metadata.processes import this_process
from pipelines.metadata.tables import Run, Scan
from tests.cli.conftest import Cli
from tests.homes import make_home, opened, records, rows
from tests.sandbox.running import Running

QUIET = ("passed", "All ", "COMPLETE", "Nothing new")


UNKNOWN = {  # command, with its exit code
    ("status", 1): "Nothing is published yet. Run `partner-sync sync`.",
    ("plan", 0): "How long the next sync takes is not known.",
    ("runs", 0): "There are no runs yet. Run `partner-sync sync`.",
    ("versions list", 0): "There are no versions yet. Run `partner-sync sync`.",
    ("versions build", 1): "Nothing is published: no list has been loaded yet.",
    ("versions rebuild", 1): "Nothing is published: no list has been loaded yet.",
    ("verify", 0): "1 file verified, 0 damaged.",
}


def test_nothing_is_known_before_a_sync(fresh: Cli) -> None:
    for (command, code), said in UNKNOWN.items():
        text = fresh(*command.split(), code=code).stdout
        assert said in text
        assert not any(word in text for word in QUIET)
    for command in ("trace record acme usage key", "export csv"):
        assert "Nothing is published yet" in fresh(*command.split(), code=1).stderr


def test_a_sync_without_a_list_says_what_is_built(sandbox: Running, tmp_path: Path) -> None:
    skip = ["partners", "usage", "billing"]
    cli = Cli(make_home(tmp_path / "home", sandbox, skip=skip))
    assert "No version was built." in cli("sync", "--no-build").stdout
    printed = cli.json("sync", "--no-build")
    assert (printed["lists"], printed["build"]) == ([], None)
    assert "no list has been loaded yet" in cli("sync", code=1).stdout


def test_status_is_not_clear_with_a_connection_never_read(sandbox: Running, synced: Cli) -> None:
    secret_file = synced.home.settings_file.with_name("wrong")
    write_durably(secret_file, b"wrong")
    make_home(synced.home.root, sandbox, "second", secret_file=str(secret_file))
    assert any("second" in reason for reason in synced.json("status", code=3)["unknown"])
    text = synced("status", code=3).stdout
    assert "not known: " in text
    assert "passed" not in text
    synced("sync", "--connection", "second", code=1)
    text = synced("status", code=3).stdout
    remedy = r"partners, usage, billing: The identity .*\n +Check auth_url, .*`second`"
    assert re.search(remedy, text)


@pytest.mark.long
def test_rows_of_a_connection_that_was_removed_are_shown_and_found(
    synced: Cli, sandbox: Running
) -> None:
    file = synced.home.connections_file
    before = file.read_text()
    make_home(synced.home.root, sandbox, "other", skip=["partners", "billing"])
    file.write_text(file.read_text().removeprefix(before))
    synced("sync", code=3)
    status = synced.json("status", code=3)
    shown = [(each["connection"], each["stream"], each["rows"]) for each in status["lists"]]
    assert shown[0] == ("other", "usage", 1500)
    assert ("acme", "billing", 150) in shown
    assert "list_not_read" in {each["code"] for each in status["findings"]}
    assert "partner-sync init --name acme" in synced("status", code=3).stdout


def test_a_sync_that_a_defect_ended_needs_attention(synced: Cli) -> None:
    with opened(synced.home) as session, session.metadata.transaction() as db:
        db.execute(text("DROP TABLE rate_limit_slots"))
    assert "no such table: rate_limit_slots" in synced("sync", code=1).stdout
    (run, _first) = synced.json("runs")
    assert run["outcome"] == "failed"
    assert "Unexpected OperationalError at " in run["message"]
    (failed,) = (f for f in synced.json("status", code=3)["findings"] if f["code"] == "run_failed")
    assert failed["severity"] == "error"
    assert "defect of partner-sync" in failed["remedy"]


def test_status_shows_a_scan_that_is_not_at_its_end(synced: Cli, sandbox: Running) -> None:
    sandbox.fault("redirect", "/v2/billing", after=2)
    synced("sync", "-s", "billing", code=1)
    billing = synced.json("status", code=3)["lists"][2]
    assert (billing["last_scan"], billing["rows"]) == ("interrupted", 150)
    with opened(synced.home) as session, session.metadata.transaction() as db:
        run_id = db.query(Scan).filter_by(status="open").one().run_id
        run = db.get_one(Run, run_id)
        run.owner, run.ended_at = this_process(), None
    assert synced.json("status")["lists"][2]["last_scan"] == "being read"
    assert re.search(r"billing +150 .* being read ", synced("status").stdout)


def test_a_plan_asks_only_where_it_is_allowed_to(sandbox: Running, fresh: Cli) -> None:
    assert {row["rows"] for row in fresh.json("plan")} == {None}
    assert "`partner-sync plan --ask`" in fresh("plan").stdout
    assert sandbox.statistics()["requests"] == {}
    asked = {row["stream"]: row for row in fresh.json("plan", "--ask")}
    assert asked["partners"]["rows"] == 25
    assert (asked["partners"]["requests"], asked["partners"]["at_least"]) == (1, False)
    assert (asked["usage"]["rows"], asked["usage"]["at_least"]) == (501, True)
    assert "at least" in fresh("plan", "--ask").stdout
    sandbox.fault("scope-revoked", "/v2/billing")
    refused = {row["stream"]: row for row in fresh.json("plan", "--ask")}
    assert (refused["partners"], refused["billing"]["rows"]) == (asked["partners"], None)
    assert "answered /v2/billing with status 403" in refused["billing"]["basis"]


def test_a_list_that_lost_many_rows_is_held_and_approved(synced: Cli, sandbox: Running) -> None:
    sandbox.change("billing", delete=30.0)
    records(sandbox, "billing")  # at each page, some rows go
    sandbox.told("DELETE", "/changes")
    left = len(records(sandbox, "billing"))
    printed = synced.json("sync", "-s", "billing", code=3)
    (billing,) = printed["lists"]
    assert (billing["result"], billing["changed"]) == ("read, held", None)
    assert [each["code"] for each in printed["findings"]] == ["not_reconciled", "scan_held"]
    count = "SELECT count(*) FROM current.billing"
    assert rows(synced.home, count) == [(150,)]
    remedy = 'Run `partner-sync approve acme billing --reason "..."`.'
    assert remedy in synced("status", code=3).stdout
    approve = ("approve", "acme", "billing", "--reason=all are void")
    assert synced(*approve).stdout.startswith("Approved the scan of acme/billing of ")
    assert rows(synced.home, count) == [(left,)]
    assert "No scan of acme/billing is held." in synced(*approve, code=1).stderr


@pytest.mark.long
def test_versions_are_built_rolled_back_and_rebuilt(
    synced: Cli, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, printed = (synced.json("sync", "-s", "partners", "--no-build") for _ in range(2))
    codes = {each["code"] for each in printed["findings"]}
    assert (printed["build"], "scan_not_published" in codes) == (None, False)
    with opened(synced.home) as session, session.metadata.transaction() as db:
        for run in db.query(Run):
            run.ended_at = run.started_at - timedelta(hours=1)
    status = synced.json("status", code=3)
    assert "scan_not_published" in {each["code"] for each in status["findings"]}
    before, target = sandbox.statistics()["requests"], synced.home.link.readlink()
    assert synced.json("versions", "build")["version"] == 2
    synced("versions", "rollback", "--reason=wrong amounts")
    assert synced.home.link.readlink() == target
    assert "Analysts see version 1." in synced("versions", "build", code=3).stdout
    reject = ("approve", "acme", "partners", "--reject", "--reason=wrong")
    assert synced(*reject).stdout.startswith("Rejected the scan of acme/partners")
    with opened(synced.home) as session, session.metadata.transaction() as db:
        found = db.query(Scan.status).filter_by(stream="partners").order_by(Scan.started_at)
        assert [status for (status,) in found] == ["sealed", "held", "rejected"]
    once_more = synced("versions", "rollback", "--reason=once more", code=1).stderr
    assert "There is no older version" in once_more
    monkeypatch.setenv("PARTNER_SYNC_LOG_FORMAT", "json")
    result = synced("versions", "rebuild", "--json")
    printed, entries = json.loads(result.stdout), map(json.loads, result.stderr.splitlines())
    assert (printed["version"], printed["is_new"]) == (3, True)
    assert sum(scan["new"] for scan in printed["scans"]) == 1675
    assert sandbox.statistics()["requests"] == before
    assert "Version 3: loading acme/" in next(entries)["message"]
    assert {entry["level"] for entry in entries} == {"info"}
    (line,) = synced("versions", "rollback", "17", "--reason=x", code=1).stderr.splitlines()
    assert json.loads(line)["level"] == "error"
    assert "Version 17 is not kept" in json.loads(line)["message"]


def test_verify_names_each_file_that_is_not_as_recorded(synced: Cli) -> None:
    with opened(synced.home) as session, session.metadata.transaction() as db:
        files = {scan.stream: synced.home.archive / scan.file for scan in db.query(Scan)}
    unknown = files["partners"].with_name("unknown.jsonl.zst")
    for file in (files["billing"], unknown):
        file.write_bytes(files["partners"].read_bytes())
    printed = synced.json("verify", code=3)
    assert printed["files"] == 7
    messages = [each["message"] for each in printed["damaged"]]
    assert len(messages) == 2
    assert re.search(rf"{files['billing']} .* not the file that was sealed", "".join(messages))
    assert re.search(rf"{unknown} is not in the metadata database", "".join(messages))


@pytest.mark.long
def test_erase_shows_what_it_touches_and_wants_a_yes(synced: Cli) -> None:
    ((partner, name),) = rows(synced.home, "SELECT _key, name FROM current.partners LIMIT 1")
    refused = synced("erase", name, "--reason", "law", "--yes", code=2)
    assert "1 of 25 records of acme/partners (4.00 %), which is more than 1 %" in refused.stderr
    shown = synced("erase", name, "--reason", "law", "--force", code=2)
    assert "v00000001.duckdb" in shown.stdout
    assert "nobody can be asked.\nRun the same command with --yes" in shown.stderr
    query = f"SELECT count(*) FROM history.partners WHERE _key = '{partner}'"
    assert rows(synced.home, query) == [(1,)]
    done = synced("erase", name, "--reason", "law", "--yes", "--force")
    assert "No record contains it any more." in done.stdout
    assert rows(synced.home, query) == [(0,)]
    assert "Erased: 1 record in 2 files, by " in synced("status").stdout
    refused = synced("erase", name, "--reason", "law", "--yes", code=2)
    assert "No file contains the value. Nothing was changed." in refused.stderr
    refused = synced("erase", name, "--reason", f"{name} asked", "--yes", code=2)
    assert "the reason contains it" in refused.stderr
    assert name.encode() not in (synced.home.locks / "build.holder").read_bytes()


def test_prune_shows_what_is_old_and_deletes_it(synced: Cli) -> None:
    assert "Set keep_days" in synced("prune", code=2).stderr
    assert synced.json("prune", "--days", "1") == []
    assert "To delete: 0 files" in synced("prune", "--days", "1", "--dry-run").stdout


def test_a_test_of_channels_says_what_is_missing(
    synced: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Set notify in settings.toml" in synced("notify", "test", code=2).stdout
    monkeypatch.setenv("PARTNER_SYNC_NOTIFY", "OPS_HOOK, OTHER_HOOK")
    (first, _second) = synced.json("notify", "test", code=2)
    assert first["message"] == "The environment variable OPS_HOOK is not set."
    assert "Findings were not sent" in synced("status", code=3).stdout

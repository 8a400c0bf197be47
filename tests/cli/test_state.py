"""No command shows success without data; decisions and versions do what they say."""

import re

import duckdb
import pytest

from pipelines.metadata.engine import this_process
from pipelines.metadata.tables import Run, Scan
from tests.cli.conftest import Cli
from tests.homes import make_home, opened, records, rows
from tests.sandbox.running import Running

QUIET = ("passed", "All ", "COMPLETE", "Nothing new")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("status", 1, "Nothing is published yet. Run `partner-sync sync`."),
        ("plan", 0, "How long the next sync takes is not known."),
        ("runs", 0, "There are no runs yet. Run `partner-sync sync`."),
        ("versions list", 0, "There are no versions yet. Run `partner-sync sync`."),
        ("versions build", 1, "Nothing is published: no list has been loaded yet."),
        ("versions rebuild", 1, "Nothing is published: no list has been loaded yet."),
        ("verify", 0, "1 files verified, 0 damaged."),
    ],
)
def test_nothing_is_known_before_a_sync(command: str, code: int, said: str, fresh: Cli) -> None:
    text = fresh(*command.split(), code=code).stdout
    assert said in text
    assert not any(word in text for word in QUIET)


def test_status_is_not_clear_with_a_connection_never_read(sandbox: Running, synced: Cli) -> None:
    make_home(synced.home.root, sandbox, "second")
    assert any("second" in reason for reason in synced.json("status", code=3)["unknown"])
    text = synced("status", code=3).stdout
    assert "not known: " in text
    assert "passed" not in text


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


def test_a_plan_follows_the_last_scan(synced: Cli) -> None:
    planned = {row["stream"]: row for row in synced.json("plan")}
    assert planned["usage"]["rows"] == 1500
    assert planned["usage"]["requests"] >= 4
    assert "The next sync takes " in synced("plan").stdout


def test_a_list_that_lost_many_rows_is_held_and_approved(synced: Cli, sandbox: Running) -> None:
    sandbox.change("billing", delete=30.0)
    records(sandbox, "billing")  # at each page, some rows go
    sandbox.told("DELETE", "/changes")
    left = len(records(sandbox, "billing"))
    printed = synced.json("sync", "-s", "billing", code=3)
    assert printed["lists"][0]["result"] == "read, held"
    assert [each["code"] for each in printed["findings"]] == ["not_reconciled", "scan_held"]
    count = "SELECT count(*) FROM current.billing"
    assert rows(synced.home, count) == [(150,)]
    assert "Run `partner-sync approve acme billing`." in synced("status", code=3).stdout
    approve = ("approve", "acme", "billing", "--reason=all are void")
    assert synced(*approve).stdout.startswith("Approved the scan of acme/billing of ")
    assert rows(synced.home, count) == [(left,)]
    assert "No scan of acme/billing is held." in synced(*approve, code=1).stderr


def test_a_rollback_holds_what_it_takes_back(synced: Cli) -> None:
    synced("sync")
    target = synced.home.link.readlink()
    synced("versions", "rollback", "--reason=wrong amounts")
    assert synced.home.link.readlink() != target
    assert "Analysts see version 1." in synced("versions", "build", code=3).stdout
    rejected = synced("approve", "acme", "usage", "--reject", "--reason=wrong")
    assert rejected.stdout.startswith("Rejected the scan of acme/usage")
    missing = synced("versions", "rollback", "17", "--reason=typing error", code=1)
    assert "Version 17 is not kept" in missing.stderr
    oldest = synced("versions", "rollback", "--reason=once more", code=1)
    assert "There is no older version" in oldest.stderr


def test_a_version_is_rebuilt_without_a_request(synced: Cli, sandbox: Running) -> None:
    before = sandbox.statistics()["requests"]
    printed = synced.json("versions", "rebuild")
    assert (printed["version"], printed["is_new"]) == (2, True)
    assert sum(scan["new"] for scan in printed["scans"]) == 1675
    assert sandbox.statistics()["requests"] == before


def test_reading_without_a_build_publishes_later(synced: Cli) -> None:
    printed = synced.json("sync", "-s", "partners", "--no-build")
    assert printed["build"] is None
    assert "scan_not_published" in {each["code"] for each in printed["findings"]}
    assert synced.json("versions", "build")["version"] == 2


def test_verify_names_each_file_that_is_not_as_recorded(synced: Cli) -> None:
    with opened(synced.home) as session, session.metadata.transaction() as db:
        files = {scan.stream: synced.home.archive / scan.file for scan in db.query(Scan)}
    content = bytearray(files["usage"].read_bytes())
    content[len(content) // 2] ^= 1
    files["usage"].write_bytes(content)
    files["billing"].write_bytes(files["partners"].read_bytes())
    unknown = files["partners"].with_name("unknown.jsonl.zst")
    unknown.write_bytes(files["partners"].read_bytes())
    (version,) = synced.home.versions.glob("v*.duckdb")
    version.chmod(0o600)
    with duckdb.connect(version) as db:
        db.execute("CREATE TABLE history.added AS SELECT 1 AS a")
    printed = synced.json("verify", code=3)
    assert (printed["files"], len(printed["damaged"])) == (6, 4)
    messages = [each["message"] for each in printed["damaged"]]
    for file, why in (
        (files["usage"], "is not what was written"),
        (files["billing"], "not the file that was sealed"),
        (unknown, "not in the metadata database"),
        (version, "was changed after it was published"),
    ):
        assert [why in each for each in messages if str(file) in each] == [True]

"""What commands print: tables for people, JSON with stable keys for programs."""

import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipelines.cli.outcomes import SYNC_COLUMNS
from pipelines.cli.terminal import show_table, shown
from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from pipelines.core.files import write_durably
from pipelines.metadata.tables import Run
from tests.cli.commands import FORMATS
from tests.cli.conftest import Cli
from tests.homes import make_home, opened, rows
from tests.reconcile.books import SANDBOX_MAPPING
from tests.sandbox.running import Running

EVIL = "red\x1b[31m \u202egnp.exe\nnext \x9b2J"
ESCAPED = r"red\x1b[31m \u202egnp.exe\nnext \x9b2J"
NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
KEYS = {
    "status": "checks erasures exit_code file findings formats lists unknown version",
    "sync -s usage": "build exit_code findings lists problems",
    "verify": "damaged files",
    "connections": "base_url client_id connection secret streams surface",
    "check": "checked connection message passed remedy",
    "discover acme": "lines path state surface",
    "plan": "at_least basis connection requests rows seconds stream",
    "runs": "connection ended_at message outcome rate_limited requests run started_at trigger",
    "export csv": "exported_to numbers_as_text rows table",
    "trace record acme partners KEY": "connection key quarantine stream version versions",
    "versions list": "bytes content created_at published version",
}


@pytest.mark.long
def test_lists_have_stable_keys_as_json(synced: Cli) -> None:
    ((key,),) = rows(synced.home, "SELECT min(_key) FROM current.partners")
    with opened(synced.home) as session, session.metadata.transaction() as db:
        about: dict[str, Any] = {"connection": "acme", "trigger": "command", "owner": "a:1:1"}
        db.add(Run(run_id="r", **about, started_at=NOW, ended_at=NOW, message=EVIL))
    assert ESCAPED in synced("runs").stdout
    printed = {each: synced.json(*each.replace("KEY", key).split()) for each in KEYS}
    assert printed["runs"][-1]["message"] == EVIL
    for command, found in printed.items():
        each_row = found if isinstance(found, list) else [found]
        assert each_row
        assert {" ".join(sorted(row)) for row in each_row} == {KEYS[command]}
        assert all(not isinstance(value, float) for row in each_row for value in row.values())
    status, sync = printed["status"], printed["sync -s usage"]
    assert (status["version"], status["unknown"]) == (1, [])
    assert [each["code"] for each in status["findings"]] == ["not_reconciled"]
    lists = [(row["stream"], row["rows"], row["complete"]) for row in status["lists"]]
    assert lists == [("partners", 25, True), ("usage", 1500, True), ("billing", 150, True)]
    (usage,) = sync["lists"]
    assert usage.pop("requests") >= 4
    assert usage.pop("scan")
    assert usage.pop("message").startswith("usage: COMPLETE. 1,500 rows")
    expected = {"connection": "acme", "stream": "usage", "rows": 1500, "rate_limited": 0}
    expected |= {"new": 0, "changed": 0, "deleted": 0}
    assert usage == expected | {"proof": "COMPLETE", "result": "read", "remedy": ""}
    build = sync["build"]
    assert (build["version"], build["is_new"], build["failed"]) == (2, True, {})
    assert build["scans"][0]["unchanged"] == 1500
    assert all(type(row["bytes"]) is int for row in printed["versions list"])
    planned = {row["stream"]: row for row in printed["plan"]}
    assert planned["usage"]["rows"] == 1500
    assert planned["usage"]["requests"] >= 4


def test_the_table_of_a_sync_fits_a_terminal() -> None:
    values = ["connection", "partners", 20_000, 20_000, 16_482, 120, 44, 0, "COMPLETE", "read"]
    row = dict(zip(SYNC_COLUMNS, values, strict=True))
    for width, between in ((80, 1), (120, 3)):
        file = StringIO()
        show_table([row], SYNC_COLUMNS, Console(width=width, file=file, soft_wrap=True))
        (line,) = [each for each in file.getvalue().splitlines() if "partners" in each]
        assert " " * between + "16,482 " in line
        assert line.split() == list(map(shown, values))


@pytest.mark.long
def test_tables_are_for_people(synced: Cli) -> None:
    write_durably(synced.home.mapping_file, SANDBOX_MAPPING.encode())
    edited = synced("status", code=3).stdout  # and the books do not know it yet
    assert "All " not in edited
    assert "partner-sync reconcile" in edited
    text = synced("sync", "-s", "usage").stdout
    assert "429s" in text
    assert re.search(r"acme +usage +1,500 +0 +0 +0 +\d+ +0 +COMPLETE +read", text)
    assert re.search(r"acme usage: COMPLETE\. 1,500 rows, .* Primary key: usageId\.", text)
    assert "Published version 2. Open it with" in text
    assert re.search(f"{FORMATS}\nAll \\d+ checks passed", synced("status").stdout)
    assert "The next sync takes " in synced("plan").stdout
    once = {row["stream"]: row["requests"] for row in synced.json("plan")}
    with synced.home.settings_file.open("a") as file:
        file.write("[streams.usage]\npasses = 2\n")
    twice = {row["stream"]: row["requests"] for row in synced.json("plan")}
    assert twice == once | {"usage": 2 * once["usage"]}
    size = r"[\d.]+ [kM]B +2"  # and the year
    assert re.search(rf"2 +yes +{size}.*\n.*1 +no +{size}", synced("versions", "list").stdout)
    ((key,),) = rows(synced.home, "SELECT min(_key) FROM current.partners")
    text = synced("trace", "record", "acme", "partners", key).stdout
    assert f"Record {key} of acme/partners in version 2:" in text
    assert "Proven: the record in the scan file has the digest of the row." in text
    assert f'"partnerId":"{key}"' in text.replace(": ", ":")
    text = synced("export", "xlsx", "-t", "current.usage").stdout
    assert re.search(r"current.usage +1,500 +.*sequence.*usage\.xlsx", text)
    assert "Excel keeps 15 digits of a number." in text


@pytest.mark.long
def test_printed_commands_quote_the_paths_in_them(sandbox: Running, tmp_path: Path) -> None:
    cli = Cli(make_home(tmp_path / "Ann's home", sandbox))
    write_durably(cli.home.mapping_file, SANDBOX_MAPPING.encode())
    secret, xlsx = cli.home.root / "config" / "acme-secret", tmp_path / "Ann's breaks.xlsx"
    link = shlex.quote(str(cli.home.link))
    assert f"duckdb -readonly {link}\n" in cli("sync").stdout
    unknown = cli("trace", "record", "acme", "usage", "unknown", code=2).stderr
    assert f'duckdb -readonly {link} "SELECT _key' in unknown
    decide = f"`partner-sync breaks decide {shlex.quote(str(xlsx))}`"
    assert decide in cli("breaks", f"--xlsx={xlsx}").stdout
    secret.chmod(0o644)
    assert f"`chmod 600 {shlex.quote(str(secret))}`" in cli("sync", code=2).stdout


def run(home: Home, arguments: str, **options: Any) -> tuple[int, str, str]:
    """Run a command as a process; return its exit code, output and errors."""
    command = [sys.executable, "-m", "pipelines.cli.main", *arguments.split()]
    environment = os.environ | {"PARTNER_SYNC_HOME": str(home.root)} | options.pop("env", {})
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    done = subprocess.run(command, env=environment, check=False, text=True, **options)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments", ["connections", pytest.param("status --json", marks=pytest.mark.long)]
)
def test_a_result_that_cannot_be_written_is_one_line(synced: Cli, arguments: str) -> None:
    with Path("/dev/full").open("w") as full:
        code, _, errors = run(synced.home, arguments, stdout=full)
    message = "Error: The result could not be written: No space left on device.\n"
    assert (code, errors) == (ExitCode.NOTHING_PUBLISHED, message)


@pytest.mark.long
def test_what_the_encoding_lacks_is_escaped(synced: Cli) -> None:
    file = synced.home.connections_file
    file.write_text(file.read_text().replace("acme-secret", "clé"))
    code, text, errors = run(synced.home, "connections", env={"PYTHONUTF8": "0", "LC_ALL": "C"})
    assert (code, errors) == (ExitCode.DONE, "")
    assert r"/config/cl\xe9 " in text


def test_values_are_shown_exactly() -> None:
    assert shown(Decimal("1E+3")) == "1000"
    assert shown(Decimal("12345678901234567.890")) == "12345678901234567.890"
    assert shown(1234567) == "1,234,567"
    assert shown(NOW) == "2026-10-01 12:00:00 UTC"
    assert [shown(value) for value in (None, True, EVIL)] == ["", "yes", ESCAPED]

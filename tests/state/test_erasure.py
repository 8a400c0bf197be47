"""What the ledger quotes loses a text; what it counts keeps its digits."""

from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine

from pipelines.state import decisions, erasure, journal, runs
from pipelines.state.decisions import Decision, Kind
from pipelines.state.journal import Reading
from pipelines.state.runs import Call
from tests.virtual import EPOCH

CALL = Call("usage", "GET", "/v2/partners/p-17/usage", "limit=5", EPOCH, 0, 0, 200, 4, None, None)


def test_quotes_lose_it_and_the_file_too(ledger: Engine, tmp_path: Path) -> None:
    runs.record(ledger, "run-1", CALL)
    runs.record(ledger, "run-1", replace(CALL, path="/v2/partners/p-170"))
    scan = journal.begin(ledger, Reading("run-1", "default", "usage", EPOCH.date()), EPOCH)
    journal.fail(ledger, scan, EPOCH, "row 3: p-17 is there twice")

    assert erasure.erase(ledger, "p-17") == ["requests.path", "scans.error"]

    (some,) = runs.calls(ledger, 0, 10)
    paths = [call.path for _number, _run, call in some]
    assert paths == ["/v2/partners/[erased]/usage", "/v2/partners/p-170"]
    latest = journal.latest_scan(ledger, "default", "usage")
    assert latest is not None
    assert latest.error == "row 3: [erased] is there twice"
    ledger.dispose()
    raw = b"".join(file.read_bytes() for file in tmp_path.glob("state.sqlite*"))
    assert b"p-17 " not in raw
    assert b"p-17/" not in raw
    assert erasure.erase(ledger, "p-17") == []


def test_a_number_is_no_quote(ledger: Engine) -> None:
    runs.record(ledger, "run-1", replace(CALL, query="limit=200&offset=200", path="/v2/usage"))
    runs.record(ledger, "run-1", replace(CALL, path="/v2/usage/20"))
    decided = Decision(Kind.QUARANTINE, "default", "usage", "m.json", "ada", EPOCH, subject="20")
    decisions.decide(ledger, decided)
    assert erasure.erase(ledger, "20") == ["requests.path"]
    assert decisions.made(ledger, Kind.QUARANTINE, "default", "usage") == [decided]
    (some,) = runs.calls(ledger, 0, 10)
    assert [call.status for _number, _run, call in some] == [200, 200]

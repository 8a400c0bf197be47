"""Full disks, emptied and damaged files: a message, nothing lost, then it goes on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duckdb
import httpx
import pytest

from pipelines.config.home import Home
from pipelines.core.errors import ExitCode
from tests.end_to_end.proxy import changed_answers
from tests.forked import run_forked
from tests.homes import copied, make_home, records, rows, sync_once
from tests.sandbox.running import Running
from tests.truth import current, sent

pytestmark = pytest.mark.long
NOISE = 4_000  # bytes in each of 150 bills, so that scan files are larger than metadata.db
# Too little for the metadata database, a scan file, a copy of the base, the new version.
KIB = [0, 4, 32, 64, 100, 300, 700, 1_000, 2_000, 2_600, 4_000, 16_000]
SLOW = {4, 64, 300, 1_000, 2_600}
ROWS = "FROM current.billing ORDER BY _key"
SYNC = "sync -s billing"
# Which file, what it holds instead, and what commands then say, with their exit codes.
Spoiled = tuple[str, bytes, dict[str, tuple[int, str]]]
SPOILED: dict[str, Spoiled] = {
    "version": (
        *("versions/v*.duckdb", b""),
        {"verify": (3, "was changed after"), SYNC: (1, "not a valid DuckDB")},
    ),
    "scan": (
        *("archive/acme/billing/*.zst", b""),
        {"verify": (3, "is damaged: page 0"), "versions build": (3, "could not be loaded: Scan")},
    ),
    "metadata, emptied": ("metadata.db", b"", {"verify": (3, "not in the metadata database")}),
    "metadata, damaged": (
        *("metadata.db", b"no database" * 999),
        {"verify": (1, "is not a database"), SYNC: (1, "is not a database")},
    ),
}


@dataclass
class Noise:
    """Adds text to bills that nothing compresses, another one in each turn."""

    turn: int = 0

    def __call__(self, request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        if request.url.path != "/v2/billing":
            return answer
        document = answer.json()
        for record in document["data"]:
            record["noise"] = Random(f"{self.turn}{record['billingId']}").randbytes(NOISE).hex()
        return httpx.Response(200, json=document)


@pytest.fixture(scope="module")
def synced(
    tmp_path_factory: pytest.TempPathFactory, sandbox_process: Running
) -> Iterator[tuple[Home, Running]]:
    """A home that was synced, and the service, where every bill has changed since then."""
    noise = Noise()
    with changed_answers(sandbox_process, noise) as service:
        home = make_home(tmp_path_factory.mktemp("disk") / "home", service)
        assert sync_once(home, "billing").build
        noise.turn = 1
        yield home, service


@pytest.fixture
def home(synced: tuple[Home, Running], tmp_path: Path) -> Iterator[Home]:
    """A copy of the home; after the test, the next sync publishes what the service has."""
    copy = copied(synced[0], tmp_path / "home")
    yield copy
    sync_once(copy, "billing")
    with duckdb.connect(copy.link, read_only=True) as db:
        assert current(db, "billing") == sent(records(synced[1], "billing"), "billingId")


def partner_sync(home: Home, command: str, kib: int = 10**6) -> tuple[int, str]:
    """Run a command that can write no file above a size; return its exit code and its words."""
    environment = {"PARTNER_SYNC_HOME": str(home.root)}
    code, text = run_forked(command.split(), environment, largest_file=kib * 1024)
    assert "Traceback" not in text
    return code, text


@pytest.mark.parametrize(
    "kib",
    [pytest.param(kib, marks=[pytest.mark.slow] if kib in SLOW else []) for kib in KIB],
)
def test_a_full_disk_at_any_moment(kib: int, home: Home) -> None:
    before = rows(home, ROWS)
    code, text = partner_sync(home, SYNC, kib)
    if kib == max(KIB):
        assert "Published version 2." in text
        return
    assert code == ExitCode.NOTHING_PUBLISHED
    assert str(home.root) in text
    assert re.search("File too large|disk I/O error", text)
    assert re.search("Make room.* run `partner-sync (sync|versions build)`", text)
    assert rows(home, ROWS) == before


@pytest.mark.parametrize("spoiled", SPOILED.values(), ids=SPOILED)
def test_a_file_that_was_emptied_or_damaged_is_named(spoiled: Spoiled, home: Home) -> None:
    pattern, content, said = spoiled
    before = rows(home, ROWS)
    partner_sync(home, f"{SYNC} --no-build")
    file = max(home.root.glob(pattern))
    backup = file.read_bytes()
    file.chmod(0o600)
    file.write_bytes(content)
    for command, (code, words) in said.items():
        found, text = partner_sync(home, command)
        assert (found, words in text) == (code, True), text
        assert str(file) in text or "not in the metadata database" in text
        assert re.search("[Rr]estore|`partner-sync ", text)
        assert "versions" in pattern or rows(home, ROWS) == before
    file.write_bytes(backup)

"""A home without a service, its ledger written as runs would, and a clock that tests move."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipelines import run
from pipelines.clock import SYSTEM
from pipelines.run import Session, Watch
from pipelines.settings import PREFIX, load
from pipelines.state import journal, runs, versions
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.proof import Grade, Proof
from pipelines.state.versions import Version
from tests.alerts.receiving import Hook, hook

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOBODY = {
    **dict.fromkeys(("BASE_URL", "AUTH_URL"), "https://127.0.0.1:9"),
    **dict.fromkeys(("AUDIENCE", "CLIENT_ID"), "nobody"),
}


@dataclass
class House:
    """An opened home, what its log was told, and what time it is in it."""

    session: Session
    said: list[str]
    now: datetime = NOON
    holds: dict[str, str] = field(default_factory=dict)

    def ran(self, name: str, outcome: str | None, begun: datetime | None = None) -> None:
        """Record a run of `default`; without an outcome it is under way."""
        begun = begun or self.now
        runs.begin(self.session.ledger, name, "default", begun.date(), begun)
        if outcome:
            runs.end(self.session.ledger, name, outcome, begun)

    def read(self, stream: str, grade: Grade = Grade.COMPLETE, *, published: bool = True) -> str:
        """Record a reading that ends now; publish it, unless it is not to be."""
        ledger, now = self.session.ledger, self.now
        scan = journal.begin(ledger, Reading("run", "default", stream, now.date()), now)
        proof = Proof(grade, 5, 1, 0, 1, 0, "id", False, now, now)
        number = journal.next_number(ledger, Reading("run", "default", stream, now.date()))
        file = f"default/{stream}/{now.date()}.{number:03}.json"
        row = ManifestRow("default", stream, now.date(), number, scan, file, 1, 5, proof, now)
        journal.add_manifest(ledger, row)
        if published:
            self.holds[f"default/{stream}"] = file
            newest = versions.latest(ledger)
            version = newest.version + 1 if newest else 1
            name = f"warehouse.v{version:08}.duckdb"
            versions.add(ledger, Version(version, "run", name, dict(self.holds), {}, now))
        return file

    def failed(self, stream: str, words: str, proof: Proof | None = None) -> None:
        """Record a reading that failed."""
        ledger, now = self.session.ledger, self.now
        scan = journal.begin(ledger, Reading("run", "default", stream, now.date()), now)
        journal.fail(ledger, scan, now, words, proof)

    def alert(self) -> list[tuple[str, str]]:
        """Tell alerts; return what stands."""
        return [each.key for each in run.alert(self.session)]

    def later(self, **much: float) -> None:
        self.now += timedelta(**much)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Name a home of its own, and a service that nobody serves."""
    for name, value in NOBODY.items():
        monkeypatch.setenv(PREFIX + name, value)
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path / "home"))


@pytest.fixture
def house(environment: None) -> Iterator[House]:
    """Open a home."""
    del environment
    yield from opened()


def opened() -> Iterator[House]:
    """Yield the home of the environment's settings, opened."""
    said: list[str] = []
    times: list[House] = []
    clock = replace(SYSTEM, now=lambda: times[0].now if times else NOON)
    with run.open(load(), Watch(waiting=said.append), clock) as session:
        times.append(House(session, said))
        yield times[0]


@pytest.fixture
def hooked(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[House, Hook]]:
    """Open a home whose alerts are posted to a receiver."""
    del environment
    with hook() as receiver:
        monkeypatch.setenv("OPS_HOOK", receiver.url)
        monkeypatch.setenv(PREFIX + "WEBHOOK", '{"url": "OPS_HOOK"}')
        for house in opened():
            yield house, receiver

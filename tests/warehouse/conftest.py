"""A warehouse of its own for each test: archive, ledger and work database, all real."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine

from pipelines.clock import SYSTEM
from pipelines.settings import Home
from pipelines.state.journal import LinkedPage
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse import meta, registry
from pipelines.warehouse.archive import Archive, Manifest, opened
from pipelines.warehouse.database import Work
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.fold import Terms, fold
from pipelines.warehouse.meta import Fold, Held
from pipelines.warehouse.registry import Registered
from tests import archives, ledgers

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANYTHING = Terms(Guard(accepted=True))  # what tests fold has often nothing in common


@dataclass
class Warehouse:
    """One home below a test's folder."""

    home: Home
    ledger: Engine
    archive: Archive
    work: Work
    waits: list[str]
    address: str | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    terms: Terms = ANYTHING

    def manifest(
        self,
        *pages: str,
        key: str | None = "id",
        connection: str = "default",
        offsets: Sequence[int] = range(0, 100_000, 100),
        grade: Grade = Grade.COMPLETE,
    ) -> Manifest:
        """Archive pages, each the JSON text of its records, and return their manifest."""
        number = self.numbers[connection] = self.numbers.get(connection, 0) + 1
        linked = []
        for position, (text, offset) in enumerate(zip(pages, offsets, strict=False)):
            envelope = {"limit": 100, "offset": offset, "has_more": False}
            body = f'{{"data": {text}, "pagination": {json.dumps(envelope)}}}'.encode()
            digest, rows = self.archive.put(body), len(json.loads(text))
            page = LinkedPage(position, offset, 100, rows, digest, 200, None, NOON, NOON, {})
            linked.append(page)
        day = NOON + timedelta(days=number - 1)
        scan = f"scan-{connection}-{number}"
        rows = sum(page.rows for page in linked)
        proof = Proof(grade, rows, len(linked), 0, 1, 0, key, False, day, day)
        return Manifest(
            connection,
            "things",
            day.date(),
            number,
            "run",
            scan,
            key,
            day,
            day,
            tuple(linked),
            proof=proof,
        )

    def other(self) -> Archive:
        """Open the archive once more, as another run does."""
        return opened(self.home, self.address)

    def fold(self, manifest: Manifest) -> Fold:
        """Fold a manifest into the work database."""
        with self.work.writing() as writer:
            return fold(writer, self.archive, manifest, self.terms, SYSTEM)

    def registered(self) -> Registered | None:
        """Return the shape and the names of the work database."""
        with self.work.writing() as writer:
            return registry.registered(writer, "things")

    def held(self) -> Held:
        """Return what the work database says that its tables are made of."""
        with self.work.writing() as writer:
            return meta.held(writer)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Return a query's rows from the work database."""
        with self.work.writing() as writer:
            return writer.execute(sql).fetchall()

    def types(self, table: str = "things") -> dict[str, str]:
        """Return the types of a table's own columns."""
        found = self.query(
            f"SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = '{table}' "
            "AND schema_name = 'current' "
            "AND column_name NOT LIKE '\\_%' ESCAPE '\\' "
            "AND column_name NOT IN ('first_seen', 'changed_at', 'missing_since') "
            "ORDER BY column_index"
        )
        return {str(name): str(kind) for name, kind in found}


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """Yield an empty warehouse."""
    home = Home(tmp_path / "home")
    home.prepare()
    ledger = ledgers.opened(home.state)
    waits: list[str] = []
    archive = opened(home, address := archives.address())
    work = Work(home, "200MB", waits.append)
    yield Warehouse(home, ledger, archive, work, waits, address)
    ledger.dispose()

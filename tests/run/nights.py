"""A home whose archive is written night by night through the real archive and ledger."""

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pipelines import run
from pipelines.run import Order, Session
from pipelines.state import journal
from pipelines.state.journal import LinkedPage, ManifestRow, Reading
from pipelines.state.proof import Grade, Proof
from pipelines.streams import known
from pipelines.warehouse.archive import Manifest
from tests.warehouse.conftest import NOON

FIRST = NOON.date()
OURS = "('folds', 'registry', 'awaiting', 'schema_changes')"  # of schema meta, what folds write
Content = dict[str, list[tuple[object, ...]]]


@dataclass
class Nights:
    """A home whose archive is written night by night, as a scan would."""

    session: Session
    day: date = FIRST - timedelta(days=1)
    number: int = 0

    def read(self, *records: str, grade: Grade = Grade.COMPLETE, same_day: bool = False) -> str:
        """Archive a night of the stream usage, a page a text; return the manifest's file."""
        connection = "default"
        self.number = self.number + 1 if same_day else 1
        self.day += timedelta(days=not same_day)
        day, number = self.day, self.number
        ended = datetime.combine(day, NOON.timetz()) + timedelta(minutes=number - 1)
        archive, ledger = self.session.archive, self.session.ledger
        scan = journal.begin(ledger, Reading("run", connection, "usage", day), ended)
        pages = [self._page(*page, ended) for page in enumerate(records)]
        rows = sum(page.rows for page in pages)
        proof = Proof(grade, rows, len(pages), 0, 1, 0, "id", False, ended, ended)
        manifest = Manifest(
            connection,
            "usage",
            day,
            number,
            "run",
            scan,
            "id",
            ended,
            ended,
            tuple(pages),
            proof=proof,
        )
        archive.write(manifest)
        row = ManifestRow(
            connection, "usage", day, number, scan, manifest.file, len(pages), rows, proof, ended
        )
        journal.add_manifest(ledger, row)
        return manifest.file

    def _page(self, position: int, text: str, ended: datetime) -> LinkedPage:
        offset, rows = position * 100, len(json.loads(text, parse_constant=str))
        envelope = {"limit": 100, "offset": offset, "has_more": False}
        body = f'{{"data": {text}, "pagination": {json.dumps(envelope)}}}'.encode()
        digest = self.session.archive.put(body)
        return LinkedPage(position, offset, 100, rows, digest, 200, None, ended, ended, {})

    def order(self) -> Order:
        own = [stream for stream in known(self.session.settings) if stream.name == "usage"]
        return Order(self.session.settings.connection(), FIRST, own)

    def fold(self) -> object:
        return run.fold(self.session, self.order())["usage"]

    def content(self) -> Content:
        """Return every value and type of every table, but for when it was done."""
        with self.session.work.writing() as writer:
            tables = writer.execute(
                "SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT temporary AND "
                f"(schema_name <> 'meta' OR table_name IN {OURS})"
            ).fetchall()
            found: Content = {}
            for schema, table in tables:
                name = f'"{schema}"."{table}"'
                columns = writer.execute(f"DESCRIBE {name}").fetchall()
                own = [f'"{each}"' for each, *_ in columns if each != "folded_at"]
                rows = writer.execute(f"SELECT {', '.join(own)} FROM {name} ORDER BY ALL")
                found[name] = [tuple(each[:2] for each in columns), *rows.fetchall()]
        return found

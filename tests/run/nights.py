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
# Of schema meta, what folds write; what awaits a word may be an empty table or none.
OURS = "('folds', 'registry', 'schema_changes', 'awaiting')"
WHEN = {"folded_at"}
Content = dict[str, list[tuple[object, ...]]]


@dataclass(frozen=True)
class Source:
    """What a night reads: a stream of a connection, and the field that identifies its records."""

    connection: str = "default"
    stream: str = "usage"
    key: str | None = "id"


USAGE = Source()


@dataclass
class Nights:
    """A home whose archive is written reading by reading, as scans would."""

    session: Session
    day: date = FIRST - timedelta(days=1)
    number: int = 0

    @property
    def moment(self) -> datetime:
        """When the last reading ended."""
        return datetime.combine(self.day, NOON.timetz()) + timedelta(minutes=self.number - 1)

    def read(
        self,
        *records: str,
        of: Source = USAGE,
        grade: Grade = Grade.COMPLETE,
        same_day: bool = False,
    ) -> str:
        """Archive a reading of a source, a page a text; return the manifest's file."""
        self.number = self.number + 1 if same_day else 1
        self.day += timedelta(days=not same_day)
        day, ended = self.day, self.moment
        archive, ledger = self.session.archive, self.session.ledger
        scan = journal.begin(ledger, Reading("run", of.connection, of.stream, day), ended)
        pages = [self._page(*page) for page in enumerate(records)]
        rows = sum(page.rows for page in pages)
        manifest = Manifest(
            of.connection,
            of.stream,
            day,
            self.number,
            "run",
            scan,
            of.key,
            ended,
            ended,
            tuple(pages),
            proof=Proof(grade, rows, len(pages), 0, 1, 0, of.key, False, ended, ended),
        )
        archive.write(manifest)
        journal.add_manifest(ledger, _row(manifest))
        return manifest.file

    def _page(self, position: int, text: str) -> LinkedPage:
        offset, rows = position * 100, len(json.loads(text, parse_constant=str))
        envelope = {"limit": 100, "offset": offset, "has_more": False}
        body = f'{{"data": {text}, "pagination": {json.dumps(envelope)}}}'.encode()
        digest, ended = self.session.archive.put(body), self.moment
        return LinkedPage(position, offset, 100, rows, digest, 200, None, ended, ended, {})

    def order(self, of: Source = USAGE) -> Order:
        settings = self.session.settings
        own = [stream for stream in known(settings) if stream.name == of.stream]
        return Order(settings.connection(of.connection), FIRST, own)

    def fold(self, of: Source = USAGE) -> object:
        return run.fold(self.session, self.order(of))[of.stream]

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
                own = [f'"{each}"' for each, *_ in columns if each not in WHEN]
                rows = writer.execute(f"SELECT {', '.join(own)} FROM {name} ORDER BY ALL")
                values = rows.fetchall()
                if values or schema != "meta":
                    found[name] = [tuple(each[:2] for each in columns), *values]
        return found


def _row(manifest: Manifest) -> ManifestRow:
    assert manifest.proof
    return ManifestRow(
        manifest.connection,
        manifest.stream,
        manifest.day,
        manifest.number,
        manifest.scan,
        manifest.file,
        len(manifest.pages),
        manifest.rows,
        manifest.proof,
        manifest.ended_at,
    )

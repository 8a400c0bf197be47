"""Nights written into a home as a sync leaves them: archive, manifest, ledger; no service.

For what is measured or killed behind the archive. Here: writing them. Not here: folding.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec

from pipelines import run
from pipelines.run import Choice, Order, Session
from pipelines.settings import Settings
from pipelines.settings.model import StreamSettings
from pipelines.state import journal
from pipelines.state.journal import LinkedPage, ManifestRow
from pipelines.state.proof import Grade, Proof
from pipelines.warehouse.archive import Manifest

LIMIT = 500  # records a page
FIRST = datetime(2026, 1, 1, 2, tzinfo=UTC)


def settings(home: Path, streams: Sequence[str]) -> Settings:
    """Return the settings of a home with lists of these names, and a service that nobody serves."""
    nobody = "http://127.0.0.1:9"
    return Settings(
        home=home,
        base_url=nobody,
        auth_url=nobody,
        audience="nobody",
        client_id="nobody",
        streams={name: StreamSettings(path=f"/v2/{name}", may_disappear=1) for name in streams},
    )


def orders(session: Session, streams: Sequence[str]) -> list[Order]:
    """Return what folds and publishes these lists."""
    return run.orders(session, Choice(streams=streams))


def night(
    session: Session,
    stream: str,
    number: int,
    records: Iterable[str],
    grade: Grade = Grade.COMPLETE,
) -> str:
    """Archive and record one reading of a list, the records as JSON; return its manifest's name."""
    return _recorded(session, *_read(session, stream, number, records, grade))


def counted_night(
    session: Session, stream: str, number: int, superseded: Iterable[str], records: Iterable[str]
) -> str:
    """Like `night`, of a list that was counted: `superseded` were read before its length check."""
    manifest, proof = _read(session, stream, number, records, Grade.COMPLETE_BY_COUNT)
    before = tuple(_archived(session, superseded, manifest.begun_at))
    return _recorded(session, msgspec.structs.replace(manifest, superseded=before), proof)


def _read(
    session: Session, stream: str, number: int, records: Iterable[str], grade: Grade
) -> tuple[Manifest, Proof]:
    moment = FIRST + timedelta(days=number)
    pages = _archived(session, records, moment)
    rows = sum(page.rows for page in pages)
    proof = Proof(grade, rows, len(pages), 0, 1, 0, "id", False, moment, moment)
    manifest = Manifest(
        connection="default",
        stream=stream,
        day=moment.date(),
        number=1,
        run=f"run-{number}",
        scan=f"{stream}-{number}",
        key="id",
        begun_at=moment,
        ended_at=moment,
        pages=tuple(pages),
        proof=proof,
    )
    return manifest, proof


def _recorded(session: Session, manifest: Manifest, proof: Proof) -> str:
    if session.archive.stored(manifest.file) is None:
        session.archive.write(manifest)
    row = ManifestRow(
        connection="default",
        stream=manifest.stream,
        day=manifest.day,
        number=1,
        scan=manifest.scan,
        file=manifest.file,
        pages=len(manifest.pages),
        rows=proof.rows,
        proof=proof,
        written_at=manifest.ended_at,
    )
    journal.add_manifest(session.ledger, row)
    return manifest.file


def _archived(session: Session, records: Iterable[str], moment: datetime) -> list[LinkedPage]:
    pages: list[LinkedPage] = []
    waiting = iter(records)
    while some := list(islice(waiting, LIMIT)):
        offset = len(pages) * LIMIT
        paging = f'{{"limit":{LIMIT},"offset":{offset},"has_more":false}}'
        body = f'{{"data":[{",".join(some)}],"pagination":{paging}}}'.encode()
        digest = session.archive.put(body)
        page = LinkedPage(
            len(pages), offset, LIMIT, len(some), digest, 200, None, moment, moment, {}
        )
        pages.append(page)
    return pages

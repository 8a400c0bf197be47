"""Nights written into a home as a sync leaves them: archive, manifest, ledger; no service.

For what is measured or killed behind the archive. Here: writing them. Not here: folding.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

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
        streams={name: StreamSettings(path=f"/v2/{name}") for name in streams},
    )


def orders(session: Session, streams: Sequence[str]) -> list[Order]:
    """Return what folds and publishes these lists."""
    return run.orders(session, Choice(streams=streams))


def night(session: Session, stream: str, number: int, records: Iterable[str]) -> str:
    """Archive and record one reading of a list, the records as JSON; return its manifest's name."""
    moment = FIRST + timedelta(days=number)
    pages: list[LinkedPage] = []
    waiting = iter(records)
    while some := list(islice(waiting, LIMIT)):
        position = len(pages)
        paging = f'{{"limit":{LIMIT},"offset":{position * LIMIT},"has_more":false}}'
        body = f'{{"data":[{",".join(some)}],"pagination":{paging}}}'.encode()
        digest = session.archive.put(body)
        page = LinkedPage(
            position, position * LIMIT, LIMIT, len(some), digest, 200, None, moment, moment, {}
        )
        pages.append(page)
    rows = sum(page.rows for page in pages)
    proof = Proof(Grade.COMPLETE, rows, len(pages), 0, 1, 0, "id", False, moment, moment)
    manifest = Manifest(
        "default",
        stream,
        moment.date(),
        1,
        f"run-{number}",
        f"{stream}-{number}",
        "id",
        moment,
        moment,
        tuple(pages),
        proof=proof,
    )
    session.archive.write(manifest)
    row = ManifestRow(
        "default",
        stream,
        moment.date(),
        1,
        manifest.scan,
        manifest.file,
        len(pages),
        rows,
        proof,
        moment,
    )
    journal.add_manifest(session.ledger, row)
    return manifest.file

"""A scan: one list read into the archive, what is proven of it, and the manifest that sums it up.

Here: how chain, journal and archive work together, and that a scan that was killed goes on. Not
here: which pages are read (api/chain), where they come from (playback).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf

from sqlalchemy import Engine

from pipelines.api import key as keys
from pipelines.api.candidates import Candidates
from pipelines.api.content import contents
from pipelines.api.key import Identity
from pipelines.api.page import Page
from pipelines.api.prefetch import Fetch, Prefetch, Race
from pipelines.api.reader import Reader
from pipelines.api.source import Take
from pipelines.api.stitch import Taken
from pipelines.clock import Clock
from pipelines.errors import ContractBroken, PartnerSyncError
from pipelines.state import identities, journal, registry
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.proof import Counting, Proof
from pipelines.state.registry import Pin
from pipelines.warehouse import last_order
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.playback import Playback
from pipelines.warehouse.quarantine import most
from pipelines.warehouse.turn import Turns

LONGEST_PAUSE = timedelta(hours=6)  # an older scan is begun anew


@dataclass(frozen=True)
class Progress:
    """How far the reading of one stream is; `done` when it is proven and its manifest written.

    `rows` counts from the list's start; `expected` is how many rows the list had last time.
    `counting` is how far the count is, None while the list is read by its anchors.
    """

    connection: str
    stream: str
    pages: int
    rows: int
    done: bool
    expected: int | None = None
    counting: Counting | None = None


def since(ledger: Engine, connection: str, now: datetime) -> datetime:
    """Return the moment before which nothing is gone on with: too long ago, or another caller's."""
    earliest, accepted = now - LONGEST_PAUSE, identities.accepted_at(ledger, connection)
    return max(earliest, accepted or earliest)


class _UnfitError(Exception):
    """A field that was thought to identify records does not."""


@dataclass(frozen=True)
class Scanner:
    """Reads lists into one archive and ledger.

    `progress` is told after every page; `ahead` says whether one more request may be on its way.
    `minutes`: after so many, counted from the scan's first request, no list is counted further.
    """

    ledger: Engine
    archive: Archive
    clock: Clock
    turns: Turns
    progress: Callable[[Progress], None]
    ahead: Callable[[], bool]
    race: Race
    minutes: int | None = None

    async def scan(
        self, reading: Reading, fetch: Fetch, identity: Identity, there: int
    ) -> ManifestRow:
        """Read one list; return its manifest, or that of another run that has read it meanwhile.

        `there` counts the day's manifests when it was decided to read: the other run may be done
        before this one is let in, so that there is no wait to tell it by. Any PartnerSyncError
        leaves the pages linked, for the next run of the day to go on.
        """
        connection, stream, day = reading.connection, reading.stream, reading.day
        async with self.turns.taken(connection, stream):
            written = journal.manifests(self.ledger, stream, connection, day)[there:]
            if written:
                return written[-1]
            prefetch = Prefetch(fetch, lambda: self.race.longest(stream) and self.ahead())
            last = journal.newest(self.ledger, stream, connection)
            known = last_order.length(last.proof) if last else None
            if known is not None:
                prefetch.end = known
            pages = self._begun(reading, prefetch)
            try:
                return await _Scan(self, reading, pages, identity, last).read()
            finally:
                self.race.left.pop(stream, None)
                await prefetch.close()

    def _begun(self, reading: Reading, prefetch: Prefetch) -> Playback:
        """Go on with the day's unfinished scan, or begin one."""
        now = self.clock.now()
        scan = journal.unfinished(self.ledger, reading, since(self.ledger, reading.connection, now))
        if scan is None:
            scan = journal.begin(self.ledger, reading, now)
        else:
            journal.resume(self.ledger, scan, reading.run)
        linked = list(journal.pages(self.ledger, scan))
        return Playback(self.ledger, self.archive, scan, prefetch.page, linked)


@dataclass
class _Scan:
    """One scan on its way."""

    scanner: Scanner
    reading: Reading
    pages: Playback
    identity: Identity
    last: ManifestRow | None
    candidates: Candidates | None = None  # of a first scan
    reader: Reader | None = None
    furthest: int = 0
    aside: dict[int, list[int]] = field(default_factory=dict)  # rows without a key, by page

    async def read(self) -> ManifestRow:
        """Read the list; record how it ends."""
        ledger, scan = self.scanner.ledger, self.pages.scan
        self._tell(done=False)
        try:
            reader, proof = await self._proven()
        except PartnerSyncError as error:
            journal.fail(ledger, scan, self.scanner.clock.now(), str(error))
            raise
        refusal = self._refusal(reader, proof)
        if refusal:
            journal.fail(ledger, scan, self.scanner.clock.now(), str(refusal), proof)
            raise refusal
        with self.scanner.archive.numbering():
            self._pin(proof)
            row = self._bind(reader, proof)
        self._tell(done=True)
        return row

    async def _proven(self) -> tuple[Reader, Proof]:
        """Read the list by the likeliest key; by a better one, from the archive, once there is."""
        if not self.identity.known:
            self.candidates = Candidates(self.identity.candidates)
        while True:
            name = self.candidates.best if self.candidates else self.identity.known_name
            self.pages.rewind()
            self.aside, self.furthest = {}, 0
            before = await asyncio.to_thread(
                last_order.before, self.scanner.archive, self.last, name
            )
            last = self.last.proof if self.last else None
            self.reader = Reader(self._taker(name), before, name is not None, last, self._late)
            try:
                proof = await self.reader.read(name, inferred=not self.identity.known)
            except _UnfitError:
                continue
            if self.candidates is None or self.candidates.settled(name, proof):
                return self.reader, replace(proof, requests=len(self.pages.linked))

    def _taker(self, name: str | None) -> Take:
        async def take(offset: int, step: int) -> Taken:
            number, page = await self.pages.page(offset, step)
            found = await asyncio.to_thread(self._keys, page, name)
            self.aside[number] = [row for row, each in enumerate(found) if each is None]
            self.furthest = max(self.furthest, offset + page.rows)
            self._tell(done=False)
            return Taken(page, number, found)

        return take

    def _keys(self, page: Page, name: str | None) -> list[bytes | None]:
        """Return what identifies the records of a page: a field, or all that they say."""
        body = page.answer.body
        if self.candidates:
            self.candidates.learn(page)
            if self.candidates.fails(name):
                raise _UnfitError
        return list(contents(body)) if name is None else keys.keys(body, name)

    def _late(self) -> bool:
        """Tell whether the time for counting the list is over."""
        if self.scanner.minutes is None or not self.pages.linked or self.pages.waiting:
            return False
        begun = self.pages.linked[0].sent_at
        return self.scanner.clock.now() - begun >= timedelta(minutes=self.scanner.minutes)

    def _refusal(self, reader: Reader, proof: Proof) -> PartnerSyncError | None:
        """Return why there is no manifest of what was read, None where there may be one."""
        if proof.key is None:
            return None
        stream, kept = self.reading.stream, dict(reader.stitched)
        shown = [page for page in self.pages.linked if not kept or page.position in kept]
        rows = sum(kept.get(page.position, page.rows) for page in shown)
        aside = sum(
            row < kept.get(page.position, page.rows)
            for page in shown
            for row in self.aside.get(page.position, ())
        )
        if aside > most(rows):
            return ContractBroken(
                f"{stream}: {aside:,} of {rows:,} rows set aside: they have no "
                f"{proof.key}, which identifies the stream's records. Nothing of this reading is "
                "folded, the last published rows stay; if the field was renamed, set key in "
                f"[streams.{stream}]."
            )
        return None

    def _pin(self, proof: Proof) -> None:
        """Pin the key that a first scan found, unless another run was quicker to pin one."""
        if self.identity.known or not proof.rows:
            return
        ledger, connection, stream = (
            self.scanner.ledger,
            self.reading.connection,
            self.reading.stream,
        )
        pin = Pin(proof.key, self.pages.scan)
        registry.set_pin(ledger, connection, stream, pin, self.scanner.clock.now())

    def _bind(self, reader: Reader, proof: Proof) -> ManifestRow:
        """Write the manifest: pages that belong to no chain first, then the chain in its order."""
        stitched = dict(reader.stitched)
        linked = {page.position: page for page in self.pages.linked}
        superseded = {number for number in linked if number < reader.superseded} | reader.stale
        superseded -= stitched.keys()
        loaded = [number for number in linked if number not in superseded]
        order = [number for number in loaded if number not in stitched] + list(stitched)
        reading = self.reading
        manifest = Manifest(
            connection=reading.connection,
            stream=reading.stream,
            day=reading.day,
            number=journal.next_number(self.scanner.ledger, reading),
            run=reading.run,
            scan=self.pages.scan,
            key=proof.key,
            begun_at=proof.begun_at,
            ended_at=proof.ended_at,
            pages=tuple(linked[number] for number in order),
            stitched=tuple(stitched.get(number, 0) for number in order),
            proof=proof,
            superseded=tuple(linked[number] for number in linked if number in superseded),
            repeated=tuple(reader.repeated),
        )
        manifest = self.scanner.archive.settle(manifest)
        row = ManifestRow(
            connection=manifest.connection,
            stream=manifest.stream,
            day=manifest.day,
            number=manifest.number,
            scan=manifest.scan,
            file=manifest.file,
            pages=len(order),
            rows=manifest.rows,
            proof=proof,
            written_at=self.scanner.clock.now(),
        )
        journal.add_manifest(self.scanner.ledger, row)
        return row

    def _tell(self, *, done: bool) -> None:
        expected = last_order.length(self.last.proof) if self.last else None
        linked, reading = self.pages.linked, self.reading
        counting = self.reader.counting if self.reader and not done else None
        unknown = expected is None or counting is not None
        rows = inf if unknown else max(0, (expected or 0) - self.furthest)
        self.scanner.race.left[reading.stream] = rows / (linked[-1].limit if linked else 1)
        self.scanner.progress(
            Progress(
                reading.connection,
                reading.stream,
                len(linked),
                self.furthest,
                done,
                expected,
                counting,
            )
        )

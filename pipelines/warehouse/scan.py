"""A scan: one list read into the archive, what is proven of it, and the manifest that sums it up.

Here: how chain, journal and archive work together, and that a scan that was killed goes on. Not
here: which pages are read (api/chain), where they come from (playback).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from math import inf

import msgspec
from sqlalchemy import Engine

from pipelines.api import key as keys
from pipelines.api.chain import Before, Chain, Take
from pipelines.api.key import Identity
from pipelines.api.page import Page
from pipelines.api.prefetch import Fetch, Prefetch, Race
from pipelines.api.seen import Seen, mark
from pipelines.api.stitch import Taken
from pipelines.clock import Clock
from pipelines.errors import ContractBroken, LandingFailed, NotProven, PartnerSyncError
from pipelines.state import identities, journal, registry
from pipelines.state.journal import ManifestRow, Reading
from pipelines.state.proof import Proof
from pipelines.state.registry import Pin
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.pages import contents
from pipelines.warehouse.playback import Playback
from pipelines.warehouse.quarantine import most
from pipelines.warehouse.turn import Turns

LONGEST_PAUSE = timedelta(hours=6)  # an older scan is begun anew


@dataclass(frozen=True)
class Progress:
    """How far the reading of one stream is; `done` when it is proven and its manifest written.

    `rows` counts from the list's start; `expected` is how many rows the last reading found.
    """

    connection: str
    stream: str
    pages: int
    rows: int
    done: bool
    expected: int | None = None


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
    """

    ledger: Engine
    archive: Archive
    clock: Clock
    turns: Turns
    progress: Callable[[Progress], None]
    ahead: Callable[[], bool]
    race: Race

    async def scan(
        self, reading: Reading, fetch: Fetch, identity: Identity, there: int
    ) -> ManifestRow:
        """Read one list; return its manifest, or that of another run that has read it meanwhile.

        `there` counts the day's manifests when it was decided to read: the other run may be done
        before this one is let in, so that there is no wait to tell it by. Raises NotProven where
        nothing is proven; any PartnerSyncError leaves the pages linked, for the next run of the
        day to go on.
        """
        connection, stream, day = reading.connection, reading.stream, reading.day
        async with self.turns.taken(connection, stream):
            written = journal.manifests(self.ledger, stream, connection, day)[there:]
            if written:
                return written[-1]
            prefetch = Prefetch(fetch, lambda: self.race.longest(stream) and self.ahead())
            last = journal.newest(self.ledger, stream, connection)
            if last:
                prefetch.end = last.proof.rows
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
    furthest: int = 0
    aside: dict[int, list[int]] = field(default_factory=dict)  # rows without a key, by page

    async def read(self) -> ManifestRow:
        """Read the list; record how it ends."""
        ledger, scan = self.scanner.ledger, self.pages.scan
        self._tell(done=False)
        try:
            chain, proof = await self._stitched()
        except PartnerSyncError as error:
            journal.fail(ledger, scan, self.scanner.clock.now(), str(error))
            raise
        refusal = self._refusal(chain, proof)
        if refusal:
            journal.fail(ledger, scan, self.scanner.clock.now(), str(refusal), proof)
            raise refusal
        with self.scanner.archive.numbering():
            row = self._bind(chain, self._pinned(proof))
        self._tell(done=True)
        return row

    async def _stitched(self) -> tuple[Chain, Proof]:
        """Read the list by the likeliest key that holds; for the next one, from the archive."""
        for name in self.identity.names:
            self.pages.rewind()
            self.aside, self.furthest = {}, 0
            before = await asyncio.to_thread(self._before, name)
            chain = Chain(self._taker(name), before, keyed=name is not None)
            try:
                proof = await chain.read(name, inferred=not self.identity.known)
            except _UnfitError:
                continue
            return chain, replace(proof, requests=len(self.pages.linked))
        raise AssertionError("the whole record always tells rows apart")

    def _taker(self, name: str | None) -> Take:
        async def take(offset: int) -> Taken:
            number, page = await self.pages.page(offset)
            found = await asyncio.to_thread(_keys, page, name)
            if name is not None and not self.identity.fits(found):
                raise _UnfitError
            self.aside[number] = [row for row, each in enumerate(found) if each is None]
            self.furthest = max(self.furthest, offset + page.rows)
            self._tell(done=False)
            return Taken(page, number, found)

        return take

    def _before(self, name: str | None) -> Before:
        """Return what the last reading left: its size, and its order where a key tells it."""
        if self.last is None:
            return Before()
        rows = self.last.proof.rows
        try:
            manifest = self.scanner.archive.read(self.last.file)
            ordered = name is not None and manifest.key == name and manifest.stitched
            return Before(rows, self._order(manifest) if ordered else None)
        except LandingFailed:
            return Before(rows)  # without its pages there is no evidence either way

    def _order(self, manifest: Manifest) -> Seen:
        """Return the rows of a manifest's chain by place."""
        order, place = Seen(), 0
        for page, stitched in zip(manifest.pages, manifest.stitched, strict=True):
            if manifest.key is None or not stitched:
                continue
            found = keys.keys(self.scanner.archive.body(page.sha256), manifest.key)[:stitched]
            order.add((place + row, mark(each)) for row, each in enumerate(found) if each)
            place += len(found)
        return order

    def _refusal(self, chain: Chain, proof: Proof) -> PartnerSyncError | None:
        """Return why there is no manifest of what was read, None where there may be one."""
        stream = self.reading.stream
        if not proof.grade.folded:
            return NotProven(proof.sentence(stream))
        rows = sum(kept for _number, kept in chain.stitched)
        aside = sum(row < kept for page, kept in chain.stitched for row in self.aside[page])
        if aside > most(rows):
            return ContractBroken(
                f"{stream}: {aside:,} of {rows:,} rows set aside: they have no "
                f"{proof.key}, which identifies the stream's records. Nothing of this reading is "
                "folded, the last published rows stay; if the field was renamed, set key in "
                f"[streams.{stream}]."
            )
        return None

    def _pinned(self, proof: Proof) -> Proof:
        """Pin the key that a first scan found, unless another run was quicker to pin one."""
        if self.identity.known or not proof.rows:
            return proof
        ledger, connection, stream = (
            self.scanner.ledger,
            self.reading.connection,
            self.reading.stream,
        )
        pin = Pin(proof.key, self.pages.scan)
        registry.set_pin(ledger, connection, stream, pin, self.scanner.clock.now())
        return proof

    def _bind(self, chain: Chain, proof: Proof) -> ManifestRow:
        """Write the manifest: pages that belong to no chain first, then the chain in its order."""
        stitched = dict(chain.stitched)
        linked = {page.position: page for page in self.pages.linked}
        order = [number for number in linked if number not in stitched] + list(stitched)
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
        )
        manifest = self._settled(manifest)
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

    def _settled(self, manifest: Manifest) -> Manifest:
        """Store a manifest; one that a killed run stored but did not record is taken over.

        Not where a page of it was lost since, and read again.
        """
        archive = self.scanner.archive
        while True:
            there = archive.stored(manifest.file)
            if there and (there.scan, there.pages) == (manifest.scan, manifest.pages):
                return there
            if there:
                manifest = msgspec.structs.replace(manifest, number=manifest.number + 1)
                continue
            with suppress(FileExistsError):  # somebody took the number since: a lock may be lost
                archive.write(manifest)
                return manifest

    def _tell(self, *, done: bool) -> None:
        expected = self.last.proof.rows if self.last else None
        linked, reading = self.pages.linked, self.reading
        rows = inf if expected is None else max(0, expected - self.furthest)
        self.scanner.race.left[reading.stream] = rows / (linked[-1].limit if linked else 1)
        self.scanner.progress(
            Progress(reading.connection, reading.stream, len(linked), self.furthest, done, expected)
        )


def _keys(page: Page, name: str | None) -> list[bytes | None]:
    """Return what identifies the records of a page: a field, or all that they say."""
    body = page.answer.body
    return list(contents(body)) if name is None else keys.keys(body, name)

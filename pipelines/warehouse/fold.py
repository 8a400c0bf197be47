"""The fold: one manifest into the stream's tables, in one transaction.

Survey, duplicates, guard, comparison, merge: each a file of its own, here their order. A fold that
fails leaves the stream as it was; its pages stay in the archive.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from pipelines.clock import Clock
from pipelines.errors import LandingFailed
from pipelines.state.proof import Grade
from pipelines.warehouse import awaiting, history, known, meta, registry, rekey, schema
from pipelines.warehouse.archive import Archive, Manifest
from pipelines.warehouse.compare import Comparison
from pipelines.warehouse.conflicts import Conflicts
from pipelines.warehouse.database import quoted, transaction, widen
from pipelines.warehouse.decode import Decoder
from pipelines.warehouse.disappeared import Guard
from pipelines.warehouse.duplicates import Older, Readings
from pipelines.warehouse.evolution import Evolution, Policy, record
from pipelines.warehouse.known import Known, Whole
from pipelines.warehouse.merge import Merge, Merged
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.misfits import Aside
from pipelines.warehouse.pages import Pages
from pipelines.warehouse.quarantine import Ward
from pipelines.warehouse.registry import Registered
from pipelines.warehouse.schema import Kind
from pipelines.warehouse.stopped import Stops
from pipelines.warehouse.survey import Survey, staged
from pipelines.warehouse.tables import AT

INSTANT = timedelta(microseconds=1)
NOTHING = Older(0, 0), Merged(0, 0, 0, 0, 0)


@contextmanager
def _in_words(manifest: Manifest) -> Iterator[None]:
    """Let a failure of the engines be this stream's alone."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise LandingFailed(
            f"{manifest.stream}: {manifest.file} needs more memory than DuckDB may use. The stream "
            "keeps its last published rows; its pages are archived. Tables need about 1 MB a "
            "column: raise PARTNER_SYNC_MEMORY_LIMIT (`partner-sync schema` lists the columns) and "
            "run sync again."
        ) from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise LandingFailed(
            f"{manifest.stream}: {manifest.file} does not fit its tables: {error}. The stream "
            "keeps its last published rows."
        ) from error


@dataclass(frozen=True)
class Terms:
    """On which terms a manifest is folded: how much of the list may be gone, and may change.

    `wider`: a person lets it change frozen columns; `aside`: lets so many rows be set aside.
    """

    guard: Guard = field(default_factory=Guard)
    policy: Policy = Policy.EVOLVE
    wider: bool = False
    aside: int = 0


def fold(
    database: duckdb.DuckDBPyConnection,
    archive: Archive,
    manifest: Manifest,
    terms: Terms,
    clock: Clock,
) -> Fold:
    """Bring the stream's tables to what the manifest read; return what that took.

    One that was folded already changes nothing. Raises LandingFailed, with the tables unchanged.
    """
    there = meta.folded(database, manifest.file)
    if there is not None:
        return there
    night = _Night(database, archive, manifest, terms)
    with _in_words(manifest):
        survey = night.survey()
        try:
            with transaction(database):
                return night.fold(survey, clock)
        finally:
            survey.drop()


@dataclass(frozen=True)
class _Night:
    """One manifest on its way into the tables."""

    database: duckdb.DuckDBPyConnection
    archive: Archive
    manifest: Manifest
    terms: Terms

    def fold(self, survey: Survey, clock: Clock) -> Fold:
        """Bring the tables to what was surveyed."""
        manifest, database, known_rows = self.manifest, self.database, survey.known
        meta.prepare(database)
        self._evolve(survey)
        self._register(survey)
        self._widen(survey)
        older, merged = self._merged(survey, known_rows)
        ward, moment = survey.ward, self._moment
        folded = Fold(
            number=meta.next_number(database, manifest.stream),
            run=manifest.run,
            connection=manifest.connection,
            stream=manifest.stream,
            manifest=manifest.file,
            day=manifest.day,
            grade=self._grade,
            ended_at=moment,
            read=manifest.rows,
            duplicates=older.count + ward.readings - len(ward.records),
            conflicts=older.conflicts,
            quarantined=len(ward.records) + older.conflicts,
            rows=len(known_rows.ids) + merged.added - merged.gone,
            added=merged.added,
            changed=merged.changed,
            restated=merged.restated,
            gone=merged.gone,
            missing=merged.missing,
            folded_at=clock.now(),
        )
        ward.store(database, moment)
        if older.conflicts:
            Conflicts(survey, _key(survey, manifest)).store(moment)
        meta.record(database, folded)
        awaiting.forget(database, manifest.connection, manifest.stream)
        meta.verify(database, {(folded.connection, folded.stream): folded})
        return folded

    @property
    def _grade(self) -> Grade:
        return self.manifest.proof.grade if self.manifest.proof else Grade.NOT_PROVEN

    @cached_property
    def _moment(self) -> datetime:
        """Return when this becomes known: when the list was read to its end, and never earlier.

        A clock that was set back must not let a version end before it began.
        """
        last = meta.newest(self.database, self.manifest.connection, self.manifest.stream)
        ended = self.manifest.ended_at
        return ended if last is None else max(ended, last.ended_at + INSTANT)

    def survey(self) -> Survey:
        """Look every record up and stage what is new."""
        manifest = self.manifest
        evolution = self._evolution()
        decoder = Decoder(evolution.before, manifest.key, evolution.rules)
        pages = Pages(self.archive, manifest, decoder)
        known_rows = known.known(self.database, manifest.stream, manifest.connection)
        ward = Ward(manifest, self.terms.aside)
        survey = Survey(self.database, pages, ward, known_rows, evolution.given)
        survey.take()
        return survey

    @cached_property
    def _registered(self) -> Registered | None:
        """What the stream's tables were before this manifest."""
        return registry.registered(self.database, self.manifest.stream)

    def _evolution(self, aside: Aside | None = None) -> Evolution:
        """Return how the manifest may change the stream's columns, as they are registered."""
        manifest, terms = self.manifest, self.terms
        there = self._registered
        shape = schema.EMPTY if there is None else schema.from_json(there.shape)
        before = schema.identified_by(shape, manifest.key)
        given = {} if there is None else there.names
        return Evolution(manifest, before, given, terms.policy, terms.wider, aside or Aside())

    def _evolve(self, survey: Survey) -> None:
        """Say what changes about the columns; hold the manifest back where they are frozen."""
        evolution = self._evolution(survey.aside)
        shape, names = survey.pages.decoder.shape, survey.names.given
        changes = evolution.changes(shape, names, self._moment)
        evolution.judge(changes)
        record(self.database, changes)

    def _register(self, survey: Survey) -> None:
        """Register the shape where it grew."""
        stream, moment = self.manifest.stream, self._moment
        wider = Registered(schema.to_json(survey.pages.decoder.shape), survey.names.given)
        if wider != self._registered:
            registry.register(self.database, stream, wider, self.manifest.file, moment)

    def _widen(self, survey: Survey) -> None:
        self.database.execute("CREATE SCHEMA IF NOT EXISTS current")
        self._rekey(survey)
        for name in survey.tables:
            own = self.database.sql(f"SELECT * EXCLUDE ({AT}) FROM {staged(name)} LIMIT 0")
            widen(self.database, quoted("current", name), own.to_arrow_table())
        children = [name for name in survey.names.children() if name in survey.tables]
        history.prepare(self.database, self.manifest.stream, children)

    def _rekey(self, survey: Survey) -> None:
        """Let the rows that there are keep their keys where these are text from now on."""
        key = self.manifest.key
        field = survey.pages.decoder.shape.fields.get(key) if key is not None else None
        if field is not None and field.kind is Kind.KEY:
            every = [self.manifest.stream, *survey.names.children()]
            rekey.spell(self.database, every, _key(survey, self.manifest))

    def _merged(self, survey: Survey, known_rows: Known) -> tuple[Older, Merged]:
        manifest, database = self.manifest, self.database
        key = _key(survey, manifest)
        if key not in _columns(database, staged(manifest.stream)):
            survey.ward.judge(0)  # no record ever was sound: there is nothing to tell apart
            return NOTHING
        readings = Readings(survey, manifest.stream, manifest.connection, key)
        older = readings.settle()
        survey.ward.judge(manifest.rows - older.count - older.conflicts - survey.ward.readings)
        absent = readings.absent()
        # What a partial reading lacks was not looked at: it is neither gone nor without a column.
        gone = absent[:0] if self._grade is Grade.PARTIAL else absent
        self._judge(known_rows, gone)
        self._compare(survey, key)
        record(database, Stops(survey, key, gone, self._moment).changes())
        names = survey.names.children()
        own = [name for name in names if name in survey.tables]
        merge = Merge(database, manifest.stream, manifest.connection, key, names, own)
        counts = self._grade.counts_missing and not survey.ward.nameless
        merged = merge.apply(self._moment, manifest.day, absent, counts_missing=counts)
        history.show(database, manifest.stream, own, key)
        return older, merged

    def _judge(self, known_rows: Known, absent: Whole) -> None:
        """Hold a manifest back that lacks too much of what was there."""
        table, connection = quoted("current", self.manifest.stream), self.manifest.connection
        missing = self.database.execute(
            f"SELECT rowid FROM {table} WHERE _connection = ? AND missing_since IS NOT NULL",
            [connection],
        ).fetchnumpy()["rowid"]
        gone = len(np.setdiff1d(absent, np.asarray(missing, np.int64)))
        self.terms.guard.judge(self.manifest, len(known_rows.ids) - len(missing), gone)

    def _compare(self, survey: Survey, key: str) -> None:
        manifest = self.manifest
        if manifest.key is None:  # all that a record says is its key: none ever changes
            self.database.execute(
                "CREATE OR REPLACE TEMP TABLE fold_changed (id BIGINT, reading BIGINT, why VARCHAR)"
            )
            return
        counts = defaultdict[str, set[str]](set)
        for table, names in survey.names.given.items():
            for leaf, name in names.items():
                counts[table] |= {name} if json.loads(leaf)[-1] == "__count" else set()
        Comparison(
            self.database,
            self.archive,
            manifest.stream,
            manifest.connection,
            key,
            survey.tables,
            counts,
        ).changed()


def _key(survey: Survey, manifest: Manifest) -> str:
    """Return the column that identifies a row."""
    if manifest.key is None:
        return "_key"
    return survey.names.column(manifest.stream, (manifest.key,), "", set())


def _columns(database: duckdb.DuckDBPyConnection, table: str) -> list[Any]:
    return [name for name, *_rest in database.execute(f"DESCRIBE {table}").fetchall()]

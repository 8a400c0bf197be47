"""What a manifest changes about a stream's columns, and whether the stream's policy lets it.

`evolve`: it may, and it is said. `freeze`: it is held back until a person accepts. `discard`: what
has no column is left out and counted. Every change is a row of `meta.schema_changes`. Not here: how
a shape grows (schema, room).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum

import duckdb

from pipelines.api.problem import cleaned
from pipelines.state.decisions import Kind
from pipelines.warehouse.archive import Manifest
from pipelines.warehouse.awaiting import Awaited
from pipelines.warehouse.columns import BESIDE, Given, Source, Where, json_path, sources, types
from pipelines.warehouse.database import exists, fill
from pipelines.warehouse.misfits import Aside, Path
from pipelines.warehouse.room import Rules
from pipelines.warehouse.schema import Shape

SHOWN = 5  # changes named where a manifest is held back
TABLE = """
CREATE TABLE IF NOT EXISTS meta.schema_changes (
    stream VARCHAR, table_name VARCHAR, column_name VARCHAR, path VARCHAR, what VARCHAR,
    before VARCHAR, after VARCHAR, count BIGINT, manifest VARCHAR, happened_at TIMESTAMPTZ,
    place BIGINT
)
"""


class Policy(StrEnum):
    """What a stream's manifests may do to its columns."""

    EVOLVE = "evolve"
    FREEZE = "freeze"
    DISCARD = "discard"


class What(StrEnum):
    """What happened to a column."""

    NEW = "new"
    WIDENED = "widened"
    TEXT = "text"  # values that do not fit their column are kept beside it
    DISCARDED = "discarded"
    STOPPED = "stopped"  # no record has it any more
    PARTLY = "partly"  # no record has it from a place in the list on
    BACK = "back"


@dataclass(frozen=True)
class Change:
    """One change: `before` and `after` are types; `count` the values that it is about.

    `place` is where in the list a column ends that only a part of the records has.
    """

    stream: str
    table: str
    column: str
    path: str
    what: What
    before: str
    after: str
    count: int
    manifest: str
    happened_at: datetime
    place: int | None = None

    @property
    def words(self) -> str:
        """The change in a sentence's part."""
        name = f"{self.table}.{self.column}" if self.column else self.path
        words = {
            What.NEW: f"{name} is new ({self.after})",
            What.WIDENED: f"{name} was {self.before} and is {self.after}",
            What.TEXT: f"{name} holds {self.count:,} values of {self.path} that fit no column",
            What.DISCARDED: f"{self.count:,} values of {self.path} were left out",
            What.STOPPED: f"{name} is in no record any more; {self.count:,} had it",
            What.PARTLY: f"{name} is in none of {self.count:,} records from offset {self.place} on",
            What.BACK: f"{name} is back, in {self.count:,} records",
        }
        return words[self.what]


@dataclass(frozen=True)
class Evolution:
    """How one manifest makes a stream's shape grow from `before`, under the stream's policy.

    `accepted`: a person said that this manifest may. `key` identifies the records.
    """

    manifest: Manifest
    before: Shape
    given: Given
    policy: Policy = Policy.EVOLVE
    accepted: bool = False
    aside: Aside = field(default_factory=Aside)

    @property
    def rules(self) -> Rules:
        """How much wider the manifest's pages may make the shape."""
        key = self.manifest.key
        if self.policy is Policy.DISCARD and self.before.fields and not self.accepted:
            return Rules(self.before, new=0, rest=False, key=key)
        return Rules(self.before, key=key, rekey=self.accepted)

    def changes(self, after: Shape, given: Given, at: datetime) -> tuple[Change, ...]:
        """Return what changes; `given` are the names of the paths, the new ones among them."""
        stream, key = self.manifest.stream, self.manifest.key
        old = types(self.before, stream, key, self.given) if self.given else {}
        new = types(after, stream, key, given)
        known = sources(stream, given)
        found = [*self._columns(old, new, known, at)]
        found += self._beside(known, at)
        return tuple(found)

    def judge(self, changes: Sequence[Change]) -> None:
        """Raise Awaited where the policy holds a manifest back for what it changes."""
        frozen = self.policy is Policy.FREEZE and self.before.fields and not self.accepted
        if not frozen or not changes:
            return
        shown = "; ".join(each.words for each in changes[:SHOWN])
        more = f"; and {len(changes) - SHOWN:,} more" if len(changes) > SHOWN else ""
        words = f"its columns are frozen, and {self.manifest.file} changes them: {cleaned(shown)}"
        raise Awaited(Kind.SCHEMA, self.manifest, len(changes), f"{words}{more}.")

    def _change(self, where: Where, source: str, what: What, at: datetime) -> Change:
        return Change(self.manifest.stream, *where, source, what, "", "", 0, self.manifest.file, at)

    def _columns(
        self,
        old: Mapping[Where, str],
        new: Mapping[Where, str],
        known: Mapping[Where, Source],
        at: datetime,
    ) -> Iterator[Change]:
        for where, kind in new.items():
            before, source = old.get(where), known[where]
            if before is None and source.ending not in BESIDE:
                yield replace(self._change(where, source.path, What.NEW, at), after=kind)
            elif before is not None and before != kind:
                change = self._change(where, source.path, What.WIDENED, at)
                yield replace(change, before=before, after=kind)

    def _beside(self, known: Mapping[Where, Source], at: datetime) -> Iterator[Change]:
        """Yield what has no column of its own, with the number of its values."""
        beside = {each.path: where for where, each in known.items() if each.ending == "__text"}
        rests = {each.path: where for where, each in known.items() if each.ending == "_rest"}
        for path, count in sorted(self.aside.kept.items()):
            shown = json_path(path)
            where = beside.get(shown) or _nearest(path, rests)
            yield replace(self._change(where, shown, What.TEXT, at), after="VARCHAR", count=count)
        for path, count in sorted(self.aside.left_out.items()):
            nowhere = (self.manifest.stream, "")
            change = self._change(nowhere, json_path(path), What.DISCARDED, at)
            yield replace(change, count=count)


def _nearest(path: Path, rests: Mapping[str, Where]) -> Where:
    """Return the column that holds the rest of the table in whose rows a path lies."""
    roots = (json_path(path[:end]) for end in range(len(path), -1, -1))
    return next(rests[root] for root in roots if root in rests)


def record(database: duckdb.DuckDBPyConnection, changes: Sequence[Change]) -> None:
    """Add changes to `meta.schema_changes`."""
    prepare(database)
    if changes:
        fill(database, "meta.schema_changes", [astuple(each) for each in changes])


def prepare(database: duckdb.DuckDBPyConnection) -> None:
    """Let there be the table of changes."""
    database.execute("CREATE SCHEMA IF NOT EXISTS meta")
    database.execute(TABLE)


def recorded(
    database: duckdb.DuckDBPyConnection, stream: str | None = None, manifest: str | None = None
) -> list[Change]:
    """Return the changes of a stream, of a manifest, or all, in their order."""
    if not exists(database, "meta", "schema_changes"):
        return []
    rows = database.execute(
        "SELECT * FROM meta.schema_changes "
        "WHERE coalesce(stream = $stream, true) AND coalesce(manifest = $manifest, true) "
        "ORDER BY rowid",
        {"stream": stream, "manifest": manifest},
    ).fetchall()
    names = [each.name for each in fields(Change)]
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [Change(**{**each, "what": What(each["what"])}) for each in found]

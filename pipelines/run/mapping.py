"""The mapping of fields to roles: proposed from what is published, accepted by a person, checked.

Here: the proposal beside the mapping.toml there is, and writing one. Not here: how roles are found
(roles, proposing), how the file is read (settings.mapping).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import duckdb

from pipelines.errors import ConfigurationError, StorageFailed
from pipelines.reconciliation import RULES
from pipelines.run import fields, hints, roles
from pipelines.run.fields import Fields
from pipelines.run.proposing import Proposal
from pipelines.run.session import Session
from pipelines.settings import mapping as file_of
from pipelines.settings.mapping import FILE
from pipelines.settings.mapping import Mapping as Roles
from pipelines.warehouse import published
from pipelines.warehouse.store import appear

STREAMS = ("partners", "usage", "billing")


@dataclass(frozen=True)
class Proposed:
    """What is proposed for a published version, and how the mapping in force compares.

    `mapping` is what accepting would write: a person's own roles where none is proposed, and their
    time zone, keys and tolerances, stay. `wrong` are paths in force that no table has.
    """

    version: str
    proposals: tuple[Proposal, ...]
    present: Roles
    there: bool
    mapping: Roles
    wrong: tuple[str, ...]

    @property
    def changes(self) -> list[str]:
        """Say what accepting would change."""
        before, after = paths(self.present), paths(self.mapping)
        return [
            f"{role}: {before[role] or 'not mapped'} -> {after[role] or 'not mapped'}"
            for role in hints.HINTS
            if before[role] != after[role]
        ]


@dataclass(frozen=True)
class Accepted:
    """What accepting did: the file, whether it was written, and what is different in it."""

    file: Path
    written: bool
    changes: tuple[str, ...]


def propose(session: Session) -> Proposed:
    """Propose a role for every field of the published version that shows one.

    Raises NothingPublished before the first sync, ConfigurationError for a mapping.toml that cannot
    be read.
    """
    home = session.settings.place
    present = file_of.load(home.config)
    with published.opened(home) as source:
        streams = _streams(source.database, present.mapping)
        found = roles.proposed(source.database, streams)
        version = source.version
    wrong = tuple(wrong_paths(present.mapping, streams))
    merged = _merged(found, present.mapping, streams)
    there = (home.config / FILE).exists()
    return Proposed(version, tuple(found), present.mapping, there, merged, wrong)


def accept_mapping(session: Session, proposed: Proposed, by: str, *, anew: bool) -> Accepted:
    """Write mapping.toml as proposed; `anew` where another one may be replaced.

    Raises ConfigurationError, and writes nothing, where a different one is there.
    """
    file = session.settings.place.config / FILE
    changes = tuple(proposed.changes)
    if proposed.there and not changes:
        return Accepted(file, written=False, changes=())
    if proposed.there and not anew:
        told = "; ".join(changes)
        raise ConfigurationError(
            f"{file} says something else, and stays as it is ({told}). To replace it: partner-sync "
            "map --accept --replace; your time zone, keys and tolerances stay."
        )
    if not any(each.path for each in proposed.proposals):
        raise ConfigurationError("no role was found in what is published: nothing was written")
    now = session.clock.now()
    head = f"# Proposed by partner-sync map from version {proposed.version}; accepted by {by},"
    _write(file, f"{head}\n# {now:%Y-%m-%d %H:%M} UTC.\n{rendered(proposed.mapping)}")
    return Accepted(file, written=True, changes=changes)


def needing(role: str) -> list[str]:
    """Return the rules that are not evaluated without a role."""
    return [rule.name for rule in RULES if role in rule.needs]


def wrong_paths(mapping: Roles, streams: Mapping[str, Fields]) -> Iterator[str]:
    """Say of every path that its stream does not have, which one may be meant."""
    for role, path in paths(mapping).items():
        of = streams[role.partition(".")[0]]
        if path is None or not of.found or of.at(path) is not None:
            continue
        near = get_close_matches(path, [each.path for each in of.found], n=1, cutoff=0.5)
        meant = f"; is {near[0]} meant?" if near else ""
        yield f"{FILE}, {role}: no field {path} in current.{of.stream}{meant}"


def paths(mapping: Roles) -> dict[str, str | None]:
    """Return the path of every role, None where it is not mapped: `usage.partner`."""
    return {
        role: getattr(getattr(mapping, owner), noun)
        for role in hints.HINTS
        for owner, _, noun in [role.partition(".")]
    }


def rendered(mapping: Roles) -> str:
    """Return a mapping as TOML; what is as usual is left out, but for time zone and grace."""
    lines = [f"time_zone = {_text(mapping.time_zone)}", f"grace_days = {mapping.grace_days}"]
    for owner in STREAMS:
        table = getattr(mapping, owner)
        values = table.model_dump(exclude_none=True, exclude_defaults=True)
        lines += _table(owner, values)
    if mapping.match.keys:
        lines += _table("match", {"keys": list(mapping.match.keys)})
    tolerance = mapping.tolerance.model_dump(exclude_defaults=True)
    shown = {name: each if isinstance(each, int) else str(each) for name, each in tolerance.items()}
    return "\n".join([*lines, *_table("tolerance", shown), ""])


def _table(name: str, values: Mapping[str, object]) -> list[str]:
    if not values:
        return []
    return ["", f"[{name}]", *(f"{key} = {_text(value)}" for key, value in values.items())]


def _text(value: object) -> str:
    """Write a text, a whole number or a list of texts: JSON and TOML write them alike."""
    return json.dumps(value, ensure_ascii=False)


def _streams(database: duckdb.DuckDBPyConnection, mapping: Roles) -> dict[str, Fields]:
    return {name: fields.read(database, getattr(mapping, name).stream) for name in STREAMS}


def _merged(found: list[Proposal], present: Roles, streams: Mapping[str, Fields]) -> Roles:
    """Return the mapping in force with what is proposed; a person's other roles stay if they can.

    A role of a list that was not read stays too: nothing speaks against it.
    """
    before = paths(present)
    tables = present.model_dump(exclude_defaults=True)
    for each in found:
        owner, _, noun = each.role.partition(".")
        old, of = before[each.role], streams[owner]
        kept = old if old and (not of.found or of.at(old)) else None
        tables.setdefault(owner, {})[noun] = each.path or kept
    return Roles.model_validate(tables)


def _write(file: Path, text: str) -> None:
    """Let the file appear whole, for its owner alone."""
    try:
        appear(file, text.encode())
    except OSError as error:
        raise StorageFailed(
            f"{file} cannot be written: {error.strerror}; what was there is as it was"
        ) from None

"""What changed between two interface descriptions, and what it means for who reads the lists.

Here: lists, their bounds, parameters and fields. Not here: texts and examples, which change
nothing; other operations, which are not read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pipelines.api.description import PAGING, Description, Operation, Parameter
from pipelines.api.fields import Schema
from pipelines.api.problem import cleaned

MOST = 1_000  # rows of one comparison: another service's description has nothing in common


class Meaning(StrEnum):
    """What a change asks of people."""

    SAFE = "safe"  # nothing: it lands by itself
    BREAKING = "breaking"  # somebody has to look
    OPPORTUNITY = "opportunity"  # something can be had that could not


@dataclass(frozen=True)
class Change:
    """One difference; `what` names the same thing whichever of two descriptions is the older."""

    path: str
    what: str
    before: str
    after: str
    meaning: Meaning


def between(older: Description, newer: Description) -> tuple[Change, ...]:
    """Return what differs in the lists of two descriptions, a thousand differences at most."""
    before, after = older.lists, newer.lists
    found = [
        change
        for path in sorted(before.keys() | after.keys())
        for change in _operation(path, before.get(path), after.get(path))
    ]
    if len(found) > MOST:
        rest = f"{len(found) - MOST + 1:,} more"
        found[MOST - 1 :] = [Change("", "other differences", "", rest, Meaning.BREAKING)]
    return tuple(map(_printable, found))


def _printable(change: Change) -> Change:
    """Return a change without control characters: its words are somebody else's."""
    path, what = cleaned(change.path), cleaned(change.what)
    return Change(path, what, cleaned(change.before), cleaned(change.after), change.meaning)


def _operation(path: str, older: Operation | None, newer: Operation | None) -> Iterator[Change]:
    if older is None or newer is None:
        there = Meaning.OPPORTUNITY if older is None else Meaning.BREAKING
        yield Change(path, "list", _offered(older), _offered(newer), there)
        return
    if older.surface != newer.surface:
        surfaces = older.surface or "not said", newer.surface or "not said"
        yield Change(path, "surface", *surfaces, Meaning.BREAKING)
    yield from _bounds(path, older, newer)
    yield from _parameters(path, older, newer)
    yield from _fields(path, older.item or Schema(), newer.item or Schema(), "")


def _offered(operation: Operation | None) -> str:
    return "" if operation is None else f"offered ({operation.surface or 'surface not said'})"


def _bounds(path: str, older: Operation, newer: Operation) -> Iterator[Change]:
    before, after = older.largest, newer.largest
    if before == after:
        return
    meaning = Meaning.SAFE
    if before is not None and after is not None:
        meaning = Meaning.OPPORTUNITY if after > before else Meaning.BREAKING
    yield Change(path, "largest limit", str(before or ""), str(after or ""), meaning)


def _parameters(path: str, older: Operation, newer: Operation) -> Iterator[Change]:
    before, after = _by_name(older), _by_name(newer)
    for name in sorted(before.keys() | after.keys()):
        there, now = before.get(name), after.get(name)
        if _demand(there) != _demand(now):
            what = f"parameter {name}"
            yield Change(path, what, _demand(there), _demand(now), _parameter(name, there, now))


def _by_name(operation: Operation) -> dict[str, Parameter]:
    return {f"{each.name} ({each.place})": each for each in operation.parameters}


def _demand(parameter: Parameter | None) -> str:
    if parameter is None:
        return ""
    return "required" if parameter.required else "optional"


def _parameter(name: str, older: Parameter | None, newer: Parameter | None) -> Meaning:
    """Say what it means: paging that is gone and what is newly required break, filters can help."""
    if newer is None:
        gone = name in {f"{each} (query)" for each in PAGING}
        return Meaning.BREAKING if gone else Meaning.SAFE
    if newer.required:
        return Meaning.BREAKING
    return Meaning.SAFE if older else Meaning.OPPORTUNITY


def _fields(path: str, older: Schema, newer: Schema, inside: str) -> Iterator[Change]:
    """Compare two objects' fields, those inside them too."""
    for name in sorted(older.fields.keys() | newer.fields.keys()):
        there, now = older.fields.get(name), newer.fields.get(name)
        what = f"field {inside}{name}"
        if there is None or now is None:
            meaning = Meaning.SAFE if there is None else Meaning.BREAKING
            yield Change(path, what, _words(there), _words(now), meaning)
            continue
        if there.words != now.words:
            yield Change(path, f"type of {what}", there.words, now.words, Meaning.BREAKING)
        before, after = presence(older, name), presence(newer, name)
        if before != after:
            yield Change(path, f"presence of {what}", before, after, Meaning.SAFE)
        yield from _fields(path, there, now, f"{inside}{name}.")
        items = there.item or Schema(), now.item or Schema()
        yield from _fields(path, *items, f"{inside}{name}[].")


def presence(owner: Schema, name: str) -> str:
    """Say whether a field of an object is always there."""
    nullable = owner.fields[name].nullable
    if name in owner.required:
        return "may be null" if nullable else "always there"
    return "may be missing or null" if nullable else "may be missing"


def _words(schema: Schema | None) -> str:
    return "" if schema is None else schema.words

"""The interface description in a run: found before the lists are read, remembered, applied.

Here: what it changes about a run. Not here: how it is found and read (api.interface), how what was
read is compared with it (warehouse.differences).
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date

import duckdb

from pipelines import streams
from pipelines.api import changes, description, interface
from pipelines.api.client import Client
from pipelines.api.description import Description, Operation
from pipelines.api.fields import Schema
from pipelines.api.interface import Found
from pipelines.errors import ContractBroken
from pipelines.run.session import Session
from pipelines.settings import Connection
from pipelines.state import descriptions, journal
from pipelines.state.descriptions import Difference, Seen, SeenChange
from pipelines.streams.base import Stream
from pipelines.warehouse import differences, registry, schema
from pipelines.warehouse import interface as telling
from pipelines.warehouse.meta import Fold

SCALARS = frozenset({"string", "integer", "number"})


async def look(session: Session, service: Client, connection: Connection) -> Found:
    """Find the description and remember it; where there is none, say that the document holds."""
    found = await interface.find(service, session.settings.description_path)
    if found.description is None:
        session.watch.waiting(found.words)
    else:
        base = service.address.path
        for each in await asyncio.to_thread(_remember, session, connection.name, found, base):
            session.watch.waiting(f"the interface changed: {each}")
    return found


def _remember(session: Session, connection: str, found: Found, base: str) -> list[SeenChange]:
    """Record a description; return what changed since the last one."""
    ledger, now = session.ledger, session.clock.now()
    seen, older = descriptions.latest(ledger, connection), last(session, connection)
    newer = found.description
    changed = changes.between(older, newer) if older and newer else ()
    if seen is not None and not changed:
        again = replace(seen, body=found.body, base=base, last_seen_at=now)
        descriptions.again(ledger, again)
        return []
    names = {stream.path: stream.name for stream in streams.known(session.settings)}
    rows = [
        SeenChange(
            connection=connection,
            stream=names.get(each.path),
            path=each.path,
            what=each.what,
            before=each.before,
            after=each.after,
            meaning=each.meaning,
            first_seen_at=now,
        )
        for each in changed
    ]
    number = seen.number + 1 if seen else 1
    descriptions.add(ledger, Seen(connection, number, found.body, base, now, now), rows)
    return rows


def last(session: Session, connection: str) -> Description | None:
    """Return the description that was seen last; None where none was, or none that can be read."""
    seen = descriptions.latest(session.ledger, connection)
    try:
        return description.read(seen.body, seen.base) if seen else None
    except ContractBroken:
        return None


def described(session: Session, known: Iterable[Stream], found: Found) -> tuple[Stream, ...]:
    """Return streams with what the description says of them: largest page, key, text."""
    lists = found.description.lists if found.description else {}
    return tuple(
        _described(stream, lists[stream.path], session.settings.stream(stream.name).limit)
        if stream.path in lists
        else stream
        for stream in known
    )


def _described(stream: Stream, operation: Operation, limit: int | None) -> Stream:
    item = operation.item or Schema()
    keys = [name for name in stream.key_candidates if _identifies(item, name)]
    return replace(
        stream,
        limit=operation.largest or stream.limit,
        likely_key=keys[0] if keys else None,
        description=operation.text or stream.description,
    ).within(limit)


def _identifies(item: Schema, name: str) -> bool:
    """Tell whether a described field is a scalar that is always there."""
    field = item.fields.get(name)
    return name in item.required and field is not None and SCALARS >= field.types > frozenset()


def changed(session: Session, connection: str, days: Collection[date]) -> tuple[SeenChange, ...]:
    """Return what was first seen to have changed on some days, UTC."""
    every = descriptions.changes(session.ledger, connection)
    return tuple(each for each in every if each.first_seen_at.date() in days)


def differing(session: Session, connection: str) -> tuple[Difference, ...]:
    """Return where the last reading of each stream is not as described."""
    return descriptions.differences(session.ledger, connection)


def compare(session: Session, writer: duckdb.DuckDBPyConnection, fold: Fold) -> None:
    """Give a stream's tables their comments, and record where its rows are not as described.

    That is recorded of a list's newest reading only: an older one is folded again for a replay or a
    base snapshot, and would take its place.
    """
    paths = {stream.name: stream.path for stream in streams.known(session.settings)}
    seen = last(session, fold.connection)
    operation = seen.lists.get(paths.get(fold.stream, "")) if seen else None
    known = registry.registered(writer, fold.stream)
    newest = journal.newest(session.ledger, fold.stream, fold.connection)
    older = newest is not None and newest.file != fold.manifest
    if operation is None or operation.item is None or known is None:
        if not older:
            descriptions.differ(session.ledger, fold.connection, fold.stream, ())
        return
    telling.comment(writer, known.names, fold.stream, operation)
    if older:
        return
    counts = differences.count(writer, known.names, fold.stream, fold.connection)
    found = differences.between(operation.item, schema.from_json(known.shape), counts)
    rows = [
        Difference(
            fold.connection,
            fold.stream,
            each.field,
            each.what,
            each.described,
            each.found,
            fold.manifest,
            fold.folded_at,
        )
        for each in found
    ]
    descriptions.differ(session.ledger, fold.connection, fold.stream, rows)

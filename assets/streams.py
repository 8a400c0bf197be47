"""The streams that assets are made of: the shelf's and the settings', known without a network."""

from collections.abc import Callable, Collection

import dagster as dg

from pipelines import settings, streams
from pipelines.settings import Connection
from pipelines.streams.base import Stream

STREAMS = streams.known(settings.load())


def chosen(
    context: dg.AssetExecutionContext, *keys: Callable[[str], dg.AssetKey]
) -> tuple[Stream, ...]:
    """Return the streams of which a run selected an asset under any of these keys."""
    selected = context.selected_asset_keys
    return tuple(each for each in STREAMS if any(key(each.name) in selected for key in keys))


def opened(connection: Connection, among: tuple[Stream, ...] = STREAMS) -> tuple[Stream, ...]:
    """Return the streams that a connection's credentials open: those of its surface."""
    return tuple(each for each in among if each.surface == connection.surface)


def foreign(
    context: dg.AssetExecutionContext, key: Callable[[str], dg.AssetKey], there: Collection[str]
) -> list[dg.MaterializeResult[None]]:
    """Return what is said of selected streams that no connection of the run opens, unlike `there`.

    Left out, they would be skipped, and with them everything behind them.
    """
    words = "not read: of another surface than the connection's"
    return [
        dg.MaterializeResult(asset_key=key(each.name), metadata={"status": words})
        for each in chosen(context, key)
        if each.name not in there
    ]

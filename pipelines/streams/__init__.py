"""The lists we read: those of the interface document, one file each, and those of the settings.

To add one that the document shows: a new file here that declares one `Stream`. Any other list is
switched on in settings.toml with its path. Fetching, landing, assets and the command line derive
from `known(settings)`, so that they need no network to know what there is.
"""

from pipelines.errors import ConfigurationError
from pipelines.settings import Settings, StreamSettings, Surface
from pipelines.shelf import members
from pipelines.streams.base import Stream, configured, fits_a_table

STREAMS = members(__name__, __path__, Stream)


def known(settings: Settings, surface: Surface | None = None) -> tuple[Stream, ...]:
    """Return every stream, or those of one surface, by name.

    Raises ConfigurationError for a stream in the settings that cannot be read or landed.
    """
    shelf = {stream.name: stream for stream in STREAMS}
    added = {name: each for name, each in settings.streams.items() if name not in shelf}
    for name, each in settings.streams.items():
        _check(name, each, known=name in shelf)
    streams = [stream.within(settings.stream(stream.name).limit) for stream in STREAMS]
    streams += [configured(name, each) for name, each in sorted(added.items())]
    _check_paths(streams)
    return tuple(stream for stream in streams if surface in {None, stream.surface})


def _check(name: str, settings: StreamSettings, *, known: bool) -> None:
    where = f"[streams.{name}]"
    if known and settings.path is not None:
        raise ConfigurationError(f"{where}: the path of {name} is known and cannot be set")
    if not known and settings.path is None:
        raise ConfigurationError(
            f"{where}: no stream of that name is known; a list that is to be read under it needs "
            'its path, as path = "/v2/plans" (partner-sync discover shows what there is)'
        )
    if not fits_a_table(name):
        raise ConfigurationError(
            f"{where}: its tables cannot be called so; use small letters, digits and single _, "
            "40 at most, a letter first, and not _seen at the end"
        )


def _check_paths(streams: list[Stream]) -> None:
    """Refuse to read one list under two names: its records would be there twice."""
    names: dict[str, str] = {}
    for stream in streams:
        if stream.path in names:
            raise ConfigurationError(
                f"[streams.{stream.name}]: {stream.path} is read as {names[stream.path]} already"
            )
        names[stream.path] = stream.name

"""How an asset introduces itself: group, kinds, owners, tags, code version, description, links.

Derived from the streams and the settings, without a network and without opening the warehouse: it
is made whenever definitions load. Columns are known after a fold, and told then (tables).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import dagster as dg

import pipelines
from pipelines import settings, streams
from pipelines.streams.base import Stream

_settings = settings.load()
CODE = Path(pipelines.__file__).parent
DOCS = CODE.parent / "docs"
OWNERS = [each.strip() for each in _settings.owners.split(",")]
WORDS = {
    "archive": "Its pages as they were received, and the manifest that lists them in order.",
    "current": "One row for each record, as it was read last, typed to the last digit.",
    "history": "Every version of every record, with the time in which it held (SCD type 2).",
    "reports": "A table of the published file; what is summed here names no partner.",
    "published": "All streams at once; a version is copied, verified and swapped in whole.",
}
PAGES = {
    "archive": "architecture.md",
    "current": "analysts.md",
    "history": "analysts.md",
    "published": "analysts.md",
    "reports": "reports.md",
}
FLOORS = {
    "archive": ("api", "streams", "state", "run"),
    "current": ("warehouse", "run"),
    "history": ("warehouse", "run"),
    "published": ("warehouse", "run"),
    "reports": ("reconciliation", "reports"),
}


@dataclass(frozen=True)
class Place:
    """Where what an asset is of lies; `table` where DuckDB has one."""

    uri: str
    table: str = ""


def key(schema: str, name: str) -> dg.AssetKey:
    """Return the key of an asset: the schema and the table of DuckDB."""
    return dg.AssetKey([schema, name])


def of_stream(
    schema: str, stream: Stream, kinds: set[str], deps: Iterable[dg.AssetKey] = ()
) -> dg.AssetSpec:
    """Return what Dagster is told of a stream's asset in one schema."""
    page = f"`GET {stream.path}`, {stream.limit:,} records a page at most"
    return dg.AssetSpec(
        key(schema, stream.name),
        deps=list(deps),
        description=f"{stream.description}\n\n{WORDS[schema]} Read with {page}.",
        group_name=schema,
        kinds=kinds,
        owners=OWNERS,
        tags={"stream": stream.name, "surface": stream.surface},
        code_version=code_version(FLOORS[schema]),
        metadata=metadata(schema, _place(schema, stream), [_declared(stream)]),
        skippable=True,
    )


def metadata(schema: str, place: Place, files: Sequence[Path] = ()) -> dict[str, object]:
    """Return where an asset lies, and the links to its docs and to what declares it."""
    named = {"dagster/table_name": place.table} if place.table else {}
    links = [_link(each, each.name) for each in files] + _docs(schema)
    references = dg.CodeReferencesMetadataValue(code_references=links)
    return {"dagster/uri": place.uri, "dagster/code_references": references, **named}


@cache
def code_version(floors: tuple[str, ...]) -> str:
    """Return a digest of the code that makes an asset: nobody has to remember to raise a number.

    The code is read once, however many assets are made of it.
    """
    digest = sha256()
    for floor in floors:
        for file in sorted((CODE / floor).glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _place(schema: str, stream: Stream) -> Place:
    home = _settings.place
    if schema == "archive":
        return Place((home.archive / "manifests").as_uri())
    return Place(home.address, f"{schema}.{stream.name}")


def _declared(stream: Stream) -> Path:
    """Return the file that declares a stream: the shelf's, else the settings."""
    shelf = Path(streams.__file__).with_name(f"{stream.name}.py")
    return shelf if shelf.is_file() else _settings.place.config / "settings.toml"


Link = dg.LocalFileCodeReference | dg.UrlCodeReference


def _link(file: Path, label: str) -> Link:
    return dg.LocalFileCodeReference(file_path=str(file), line_number=1, label=label)


def _docs(schema: str) -> list[Link]:
    """Return the link to the docs: where they are published, else in the checkout."""
    page = PAGES[schema]
    if _settings.docs_url:
        return [dg.UrlCodeReference(url=f"{_settings.docs_url}/{page}", label="docs")]
    file = DOCS / page
    return [_link(file, "docs")] if file.is_file() else []

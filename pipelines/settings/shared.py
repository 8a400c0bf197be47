"""Where several machines keep what they share: PostgreSQL, an object store, a lake.

Here: what such an address may say, none of it a secret. Not here: who connects (state, warehouse).
"""

import re
import shlex
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from pydantic import AfterValidator

from pipelines.errors import ConfigurationError
from pipelines.settings.values import PREFIX

DRIVER = "postgresql+psycopg2"
LAKE = "ducklake:postgres:"
SECRETS = {"password", "sslpassword"}
UNSIGNED = (
    "must hold no password: PostgreSQL's own variables give it (PGPASSWORD, PGPASSFILE, "
    "PGSERVICEFILE)"
)
NO_KEYS = "must hold no user or key: the store's own variables give it (AWS_ACCESS_KEY_ID, …)"


def _database(text: str) -> str:
    """Accept a PostgreSQL database without its password; the words never quote the address."""
    try:
        url = urlsplit(text)
        asked, _ = parse_qs(url.query), url.port
    except ValueError:
        raise ValueError(f"must be {DRIVER}://user@host:port/database") from None
    if url.password is not None or SECRETS & set(asked):
        raise ValueError(UNSIGNED)
    if url.scheme != DRIVER or not url.path.strip("/") or url.fragment:
        raise ValueError(f"must be {DRIVER}://user@host:port/database")
    return text


def _store(text: str) -> str:
    """Accept a folder of an object store, and nothing that signs in there."""
    if not re.fullmatch(r"[a-z][a-z0-9]*://[^\s?#]+", text):
        raise ValueError("must be a folder of an object store, such as s3://bucket/folder")
    if "@" in text:
        raise ValueError(NO_KEYS)
    return text.rstrip("/")


def _lake(text: str) -> str:
    """Accept a DuckLake whose catalogue is in PostgreSQL."""
    if not text.startswith(LAKE) or not text.removeprefix(LAKE).strip():
        raise ValueError(f"must be {LAKE}dbname=… host=…")
    if re.search(r"password\s*=", text, re.IGNORECASE) or re.search(r"://[^/@]*:[^/@]*@", text):
        raise ValueError(UNSIGNED)
    try:
        catalogue(text)
    except ValueError:
        raise ValueError(f"must be {LAKE}dbname=… host=…") from None
    return text


def catalogue(lake: str) -> dict[str, str]:
    """Return what a lake's address says of its PostgreSQL: dbname, host, user and the like.

    Raises ValueError where it is not one `name=value` after the other.
    """
    said = [each.partition("=") for each in shlex.split(lake.removeprefix(LAKE))]
    if not all(name.isidentifier() and equals for name, equals, _text in said):
        raise ValueError(lake)
    return {name: text for name, _equals, text in said}


Database = Annotated[str, AfterValidator(_database)]
Store = Annotated[str, AfterValidator(_store)]
Lake = Annotated[str, AfterValidator(_lake)]


def refuse_halves(
    state: str | None, archive: str | None, warehouse: str | None, lake_data: str | None
) -> None:
    """Raise ConfigurationError where only a part of what machines must share is set."""
    for name, value in (("archive", archive), ("warehouse", warehouse)):
        if value and not state:
            raise ConfigurationError(
                f"{PREFIX}{name.upper()} is set and {PREFIX}STATE is not: whoever shares the "
                f"{name} shares its ledger too. Nothing was done: set {PREFIX}STATE, or neither"
            )
    if bool(warehouse) != bool(lake_data):
        raise ConfigurationError(
            f"{PREFIX}WAREHOUSE and {PREFIX}LAKE_DATA belong together: the lake's catalogue and "
            "where its files lie. Nothing was done: set both, or neither"
        )


def refuse_nested(archive: str | None, lake_data: str | None) -> None:
    """Raise ConfigurationError where the pages lie among a lake's files, or these among them."""
    if not archive or not lake_data:
        return
    pages, files = f"{archive}/", f"{lake_data}/"
    if pages.startswith(files) or files.startswith(pages):
        raise ConfigurationError(
            f"{PREFIX}ARCHIVE and {PREFIX}LAKE_DATA lie in one another, and each takes every file "
            "below it for its own. Nothing was done: name two folders side by side"
        )

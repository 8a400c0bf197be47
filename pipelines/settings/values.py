"""The kinds of values that settings have, each refused in words that never quote the value."""

import json
import re
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import httpx
from pydantic import AfterValidator, BeforeValidator

PREFIX = "PARTNER_SYNC_"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LAST_PORT = 65535
# Each route accepts exactly one authentication method: bearer token or API key.
Surface = Literal["partner", "merchant"]
# Every business route is below /v2 (Versioning); a part in braces would have to be known.
LIST_PATH = r"^/v2(/[\w~-][\w.~-]*)+$"

_OWNER = r"(team:[\w.-]+|[\w.+-]+@[\w-]+(\.[\w-]+)+)"
OWNERS = rf"^{_OWNER}(, ?{_OWNER})*$"


def _address(text: str) -> str:
    """Accept https anywhere and http on this machine only (All calls use HTTPS).

    Read by the same parser as the client's, so that both see the same host. Its own words are not
    passed on: they quote the address.
    """
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    port = url.port is None or 1 <= url.port <= LAST_PORT
    if url.scheme not in {"http", "https"} or not re.fullmatch(r"[\w.:-]+", url.host) or not port:
        raise ValueError("must be an address such as https://api.example.com")
    if url.userinfo or url.fragment or "?" in text:
        raise ValueError("must be host, port and path only: no user, password, query or fragment")
    if url.scheme == "http" and url.host not in LOOPBACK:
        raise ValueError("must be https: http is for a service on this machine only")
    return text.rstrip("/")


def expanded(path: Path) -> Path:
    """Return a path with `~` replaced."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise ValueError("the folder of that user is not known here") from None


def _zone(name: str) -> str:
    try:
        _ = name == "UTC" or ZoneInfo(name)  # UTC needs no table of zones
    except (KeyError, ValueError, OSError):
        raise ValueError("must be a time zone such as Europe/Berlin") from None
    return name


def _decoded(value: object) -> object:
    """Read what the environment can only give as text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be JSON") from None


Address = Annotated[str, AfterValidator(_address)]
Place = Annotated[Path, AfterValidator(expanded)]
Zone = Annotated[str, AfterValidator(_zone)]
FromJson = BeforeValidator(_decoded)

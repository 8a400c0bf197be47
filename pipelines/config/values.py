"""Kinds of setting values. A refusal never quotes the value: it may be a misplaced secret."""

import re
from pathlib import Path
from typing import Annotated, Literal

import httpx
from pydantic import AfterValidator

PREFIX = "PARTNER_SYNC_"
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LAST_PORT = 65535
Surface = Literal["partner", "merchant"]
Contract = Literal["evolve", "freeze", "discard"]
LIST_PATH = r"^/v2(/[\w~-][\w.~-]*)+$"  # every business route is below /v2 (Versioning)
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")  # a connection: becomes a folder's name
STREAM_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")  # becomes a table's name
# With an underscore, so that a secret of capitals and digits is not accepted as a name.
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")


def _address(text: str) -> str:
    """Accept https anywhere and http on this machine only ("All calls use HTTPS")."""
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


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError(
            "must be the name of the environment variable that holds the secret, such as "
            "ACME_SECRET (capitals, digits, at least one underscore), never the secret itself"
        )
    if name.startswith(PREFIX):
        raise ValueError(f"must not begin with {PREFIX}: these are settings")
    return name


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable text")
    return text


def _full_path(path: Path) -> Path:
    path = path.expanduser()
    if not path.is_absolute():
        raise ValueError("must be a full path: this file is read from any folder")
    return path


Address = Annotated[str, AfterValidator(_address)]
Variable = Annotated[str, AfterValidator(_variable)]
Text = Annotated[str, AfterValidator(_printable)]
FullPath = Annotated[Path, AfterValidator(_full_path)]

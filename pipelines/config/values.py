"""Kinds of setting values, and what is wrong with them.

A refusal never quotes the value: it may be a misplaced secret.
"""

import re
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

import httpx
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
)

from pipelines.core.errors import ConfigurationError
from pipelines.core.key import key_name
from pipelines.core.person import expand_user
from pipelines.core.text import decode_text

PREFIX = "PARTNER_SYNC_"
READABLE = "Make it a file that you can read, then run the command again."
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
LAST_PORT = 65535
# With less, a few thousand rows are not reconciled.
LEAST_MEMORY = 64_000_000  # bytes
FAULTS = {
    "extra_forbidden": "no such field",
    "missing": "must be given",
    "model_type": "must be a table",
    "dict_type": "must be a table",
    "zoneinfo_str": "must be a time zone such as Europe/Berlin",
    "tuple_type": 'must be a list, such as ["billing"]',
}
T = TypeVar("T")
Surface = Literal["partner", "merchant"]
Contract = Literal["evolve", "freeze", "discard"]


def _must(holds: Callable[[Any], object], fault: str) -> AfterValidator:
    def check(value: Any) -> Any:
        if not holds(value):
            raise ValueError(fault)
        return value

    return AfterValidator(check)


def _match(pattern: str, fault: str) -> AfterValidator:
    return _must(re.compile(pattern).fullmatch, fault)


def _address(text: str) -> str:
    """Accept https anywhere and http on this machine only ("All calls use HTTPS")."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL()
    if not _is_reachable(url):
        raise ValueError("must be an address such as https://api.example.com")
    if url.userinfo or url.fragment or "?" in text:
        raise ValueError("must be host, port and path only: no user, password, query or fragment")
    if url.scheme == "http" and url.host not in LOOPBACK:
        raise ValueError("must be https: http is for a service on this machine only")
    return text.rstrip("/")


def _is_reachable(url: httpx.URL) -> bool:
    """Return whether a URL has a scheme, a host and a port that a request can be sent to."""
    has_port = url.port is None or 1 <= url.port <= LAST_PORT
    has_host = re.fullmatch(r"[\w.:-]+", url.host) is not None
    return url.scheme in {"http", "https"} and has_host and has_port


def _expanded(path: Path) -> Path:
    try:
        return expand_user(path)
    except ConfigurationError as error:
        raise ValueError(f"must be a full path: {error}") from None


def _has_memory(text: str) -> bool:
    match = re.fullmatch(r"(?i)([0-9]+(?:\.[0-9]+)?) ?([KMGT])(i?)B", text)
    if not match:
        return False
    number, prefix, is_binary = match.groups()
    base = 1024.0 if is_binary else 1000.0
    exponent = 1 + "KMGT".index(prefix.upper())
    return float(number) * base**exponent >= LEAST_MEMORY


def _is_command(text: str) -> bool:
    try:
        words = shlex.split(text)
    except ValueError:  # an open quote
        return False
    return bool(words) and text.isprintable()


def _cron_field(first: int, last: int, names: str = "") -> str:
    """Return a pattern: a list of values, ranges and `*`, each with or without a step."""
    value = f"({'|'.join(f'0?{number}' for number in range(first, last + 1))}{names})"
    part = rf"(\*|{value}(-{value})?)(/[1-9][0-9]*)?"
    return f"{part}(,{part})*"


CRON = " ".join(
    [
        _cron_field(0, 59),
        _cron_field(0, 23),
        _cron_field(1, 31),
        _cron_field(1, 12, "|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"),
        _cron_field(0, 7, "|sun|mon|tue|wed|thu|fri|sat"),
    ]
)
FEBRUARY = r"(0?2|feb)"
SHORT = r"(0?[2469]|11|feb|apr|jun|sep|nov)"
NEVER = rf"3[01]([,-]3[01])* {FEBRUARY}(,{FEBRUARY})*|31([,-]31)* {SHORT}(,{SHORT})*"
# Dagster refuses a schedule on a day that its months lack, and then loads no definitions at all.
Cron = Annotated[
    str,
    _match(f"(?i){CRON}", "must be minute, hour, day, month and weekday, such as 0 2 * * *"),
    _match(rf"(?i)(?!\S+ \S+ ({NEVER}) ).*", "must be a day that exists in its months"),
]


def _key(given: Any) -> Any:
    """Return the name of a key; several fields are a list."""
    if not isinstance(given, list):
        return given
    if not given or not all(isinstance(name, str) for name in given):
        raise ValueError("must be the name of a field, or a list of such names")
    return key_name(given)


Key = Annotated[str, BeforeValidator(_key)]
Memory = Annotated[
    str, _must(_has_memory, "must be 64MB or more, such as 128MB: a small build needs that much")
]


Address = Annotated[str, AfterValidator(_address)]
BUCKET = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=-]+)*/?"
BucketUrl = Annotated[
    str, _match(BUCKET, "must be a bucket such as s3://bucket/prefix, without credentials")
]
# Also http: requests are signed, and many buckets are in the same private network.
Endpoint = Annotated[
    str,
    _match(
        r"https?://(\[[0-9a-f:]+\]|[\w.-]+)(:[0-9]{1,5})?/?",
        "must be scheme, host and port, such as https://s3.example.com",
    ),
]
FullPath = Annotated[
    Path,
    AfterValidator(_expanded),
    _must(Path.is_absolute, "must be a full path: this file is read from any folder"),
]
Text = Annotated[
    str, _must(lambda text: text.isprintable() and text.strip(), "must be printable text")
]
CommandLine = Annotated[
    str, _must(_is_command, "must be a command with its words, quoted as in a shell")
]
NAME_FAULT = "must be of small letters, digits, - and _, at most 63 characters"
# It becomes the name of a folder.
ConnectionName = Annotated[str, _match(r"[a-z0-9][a-z0-9_-]{0,62}", NAME_FAULT)]
# It becomes the name of a table. Names of tables of arrays begin with it and are cut at 50
# characters: with a longer one, the tables of two streams could be one.
StreamName = Annotated[
    str,
    _match(
        r"(?!(main|meta|current|history|quarantine|reconciliation)$)"
        r"(?!.{41})[a-z][a-z0-9]*(_[a-z0-9]+)*",
        "must be at most 40 small letters, digits and single _, and not the name of a schema",
    ),
]
# Every business route is below /v2 (Versioning).
ListPath = Annotated[str, _match(r"/v2(/[\w~-][\w.~-]*)+", "must be a path such as /v2/usage")]
# With an underscore, so that a secret of capitals and digits is no name.
Variable = Annotated[
    str,
    _match(
        r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+",
        "must be the name of the environment variable that holds the secret, such as ACME_SECRET "
        "(capitals, digits, at least one underscore), never the secret itself",
    ),
    _match(f"(?!{PREFIX}).*", f"must not begin with {PREFIX}: these are settings"),
]


class Table(BaseModel):
    """A table of a configuration file. A docstring below a field says what the field means."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )


def name_tables(tables: Any, known: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> Any:
    """Return tables that hold their own names, over what is known of them."""
    if not isinstance(tables, dict):
        return tables
    named = {}
    for name, table in {**known, **tables}.items():
        named[name] = table
        if isinstance(table, dict):
            named[name] = {**known.get(name, {}), **table, "name": name}
    return named


def validate(kind: TypeAdapter[T], given: object, place: object, remedy: str) -> T:
    """Return what is given as values. Raises ConfigurationError that names every fault."""
    try:
        return kind.validate_python(given)
    except ValidationError as error:
        faults = []
        for fault in error.errors(include_input=False, include_url=False, include_context=False):
            text = FAULTS.get(fault["type"], fault["msg"].removeprefix("Value error, "))
            field = ".".join(map(str, fault["loc"]))
            faults.append(f"{field}: {text}" if field else text)
        raise ConfigurationError(f"Cannot use {place}: {'; '.join(faults)}.", remedy) from None


def read_toml(file: Path) -> dict[str, Any]:
    """Return the content of a file, empty without one. Raises ConfigurationError."""
    return parse_toml(file, read_content(file))


def read_content(file: Path) -> bytes:
    """Return the bytes of a file, none without one. Raises ConfigurationError."""
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ConfigurationError(
            f"Cannot read {file}: {error.strerror}. Nothing was changed.", READABLE
        ) from None


def parse_toml(file: Path, content: bytes) -> dict[str, Any]:
    """Return what a file says. Raises ConfigurationError."""
    try:
        return tomllib.loads(decode_text(content).replace("\r", "\n"))
    except ValueError as error:  # no TOML, or no UTF-8
        raise ConfigurationError(
            f"{file} is not valid TOML: {error}.",
            f"Correct {file}, then run `partner-sync check`.",
        ) from None

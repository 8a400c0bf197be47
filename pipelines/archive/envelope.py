"""What is around the records of a page: `data` and `pagination`, also where they are spelled oddly.

What the interface document asks for is read at once. A member that is missing or has another JSON
type is read where its meaning is plain, else it counts as not said; both are noted.

Here: what a page says of itself. Not here: its records (`records.py`), and what follows from
`has_more` (`pipelines/extract`).
"""

from typing import Annotated, Any

import msgspec

# Digits: all such numbers are below 2^63.
LONGEST_NUMBER = 18
# Least values of members of `pagination`.
LEAST = {"limit": 1, "offset": 0}
TRUTHS = {"true": True, "1": True, "false": False, "0": False}
# Members, beside `data` or in `pagination`, that deny that an answer has all its rows.
DENIALS = ("partial", "incomplete")
# Texts of `status` beside `data` by which an answer of status 200 says that it failed.
FAILED = {"error", "fail"}
# Deviations that together leave nothing by which an answer is a page.
NULL_DATA = "`data` is null"
NO_PAGINATION = "`pagination` is missing or null"
# As in other interfaces, it may only say that more pages follow. So `has_more` counts first.
TRUNCATED = "truncated"


class Pagination(msgspec.Struct):
    """What the service says of a page; None where it does not say it, or not readably.

    `total` is the number of rows on all pages. Only the list of invoices documents it, and not
    where it stands: beside `data`, or in `pagination`. `denial` is the member by which the service
    says itself that rows are missing; empty without one.
    """

    limit: int | None = None
    has_more: bool | None = None
    total: int | None = None
    denial: str = ""


class ParsedPage(msgspec.Struct):
    """A page, its records not decoded.

    `deviations` say where its envelope differs from the interface document, though it can be read.
    """

    data: list[msgspec.Raw]
    pagination: Pagination
    deviations: tuple[str, ...] = ()

    @property
    def records(self) -> list[bytes]:
        """The bytes of each record as received."""
        return [bytes(raw) for raw in self.data]


class CutPage(ParsedPage):
    """A page cut by its brackets; it may be no JSON as a whole."""


class _Denials(msgspec.Struct, kw_only=True):
    """What the interface document does not have; only a literal true counts."""

    partial: Any = None
    incomplete: Any = None
    truncated: Any = None


class _Failures(_Denials, kw_only=True):
    """Further such members, beside `data` only, by which an answer may say that it failed."""

    error: Any = None
    errors: Any = None
    success: Any = None
    status: Any = None

    def failure(self) -> str:
        """Return the member that says so; empty if none does."""
        for name in ("error", "errors"):
            if getattr(self, name):
                return name
        if self.success is False:
            return "success"
        has_failed = isinstance(self.status, str) and self.status.lower() in FAILED
        return "status" if has_failed else ""


class _DocumentedPagination(_Denials):
    limit: Annotated[int, msgspec.Meta(ge=1)]
    offset: Annotated[int, msgspec.Meta(ge=0)]
    has_more: bool
    next_offset: int | None = None
    total: Any = None


class _Documented(_Failures):
    """A page as the interface document has it."""

    data: list[msgspec.Raw]
    pagination: _DocumentedPagination
    total: Any = None


class _Loose(_Failures):
    data: list[msgspec.Raw] | None
    pagination: Any = None
    total: Any = None


_decode_documented = msgspec.json.Decoder(_Documented).decode
_decode_loose = msgspec.json.Decoder(_Loose).decode


def empty_page(deviation: str = "") -> ParsedPage:
    """Return the page that an answer without a body means."""
    deviations = (deviation,) if deviation else ()
    return ParsedPage([], Pagination(has_more=False), deviations)


def read_envelope(body: bytes) -> ParsedPage:
    """Return a page. Raises msgspec.DecodeError: no JSON, or no object with an array `data`."""
    try:
        page = _decode_documented(body)
    except msgspec.ValidationError:
        return _read_loosely(body)
    said = page.pagination
    total = _total(page.total, said.total)
    denial = _denial(page, msgspec.structs.asdict(said), has_more=said.has_more)
    return ParsedPage(page.data, Pagination(said.limit, said.has_more, total, denial))


def _read_loosely(body: bytes) -> ParsedPage:
    page = _decode_loose(body)
    deviations = []
    if page.data is None:
        deviations.append(NULL_DATA)
    members = {}
    if isinstance(page.pagination, dict):
        members = page.pagination
        deviations += _deviations(members)
    else:
        deviations.append(f"`pagination` is {_kind(page.pagination)}")
    # A limit of 0 says nothing.
    limit = _whole(members.get("limit")) or None
    has_more = _truth(members.get("has_more"))
    denial = _denial(page, members, has_more=has_more)
    said = Pagination(limit, has_more, _total(page.total, members.get("total")), denial)
    return ParsedPage(page.data or [], said, tuple(deviations))


def _deviations(members: dict[str, Any]) -> list[str]:
    """Return which members of `pagination` are not as the interface document has them."""
    deviations = []
    for name in ("limit", "offset", "has_more", "next_offset"):
        value: Any = members.get(name)
        if not _has_documented_type(name, value):
            deviations.append(f"`pagination.{name}` is {_kind(value)}")
        elif name in LEAST and value < LEAST[name]:
            deviations.append(f"`pagination.{name}` is {value}")
    return deviations


def _has_documented_type(name: str, value: object) -> bool:
    if name == "has_more":
        return isinstance(value, bool)
    if name == "next_offset" and value is None:
        return True
    # To Python, true is a number, too.
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    """Return what a value is in JSON, in words."""
    words = {
        type(None): "missing or null",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number with a fraction or exponent",
    }
    return words.get(type(value), "an object or array")


def _whole(value: object) -> int | None:
    """Return a whole number that is written as one, as text or as `500.0`; None for the rest."""
    if isinstance(value, float) and value.is_integer():
        value = f"{value:.0f}"
    if not isinstance(value, int | str):
        return None
    text = str(value).strip()
    # isdigit() alone is true of digits of other scripts and of ².
    is_number = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return int(text) if is_number else None


def _total(beside_data: object, in_pagination: object) -> int | None:
    total = _whole(beside_data)
    return _whole(in_pagination) if total is None else total


def _denial(page: _Failures, members: dict[str, Any], *, has_more: bool | None) -> str:
    """Return the member by which an answer says that it lacks rows; empty if none does."""
    names = DENIALS if has_more else (*DENIALS, TRUNCATED)
    for name in names:
        if getattr(page, name) is True or members.get(name) is True:
            return name
    return page.failure()


def _truth(value: object) -> bool | None:
    """Return what true, false, 1, 0, or their text say; None for the rest."""
    return TRUTHS.get(str(value).strip().lower())

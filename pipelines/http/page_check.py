"""Whether a body can be what was asked for. What cannot is asked for again."""

import msgspec

from pipelines.archive.records import parse_page
from pipelines.core.errors import Unavailable, UnexpectedAnswer
from pipelines.http.problems import UNREADABLE


def check_page(limit: int, path: str, body: bytes) -> None:
    """Raise Unavailable unless a body is one page of a list with not too many records."""
    _refuse_html(path, body)
    try:
        parse_page(body, limit)
    except UnexpectedAnswer as error:
        raise Unavailable(f"{path}: {error}", error.remedy) from None


def check_object(path: str, body: bytes) -> None:
    """Raise Unavailable unless a body is one JSON object."""
    _refuse_html(path, body)
    try:
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        raise Unavailable(f"The answer to {path} is not a whole JSON object.") from None


def _refuse_html(path: str, body: bytes) -> None:
    if body.lstrip()[:1] == b"<":
        raise Unavailable(
            f"The answer to {path} is a page of HTML, perhaps of a proxy.",
            "Check base_url of the connection and the network, then run `partner-sync sync`.",
        )

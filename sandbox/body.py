"""Reading the body of a request: JSON of one kind, whole, and not endless.

Here: size, media type, and the fields that are wrong, each by its name. Not here: which fields a
body has (records, merchant.bodies), the problem that is written of a failure (problem).
"""

from http import HTTPStatus
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from sandbox.problem import ProblemError

LONGEST = 64 * 1024  # bytes
MOST_NAMED = 20  # faults
MEDIA_TYPE = "application/json"
Kind = TypeVar("Kind", bound=BaseModel)


class TooLongError(Exception):
    """The body is longer than anything that is read."""


def is_json(request: Request) -> bool:
    """Tell whether a request says that it carries JSON."""
    given = request.headers.get("content-type", "").partition(";")[0]
    return given.strip().lower() == MEDIA_TYPE


async def whole(request: Request) -> bytes:
    """Read a body to its end.

    Raises:
        TooLongError: it has more than ``LONGEST`` bytes.
        ClientDisconnect: it broke off.
    """
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST:
            raise TooLongError
    return body


async def read(request: Request, kind: type[Kind]) -> Kind:
    """Read the JSON body of a request.

    Raises:
        ProblemError: 415 no JSON by its type, 413 too long, 400 not of this kind.
    """
    if not is_json(request):
        detail = f"The content type must be {MEDIA_TYPE}."
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, detail)
    try:
        return kind.model_validate_json(await whole(request))
    except TooLongError as error:
        detail = f"The body is longer than {LONGEST} bytes."
        raise ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail) from error
    except ClientDisconnect as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "The body broke off.", errors=[]) from error
    except ValidationError as error:
        raise _invalid(error) from error


def _invalid(error: ValidationError) -> ProblemError:
    errors = [
        {
            "in": "body",
            "field": ".".join(str(part) for part in fault["loc"])[:100],
            "detail": fault["msg"],
        }
        for fault in error.errors(include_url=False, include_input=False)[:MOST_NAMED]
    ]
    named = "; ".join(f"{one['field'] or 'body'}: {one['detail']}" for one in errors)
    return ProblemError(HTTPStatus.BAD_REQUEST, named, errors=errors)

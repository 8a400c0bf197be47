"""What a failed answer means: one table from its status and words to the error a user reads."""

import re

import msgspec

from pipelines.config.connections import Connection
from pipelines.core import errors
from pipelines.core.errors import ServiceError
from pipelines.core.text import Redactor, printable
from pipelines.http.retry import LATER, TRANSIENT, UNREADABLE, service_error
from pipelines.http.transport import Attempt

LONGEST_QUOTE = 200  # characters of the service's own text
OR_SKIP = ", or add the stream to `skip` of connection `{name}` in connections.toml."
# Status and words of an answer in lower case -> error, message, remedy. The first that fits counts.
MEANINGS: dict[str, tuple[type[ServiceError], str, str]] = {
    r"401 (?=.*organi[sz]ation).*(not active|inactive|disabled)": (
        errors.AccessDenied,
        "the organization of connection `{name}` is disabled",
        "Ask the service to activate the organization's API access, then run `partner-sync check`.",
    ),
    "401 ": (
        errors.AccessDenied,
        "the credentials of connection `{name}` are not accepted",
        "Correct the client_id, secret and audience, or the API key, of connection `{name}`.",
    ),
    r"403 .*\btrial\b": (
        errors.Forbidden,
        "the free trial of connection `{name}` has ended and billing is not enabled",
        "Enable billing in the merchant application, then run `partner-sync check`.",
    ),
    r"403 .*(\bmappings?\b|companyadmin|manageprofiles)": (
        errors.Forbidden,
        "the login that owns the API key of connection `{name}` lacks a mapping for this route",
        "Give the login the mapping (usually companyAdmin)" + OR_SKIP,
    ),
    r"403 .*\bscopes?\b": (
        errors.Forbidden,
        "the token of connection `{name}` lacks the OAuth scope for this route",
        "Ask the identity provider's administrator to grant the scope to the client" + OR_SKIP,
    ),
    r"403 .*\bactors?\b": (
        errors.Forbidden,
        "the actor type of connection `{name}` may not use this route",
        "Use a client of another actor type" + OR_SKIP,
    ),
    "403 ": (
        errors.Forbidden,
        "the credentials of connection `{name}` do not open this route",
        "Check the rights of the credentials" + OR_SKIP,
    ),
    "404 ": (
        errors.UnexpectedAnswer,
        "this path does not exist at {url}",
        "Correct base_url of connection `{name}`, or the path of the stream in settings.toml.",
    ),
    "429 ": (
        errors.RateLimited,
        "rate limit exceeded",
        f"{LATER} If others use the same credentials, set max_requests_per_window of `{{name}}`.",
    ),
    "30[12378] ": (
        errors.UnexpectedAnswer,
        "a redirect to {location}. It was not followed, so no credentials went there",
        "Set base_url of connection `{name}` to the address of the service itself.",
    ),
    "|".join(f"{each} " for each in TRANSIENT): (errors.Unavailable, "it may pass", LATER),
    "": (
        errors.UnexpectedAnswer,
        "the interface document does not know this status",
        "Run `partner-sync check`. If it fails too, check base_url of connection `{name}`.",
    ),
}


class _Problem(msgspec.Struct):
    """The members of problem+json that are read; all empty where a body is anything else."""

    type: str = ""
    title: str = ""
    detail: str = ""


def failure(answer: Attempt, path: str, connection: Connection, redactor: Redactor) -> ServiceError:
    """Return the error that an answer other than 200 means."""
    try:
        problem = msgspec.json.decode(answer.body or b"", type=_Problem)
    except UNREADABLE:
        problem = _Problem()
    slug = problem.type.rpartition("/")[2]
    words = f"{answer.status} {slug} {problem.title} {problem.detail}".lower().replace("_", " ")
    error, message, remedy = next(
        meaning for pattern, meaning in MEANINGS.items() if re.match(pattern, words, re.DOTALL)
    )
    # Once more: an escape such as \u0073 can hide a credential until the body is decoded.
    quote = redactor.clean(problem.detail or problem.title).strip()
    said = f' The service says: "{printable(quote, LONGEST_QUOTE)}"' if quote else ""
    location = answer.headers.get("location", "no address")
    message = message.format(name=connection.name, url=connection.base_url, location=location)
    message = f"The service answered {path} with status {answer.status}: {message}.{said}"
    return service_error(error, message, remedy.format(name=connection.name))

"""Here: what an answer says of the size of a page, and the setting that a user corrects.

Not here: which size is asked for (client; app.description before that).
"""

import re

import msgspec

from pipelines.config.connections import Connection
from pipelines.config.settings import Settings
from pipelines.core.errors import PageSizeRefused
from pipelines.http.retry import Attempt, read_problem

INVALID = {400, 422}  # a parameter is not accepted


def refuses_page_size(answer: Attempt, *, is_first: bool) -> bool:
    """Return whether an answer to a page request refuses the number of records.

    It says so, or it refuses the first request for the first page (`is_first`). What speaks of
    offsets refuses those: a smaller page does not help.
    """
    if answer.status not in INVALID:
        return False
    problem = read_problem(answer.body)
    problem.pop("instance", None)  # it may quote our own parameters
    words = msgspec.json.encode(problem).decode().lower()
    if "offset" in words:
        return False
    return is_first or bool(re.search(r"(?<!rate )\blimit\b|page.?size|per.?page", words))


def size_refused(
    connection: Connection, settings: Settings, path: str, size: int, error: Exception
) -> PageSizeRefused:
    """Return the error that names the setting and the command."""
    stream = stream_at(settings, path) or "STREAM"
    return PageSizeRefused(
        f"Pages of {size} records are refused. {error}",
        f"Set limit in [streams.{stream}] of settings.toml to fewer than {size} "
        f"records, then run `partner-sync check -c {connection.name}`.",
    )


def stream_at(settings: Settings, path: str) -> str:
    """Return the name of the stream that reads a path; empty if none does."""
    for stream in settings.streams.values():
        if stream.path == path:
            return stream.name
    return ""

"""The check of lists that a connection skips because its account may not read them."""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import select

from pipelines.checks.check import Check, Problem
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Severity
from pipelines.metadata.tables import FindingRow

READ_AGAIN: Final = (
    "To read it, remove `{stream}` from skip of [{connection}] in connections.toml, then run "
    "`partner-sync sync -c {connection}`."
)


@Check(
    "Remove the list from skip of [{connection}] in connections.toml.", Severity.INFO, "connection"
)
def list_readable(context: CheckContext, about: ListName) -> Iterator[Problem]:
    """Are the lists still closed that the connection skips because they were?"""
    # Each sync and `check` ask for the skipped lists, and keep here which were refused, then not.
    noted = select(FindingRow).filter_by(
        code=list_readable.__name__, connection=about.connection, cleared_at=None
    )
    for row in context.metadata.scalars(noted):
        if row.stream in context.settings.connection(about.connection).skip:
            yield {
                "stream": row.stream,
                "message": (
                    "The account may read this list now; before, it was refused (403). The "
                    "connection skips it, so no rows of it are read."
                ),
                "remedy": READ_AGAIN.format(connection=about.connection, stream=row.stream),
            }

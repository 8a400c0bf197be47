"""The check of accounts that two connections have read: their rows count twice."""

from collections import defaultdict
from collections.abc import Iterator

from sqlalchemy import select

from pipelines.checks.check import Check, Problem
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Severity
from pipelines.http.identity import ServiceIdentity
from pipelines.metadata.tables import Identity


@Check(
    "Keep one of them in connections.toml; of a renamed connection, its old name. Then run "
    "`partner-sync versions rollback` to a version without the other one. If none is kept, see "
    "docs/settings.md, Rename or retire a connection.",
    Severity.ERROR,
    "warehouse",
)
def account_loaded_twice(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Are the rows of each account loaded by one connection only?"""
    context.version()
    streams = defaultdict[str, set[str]](set)
    for name in context.published.loaded:
        streams[name.connection].add(name.stream)
    first = dict[tuple[str, str], Identity]()
    for account in context.metadata.scalars(select(Identity).order_by(Identity.pinned_at)):
        stated = ServiceIdentity(account.identity)
        other = first.setdefault((account.base_url, str(stated)), account)
        twice = sorted(streams[account.connection] & streams[other.connection])
        if other is not account and stated and twice:
            yield (
                f"Connections `{other.connection}` and `{account.connection}` are one account "
                f"({stated}), so {', '.join(twice)} are loaded twice. Sums of all connections "
                "count their rows twice."
            )

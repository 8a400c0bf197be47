"""Here: checks of a connection: its syncs, its account, and lists that it does not read.

Not here: checks of one list that it reads (lists).
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

from sqlalchemy import func, select

from pipelines.checks.check import MINUTE, Check, Problem
from pipelines.checks.context import CheckContext, known
from pipelines.checks.published import ListName, SharedList
from pipelines.core.finding import Severity
from pipelines.http.identity import ACCOUNT, ServiceIdentity
from pipelines.metadata.runs import KILLED, ListStates, Outcome, last_runs, unread
from pipelines.metadata.tables import ApiSpec, FindingRow, Identity, Run

READ: Final = "partner-sync sync --connection {connection}"
# Clocks of machines that share a metadata database may differ by so much.
CLOCKS_AGREE: Final = timedelta(minutes=1)
READ_AGAIN: Final = (
    "To read it, remove `{stream}` from skip of [{connection}] in connections.toml, then run "
    "`partner-sync sync -c {connection}`."
)


@Check("partner-sync init --name CONNECTION", scope="warehouse")
def list_not_read(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Does a connection read every published list?"""
    context.version()
    configured = context.settings.connections()
    loaded = context.published.loaded
    not_read = sorted(loaded.keys() - set(context.lists))
    for connection, names in groupby(not_read, attrgetter("connection")):
        ended = {name.stream: loaded[name].ended_at for name in names}
        message = (
            f"Connection `{connection}` no longer reads {', '.join(ended)}. The last scan ended at "
            f"{min(ended.values()):{MINUTE}} UTC. Analysts still see the rows of that time."
        )
        if connection in configured:
            # With `skip`, a person has decided: it is a note.
            yield {
                "connection": connection,
                "message": message,
                "severity": Severity.INFO,
                "remedy": "To read them again, correct `skip` or settings.toml.",
            }
        else:
            remedy = (
                f"Run `partner-sync init --name {connection}`. To keep the rows without reading "
                "them, add these lists to its `skip`."
            )
            yield {"connection": connection, "message": message, "remedy": remedy}


@Check(READ, Severity.ERROR, "connection")
def run_failed(context: CheckContext, about: ListName) -> Iterator[Problem]:
    """Did the last sync of each list of the connection finish?"""
    streams = {name.stream for name in context.lists if name.connection == about.connection}
    # Each list is taken from the last run that had it: a run of one list says nothing of others.
    runs = last_runs(context.metadata, about.connection, streams)
    messages = list[str]()
    remedies = dict[str, None]()  # each once, in their order
    severity = Severity.INFO
    for run, lists in known(runs or None, f"No sync of `{about.connection}` has ended yet."):
        reason, remedy = unread(lists)
        if not reason:
            continue
        how = _how_it_ended(run, lists)
        # A run that a person has stopped is known to that person.
        if how != "was interrupted":
            severity = Severity.ERROR
        began = f"{run.started_at:{MINUTE}} UTC"
        messages.append(f"The sync of `{run.connection}` that began at {began} {how}. {reason}")
        remedies[remedy] = None
    if messages:
        yield {
            "severity": severity,
            "message": " ".join(messages),
            "remedy": " ".join(remedies),
        }


def _how_it_ended(run: Run, lists: ListStates) -> str:
    """Return how a run ended that did not read all of its lists."""
    if any(outcome["state"] == Outcome.FAILED for outcome in lists.values()):
        return "failed"
    # A clock that was ahead adds a sentence.
    if run.message is None or run.message.startswith(KILLED):
        return "was killed"
    return "was interrupted"


@Check(
    f"Compare this machine's clock with another one (`timedatectl`). Then run `{READ}`.",
    scope="connection",
)
def clock_set_back(context: CheckContext, about: ListName) -> Iterator[str]:
    """Has this machine's clock reached every time of the connection's last sync?"""
    times = [
        load.ended_at
        for name, load in context.published.loaded.items()
        if name.connection == about.connection
    ]
    last_run = select(func.max(Run.started_at)).filter_by(connection=about.connection)
    started_at = context.metadata.scalar(last_run)
    if started_at is not None:
        times.append(started_at)
    newest = known(max(times, default=None), f"No sync of `{about.connection}` yet.")
    if newest > context.now + CLOCKS_AGREE:
        yield (
            f"A sync of `{about.connection}` is of {newest:{MINUTE}} UTC, but this machine's clock "
            f"says {context.now:{MINUTE}} UTC. It was ahead then, or was set back. Times and ages "
            "of these rows are wrong until the next sync."
        )


@Check("partner-sync discover {connection}", scope="connection")
def description_changed(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is the service's interface description as it was at the last `discover`, if it ever ran?"""
    seen = context.metadata.get(ApiSpec, about.connection)
    if seen and seen.change:
        yield (
            f"The interface description of `{about.connection}` has changed. {seen.change} "
            "The same lists are read; fields may mean something else."
        )


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
    one_account = set[frozenset[str]]()
    services = dict[str, str]()
    for account in context.metadata.scalars(select(Identity).order_by(Identity.pinned_at)):
        services[account.connection] = account.base_url
        named = str(ServiceIdentity(account.identity))
        shown = named
        # The merchant surface does not say whose the API key is.
        if account.actor.startswith(ACCOUNT):
            named = account.actor
            shown = "the same API key"
        other = first.setdefault((account.base_url, named), account)
        twice = sorted(streams[account.connection] & streams[other.connection])
        if other is not account and account.identity and twice:
            one_account.add(frozenset({other.connection, account.connection}))
            yield (
                f"Connections `{other.connection}` and `{account.connection}` are one account "
                f"({shown}), so {', '.join(twice)} are loaded twice. Sums of all connections "
                "count their rows twice."
            )
    # A distributor sees what its partners see: one service, two accounts, the same records.
    of_one_service = [
        each
        for each in context.published.shared
        if services.get(each.connection, each.connection) == services.get(each.other)
    ]
    yield from _seen_by_two(of_one_service, one_account)


def _seen_by_two(
    shared: list[SharedList], one_account: Collection[frozenset[str]]
) -> Iterator[Problem]:
    """Yield which connections have the records of others, besides those that are one account."""
    streams = defaultdict[tuple[str, str], list[str]](list)
    for each in shared:
        is_known = frozenset({each.connection, each.other}) in one_account
        if not is_known and (each.other, each.connection) not in streams:
            streams[each.connection, each.other].append(each.stream)
    for (connection, other), names in streams.items():
        yield {
            "subject": f"{connection} {other}",
            "message": (
                f"Connection `{other}` also has the records of `{connection}`: "
                f"{', '.join(names)}. Their accounts differ, as those of a distributor and its "
                "partner. Sums of all connections count these rows twice."
            ),
        }


@Check(
    "Remove the list from skip of [{connection}] in connections.toml.", Severity.INFO, "connection"
)
def list_readable(context: CheckContext, about: ListName) -> Iterator[Problem]:
    """Are the lists still closed that the connection skips because they were?"""
    # Each sync and `check` ask for the skipped lists, and keep here which were refused, then not.
    noted = select(FindingRow).filter_by(
        code=list_readable.code, connection=about.connection, cleared_at=None
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

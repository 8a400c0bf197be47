"""Every check; `sync`, `status` and Dagster show the same. Others are in modules beside this one.

A check is a function: its name is the code, its docstring the question. It yields what it finds,
and raises CannotKnow where there is nothing to judge by.
"""

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from operator import attrgetter
from typing import Final

from sqlalchemy import func, select

from pipelines.checks import accounts, money, skipped
from pipelines.checks.check import CHECKS, Check, CheckResult, Problem, State, evaluate
from pipelines.checks.context import CannotKnow, CheckContext, known
from pipelines.checks.published import ListName
from pipelines.core.finding import Finding, Severity
from pipelines.core.text import counted
from pipelines.finance.doubt import NOT_MAPPED
from pipelines.metadata.decisions import unfinished_erasures
from pipelines.metadata.findings import last_notifications
from pipelines.metadata.runs import KILLED, ListStates, Outcome, last_runs, unread
from pipelines.metadata.scans import ScanStatus
from pipelines.metadata.tables import ApiSpec, Close, Run, Scan

__all__ = ["CHECKS", "CheckResult", "State", "accounts", "evaluate", "money", "skipped"]
ABSENT: Final = "No connection reads {}, so usage is not compared with billing."
MINUTE: Final = "%Y-%m-%d %H:%M"
# Clocks of machines that share a metadata database may differ by so much.
CLOCKS_AGREE: Final = timedelta(minutes=1)
READ: Final = "partner-sync sync --connection {connection}"
READ_LIST: Final = f"{READ} --stream {{stream}}"
# A check of its own looks for these: they hold for longer than one load.
OWN_CHECK: Final = {"records_quarantined", "values_in_extra"}


@Check("partner-sync versions rebuild", Severity.ERROR, "warehouse")
def warehouse_unreadable(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Can analysts open the published version?"""
    if context.published.problem:
        yield f"Analysts cannot read the warehouse. {context.published.problem}"
    elif context.published.version is None:
        if not context.versions():
            raise CannotKnow("Nothing is published yet.")
        yield "The symlink of the warehouse is missing. Analysts find no file. Versions are kept."


@Check("partner-sync versions list", Severity.INFO, "warehouse")
def version_rolled_back(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Is the newest version the published one?"""
    seen = context.version().number
    newer = [str(number) for number in context.versions() if number > seen]
    if newer:
        yield (
            f"Analysts see version {seen}, after a rollback. Newer versions exist: "
            f"{', '.join(newer)}."
        )


@Check("Restore metadata.db from a backup.", Severity.ERROR, "warehouse")
def scans_unknown(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Does the metadata database know every scan of the published version?"""
    context.version()
    scan_ids = context.metadata.scalars(select(Scan.scan_id))
    unknown = context.published.scan_ids.difference(scan_ids)
    if unknown:
        yield (
            f"{len(unknown):,} scans of the published version are not in the metadata database: it "
            "was lost or is an old copy. Rows stay as they are, but cannot be rebuilt."
        )


@Check(
    'Run `partner-sync erase --reason "..."` again with the same value.',
    Severity.ERROR,
    "warehouse",
)
def erasure_unfinished(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Is every erasure finished?"""
    for erasure in unfinished_erasures(context.metadata):
        yield (
            f"The erasure that {erasure.person} began at {erasure.decided_at:{MINUTE}} UTC is not "
            "finished. Files may still contain the value."
        )


@Check("partner-sync notify test", scope="warehouse")
def notification_failed(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Did every channel accept its last message?"""
    channels = {*context.settings.notify, *context.settings.notify_summary}
    for last in last_notifications(context.metadata):
        if last.error and last.channel in channels:
            yield f"Findings were not sent at {last.sent_at:{MINUTE}} UTC: {last.error}"


@Check("partner-sync reconcile", Severity.ERROR, "warehouse")
def books_outdated(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Do the published books show the published version, and all that was decided?"""
    context.version()
    published = context.published
    if published.books_problem:
        yield f"The books cannot be read. {published.books_problem}"
    elif published.books_age:
        yield published.books_age


@Check("See `partner-sync mapping propose`, and `close list` for copies.", scope="warehouse")
def not_reconciled(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Is every rule and table of reconciliation evaluated?"""
    alerts = context.alerts()
    rules: dict[str, list[str]] = {}
    streams = {name.stream for name in (*context.lists, *context.published.loaded)}
    absent = " and ".join(stream for stream in ("usage", "billing") if stream not in streams)
    for rule, reason in alerts.not_evaluated.items():
        rules.setdefault(reason, []).append(rule)
    for reason, names in rules.items():
        # Nobody has asked for it yet.
        if reason.startswith(NOT_MAPPED):
            yield {"severity": Severity.INFO, "message": reason, "remedy": ""}
        elif absent:
            # A partner's account may not read every list. Nothing can be done, so it is a note.
            yield {"severity": Severity.INFO, "message": ABSENT.format(absent), "remedy": ""}
            return
        else:
            yield f"Not evaluated: {', '.join(names)}. {reason}"
    for rule, reason in alerts.uncertain.items():
        yield f"{rule} is uncertain: {reason}"
    for note in alerts.notes:
        yield {"severity": Severity.INFO, "message": note.message, "remedy": ""}


@Check("Say the type of the field in settings.toml.", scope="warehouse")
def records_unreadable(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Can every value that reconciliation needs be read?"""
    alerts = context.alerts()
    reason = alerts.not_evaluated.get("unreadable", "")
    # What is not mapped, nobody has asked for yet.
    if reason and not reason.startswith(NOT_MAPPED):
        raise CannotKnow(reason)
    for doubt in alerts.unread:
        # Records in quarantine have a check of their own.
        if not doubt.is_quarantine:
            yield {"subject": doubt.subject, "message": doubt.message, "remedy": doubt.remedy}


@Check("partner-sync breaks", scope="warehouse")
def large_breaks(context: CheckContext, _about: ListName) -> Iterator[str]:
    """Is the amount of every open break below the setting `break_alert_amount`?"""
    alerts = context.alerts()
    reasons = alerts.not_evaluated
    amount = context.settings.break_alert_amount
    if amount and reasons:
        raise CannotKnow(next(iter(reasons.values())))
    for breaks in alerts.open_breaks:
        if breaks.large:
            yield (
                f"{breaks.large:,} open breaks of rule {breaks.rule} differ by "
                f"{breaks.currency or 'no currency'} {amount:f} or more."
            )


@Check("partner-sync close list", scope="warehouse")
def closed_month_changed(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Is every closed month as it was signed off?"""
    alerts = context.alerts()
    reason = alerts.not_evaluated.get("closes")
    months = set(context.metadata.scalars(select(Close.month).filter_by(reopened_at=None)))
    if months and reason:
        raise CannotKnow(f"Closed months are not compared with their copies. {reason}")
    for changed in alerts.changed_months:
        if changed.month not in months:
            continue  # it was reopened since the books were made
        month = f"{changed.month:%Y-%m}"
        records = counted(changed.changed_records, "record")
        message = (
            f"{month} is not as it was signed off: {records} changed since. Net difference: "
            f"{changed.net_difference}. The copy of the close is unchanged. The "
            "differences are in finance.corrections."
        )
        yield {"subject": month, "message": message}


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


@Check(READ_LIST)
def list_not_loaded(context: CheckContext, about: ListName) -> Iterator[str]:
    """Does the published version contain the list?"""
    context.require_readable()
    if about not in context.published.loaded:
        yield f"No scan of {about} is published. Analysts see no rows of it."


@Check(READ_LIST)
def list_partial(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is the newest published scan of the list complete?"""
    load = context.load(about)
    if not load.complete:
        yield load.sentence.removeprefix(f"{about.stream}: ")


@Check('partner-sync approve {connection} {stream} --reason "..."', blocks=True)
def scan_held(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is no scan of the list held?"""
    context.scan(about)
    # At most the newest scan of a list waits: a newer one takes the place of all before it.
    held = context.held.get(about)
    if held:
        yield _about_scan(context, held, f"waits for approval: {held.reason}")


@Check(READ_LIST, Severity.ERROR)
def scan_failed(context: CheckContext, about: ListName) -> Iterator[str]:
    """Could the newest scan of the list be loaded?"""
    scan = context.scan(about)
    if scan.status == ScanStatus.FAILED:
        failed = _about_scan(context, scan, f"could not be loaded: {scan.reason}")
        yield f"{failed} If its file is restored, `partner-sync versions rebuild` loads it."


@Check("partner-sync versions build")
def scan_not_published(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is every scan of the list published that needs no approval?"""
    context.require_readable()
    context.scan(about)
    waiting = context.waiting.get(about)
    if waiting:
        yield _about_scan(context, waiting, "is read but not published.")


@Check("Read quarantine.records, and ask the service to correct the records.")
def records_quarantined(context: CheckContext, about: ListName) -> Iterator[str]:
    """Is every record of the list in a table?"""
    records = context.load(about).in_quarantine
    if records:
        yield (
            f"{records:,} records of {about} are in quarantine.records, with the reason. Rows with "
            "their keys keep the values that were loaded before; sums may lack them."
        )


@Check("Check with the service whether the field has another meaning now.")
def values_in_extra(context: CheckContext, about: ListName) -> Iterator[str]:
    """Does every value of the list fit its column?"""
    rows = context.load(about).not_fitting
    if rows:
        yield (
            f"{rows:,} rows of {about} have values that do not fit their column. They are in "
            "column `_extra` as they were sent; their own column is NULL."
        )


@Check("partner-sync versions rebuild")
def types_not_applied(context: CheckContext, about: ListName) -> Iterator[str]:
    """Have all fields of the list the types that settings declare?"""
    stream = context.settings.streams.get(about.stream)
    declared = {} if stream is None else stream.types
    applied = context.load(about).types
    others = sorted(field for field, kind in declared.items() if applied.get(field, kind) != kind)
    if others:
        yield (
            f"Columns of {about} do not have the types that settings declare: {', '.join(others)}. "
            "They keep their earlier types until the tables are built again from the scan files."
        )
    missing = sorted(declared.keys() - applied.keys())
    if missing:
        yield (
            f"Settings declare types of fields that no record of {about} has as a single value: "
            f"{', '.join(missing)}. Correct [streams.{about.stream}.types] in settings.toml."
        )


@Check("Follow the message of the finding.")
def load_reported(context: CheckContext, about: ListName) -> Iterator[Finding]:
    """Did the newest load of the list report nothing else that needs attention?"""
    for finding in context.load(about).findings:
        if finding.code not in OWN_CHECK:
            yield finding


@Check(READ_LIST)
def list_stale(context: CheckContext, about: ListName) -> Iterator[str]:
    """Are the published rows of the list new enough?"""
    load = context.load(about)
    complete_at = known(load.complete_at, f"No scan of {about} is complete.")
    hours = (context.now - complete_at) / timedelta(hours=1)
    if hours > context.settings.stale_after_hours:
        yield (
            f"The newest complete scan of {about} ended at {complete_at:{MINUTE}} UTC, "
            f"{hours:,.0f} hours ago. Analysts see the rows of that time."
        )


def _about_scan(context: CheckContext, scan: Scan, what: str) -> str:
    about = ListName(scan.connection, scan.stream)
    load = context.published.loaded.get(about)
    seen = f"still see its rows of {load.ended_at:{MINUTE}} UTC" if load else "see no rows of it"
    what = what.rstrip(".")
    return f"The scan of {about} of {scan.started_at:{MINUTE}} UTC {what}. Analysts {seen}."

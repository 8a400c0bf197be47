"""Here: checks of the published books, and of what reconciliation reads.

Not here: what makes a break (finance.reconcile), what the report warns of (finance.reports.alerts).
"""

from collections.abc import Iterator
from typing import Final

from sqlalchemy import select

from pipelines.checks.check import Check, Problem
from pipelines.checks.context import CannotKnow, CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Severity
from pipelines.core.text import counted, printable
from pipelines.finance.doubt import NOT_MAPPED
from pipelines.metadata.tables import Close

ABSENT: Final = "No connection reads {}, so usage is not compared with billing."
ACCEPT_VALUES: Final = (
    "Run `partner-sync mapping propose`, then `partner-sync mapping accept --replace`. Or add the "
    "value to counted_statuses, other_statuses, credit_kinds or other_kinds in mapping.toml."
)


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


@Check(ACCEPT_VALUES, scope="warehouse")
def bill_value_new(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Does the mapping know every status and kind of the bills?"""
    for value in context.alerts().unseen_values:
        counts = "They count as billed." if value.is_counted else "They do not count as billed."
        yield {
            "connection": value.connection,
            "subject": value.value,
            "message": (
                f"{counted(value.bills, 'bill')} of {value.connection} have a value that the "
                f"mapping does not list: {printable(value.value)}. {counts} Sum: "
                f"{value.amounts or 'no amount'}. Example: {printable(value.example)}."
            ),
        }


@Check("Ask the service what the code means.", scope="warehouse")
def currency_unknown(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Is every currency of usage and bills a code of ISO 4217?"""
    for currency in context.alerts().unknown_currencies:
        code = printable(currency.currency)
        used = counted(currency.used, "usage record")
        bills = counted(currency.bills, "bill")
        yield {
            "subject": code,
            "message": (
                f"{code} is no currency of ISO 4217: {used} and {bills} have it. Their amounts are "
                "compared as a currency of its own, with two decimals."
            ),
        }


@Check("partner-sync close list", scope="warehouse")
def closed_month_read_otherwise(context: CheckContext, _about: ListName) -> Iterator[Problem]:
    """Is every record of a closed month read as it was when the month was signed off?"""
    for line in context.alerts().read_otherwise:
        month = f"{line.month:%Y-%m}"
        records = counted(line.records, "record")
        currency = line.currency or "no currency"
        yield {
            "severity": Severity.INFO,
            "subject": f"{month} {line.currency or ''}".strip(),
            "message": (
                f"{month}: {records} did not change and are read otherwise than when the month was "
                f"signed off. Difference: {currency} {line.difference:f}. No correction is "
                "posted; the copy is unchanged. See finance.read_otherwise."
            ),
        }

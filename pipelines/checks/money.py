"""Checks of what reconciliation reads: values that the mapping does not know, and currencies."""

from collections.abc import Iterator
from typing import Final

from pipelines.checks.check import Check, Problem
from pipelines.checks.context import CheckContext
from pipelines.checks.published import ListName
from pipelines.core.finding import Severity
from pipelines.core.text import counted, printable

ACCEPT_VALUES: Final = (
    "Run `partner-sync mapping propose`, then `partner-sync mapping accept --replace`. Or add the "
    "value to counted_statuses, other_statuses, credit_kinds or other_kinds in mapping.toml."
)


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

"""Checks of what reconciliation reads: values that the mapping does not know, and currencies."""

from collections.abc import Iterator
from typing import Final

from pipelines.checks.check import Check, Found
from pipelines.checks.context import CheckContext, ListName
from pipelines.core.finding import Severity
from pipelines.core.text import counted, printable

ACCEPT_VALUES: Final = (
    "Run `partner-sync mapping propose`, then `partner-sync mapping accept --replace`. Or add the "
    "value to counted_statuses, other_statuses, credit_kinds or other_kinds in mapping.toml."
)


@Check(ACCEPT_VALUES, scope="warehouse")
def bill_value_new(context: CheckContext, _about: ListName) -> Iterator[Found]:
    """Does the mapping know every status and kind of the bills?"""
    context.not_evaluated()
    for each in context.published.unseen_values:
        counts = "They count as billed." if each["is_counted"] else "They do not count as billed."
        yield {
            "connection": each["connection"],
            "subject": each["value"],
            "message": (
                f"{counted(each['bills'], 'bill')} of {each['connection']} have a value that the "
                f"mapping does not list: {printable(each['value'])}. {counts} Sum: "
                f"{each['amounts'] or 'no amount'}. Example: {printable(each['example'])}."
            ),
        }


@Check("Ask the service what the code means.", scope="warehouse")
def currency_unknown(context: CheckContext, _about: ListName) -> Iterator[Found]:
    """Is every currency of usage and bills a code of ISO 4217?"""
    context.not_evaluated()
    for each in context.published.unknown_currencies:
        code = printable(each["currency"])
        yield {
            "subject": code,
            "message": (
                f"{code} is no currency of ISO 4217: {counted(each['used'], 'usage record')} and "
                f"{counted(each['bills'], 'bill')} have it. Their amounts are compared as a "
                "currency of its own, with two decimals."
            ),
        }


@Check("partner-sync close list", scope="warehouse")
def closed_month_read_otherwise(context: CheckContext, _about: ListName) -> Iterator[Found]:
    """Is every record of a closed month read as it was when the month was signed off?"""
    context.not_evaluated()
    for each in context.published.read_otherwise:
        month, records = f"{each['month']:%Y-%m}", counted(each["records"], "record")
        sums = f"{each['currency'] or 'no currency'} {each['difference']:f}"
        yield {
            "severity": Severity.INFO,
            "subject": f"{month} {each['currency'] or ''}".strip(),
            "message": (
                f"{month}: {records} did not change and are read otherwise than when the month was "
                f"signed off. Difference: {sums}. No correction is posted; the copy is unchanged. "
                "See finance.read_otherwise."
            ),
        }

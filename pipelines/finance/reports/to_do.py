"""Says what to do about a break: of its cause, otherwise of its rule and which side has more.

`treatment` says in a word what follows for who pays.

It names no command: what a rule says with commands is in `reconciliation.rules`.
"""

from decimal import Decimal
from typing import Final

from pipelines.finance.reports.text import NEW_VALUE

# What the remedy of a rule says of several causes, of one cause.
OF_CAUSE: Final = {
    "missing on the bill": "Find out why the bill lacks it.",
    "no bill for the month": "Request the missing bill.",
    "the bill is no longer in the list": "Ask why the bill was withdrawn.",
    "recorded after the last bill": "Request it on the next bill.",
    "the month is too far ahead": "Ask which month is right, and request a correction.",
    "changed after the bill": "Request a correction of the bill.",
    "bill without lines": "Ask for the lines, or what the bill is for.",
    "total above its lines": "Ask why the total is above its lines. Dispute the excess.",
    "total below its lines": "Ask why the total is below its lines, and which of both is right.",
    "other partner": "Ask which partner is right, and request a correction of the record.",
    "other currency": "Ask which currency is right, and request a correction of the record.",
}
# Of breaks of a rule that bill too much, and of those that bill too little.
OF_RULE: Final = {
    "different": (
        "Compare both records, then dispute the bill or accept it.",
        "Compare both records, then request a correction of the bill or accept it.",
    ),
    "unreferenced": (
        "Ask what the lines are for. Dispute the bill, or have the fee accepted.",
        "Ask why these lines reduce the bill, or have them accepted.",
    ),
}
# What open breaks mean for who pays: of what is overbilled on bills that are paid, on those that
# are not, and where nobody knows; and of what is unbilled.
TREATMENTS: Final = {
    "payable": ("claim back", "withhold", "claim", "may have to pay"),
    "receivable": ("pay back", "waive", "may have to pay", "claim"),
}
AND: Final = " and "  # the list filters by one of several treatments


def to_do(rule: str, cause: str, difference: Decimal | None, remedy: str | None) -> str:
    """Return what to do about a break. `remedy` is what its rule says of all of them."""
    of_cause = OF_CAUSE.get(cause.partition(NEW_VALUE)[0])
    if of_cause:
        return of_cause
    if rule in OF_RULE:
        overbilled, underbilled = OF_RULE[rule]
        return underbilled if difference is not None and difference < 0 else overbilled
    return remedy or ""


def treatment(side: str | None, follows: str | None, *, paid: bool, unpaid: bool) -> str | None:
    """Return what an open break means for who pays; None if nothing is known.

    `follows` is its reason in query `claim_breaks`; `paid` and `unpaid`: it is overbilled on such
    bills, neither where nobody knows it.
    """
    if not side or not follows:
        return None
    if follows.startswith("unclear "):
        return f"not clear: {follows.removeprefix('unclear ')}"
    of_paid, of_unpaid, overbilled, unbilled = TREATMENTS[side]
    if follows == "unbilled":
        return unbilled
    parts = [word for word, has_it in ((of_paid, paid), (of_unpaid, unpaid)) if has_it]
    return AND.join(parts) or overbilled

"""What a partner reads about a difference, and about figures that may still change."""

from typing import Final

# By rule. Nouns, because they hold for both: who pays a bill, and who writes it.
OF_RULE: Final = {
    "not_billed": "Usage that is on no bill",
    "not_used": "Billed, and no usage is known for it",
    "billed_twice": "Billed more than once",
    "different": "The bill differs from the usage",
    "unreferenced": "Billed without naming the usage",
    "unknown_partner": "Records of an identifier that is not in the list of partners",
    "disappeared": "Records that are no longer reported",
}
# What the cause of a break adds, where it has words that are not our own.
OF_CAUSE: Final = {
    "no bill for the month": "Usage of a month without a bill",
    "recorded after the last bill": "Usage that was recorded after the last bill",
    "the month is too far ahead": "Usage of a month that has not begun",
    "the bill is no longer in the list": "Usage whose bill is no longer reported",
    "changed after the bill": "The usage changed after its bill",
    "other amount": "The bill has another amount than the usage",
    "other quantity": "The bill has another quantity than the usage",
    "other currency": "The bill has another currency than the usage",
    "other partner": "Usage that is billed to another account",
    "usage of another partner": "Billed, and no usage of this account is known for it",
    "rounding adds up": "Rounding of many bill lines adds up",
    "bill without lines": "The bill has no lines",
    "total above its lines": "The total of the bill is above the sum of its lines",
    "total below its lines": "The total of the bill is below the sum of its lines",
}
BALANCE: Final = {
    "billed": "Billed in the month",
    "paid": "Paid",
    "open": "Open",
    "in_question": "Of it in question",
    "open_of_all": "Open, all months",
}
ABOUT_BALANCE: Final = (
    "Bills less credit notes, in full. In question: what is open of bills that we ask to correct, "
    "here or in the statement of another month."
)
# By `side` of the accounts: whose bills these are.
ASKS: Final = {
    "payable": "Our records of usage are the basis. + is billed too much: please credit it. "
    "\u2212 is not billed yet: please bill it. Or correct the usage.",
    "receivable": "Our records of usage are the basis. + is billed too much: we will credit it. "
    "\u2212 is not billed yet: we will bill it. Please confirm this, or correct the usage.",
    None: "Our records of usage are the basis. + is billed too much: the bill is to be corrected. "
    "\u2212 is not billed yet: it is to be billed. Please confirm this, or correct the usage.",
}
NOT_OVER: Final = "The month is not over, or its last bills may still come."
NOT_COMPLETE: Final = "Not all records of the month are proven to be here."
NOT_CHECKED: Final = "Not every check of usage and bills could be made."
UNREAD: Final = "Some records of the month are missing, or could not be read."
OUTDATED: Final = "Newer data is not in this statement yet."
UNCERTAIN: Final = "Differences that are not certain are left out: {}."


def finding(rule: str, cause: str) -> str:
    """Return what is wrong, for the partner."""
    return OF_CAUSE.get(cause) or OF_RULE[rule]

"""The lists that the page shows by clicking: their columns, and in which order they are embedded.

Not here: what a list is (listing), their rows (details), how they get into the file (embed), and
how they are shown (`script/`).
"""

from typing import Final

from pipelines.finance.reports.listing import Column, Listing

PARTNER: Final = Column("partner", "Partner", "partner")
STATEMENT: Final = Column("statement", "Statement", "file")
CONNECTION: Final = Column("connection", "Connection", "connection")
MONTH: Final = Column("month", "Month", "month")
AMOUNTS: Final = (
    Column("used", "Used", "amount"),
    Column("billed", "Billed", "amount"),
    Column("credited", "Credit notes", "change"),
    Column("difference", "Difference", "change"),
)
OPEN_AMOUNTS: Final = (
    Column("overbilled", "Overbilled", "amount"),
    Column("unbilled", "Unbilled usage", "amount"),
    Column("other", "Other differences", "change"),
)
ALL_PARTNERS: Final = ("month", "currency", "connection")
ALL_MONTHS: Final = ("partner", "currency", "connection")
ONE_MONTH: Final = ("partner", "month", "currency", "connection")
TO_BE_PAID: Final = "payment=to be paid"
OPEN_CREDITS: Final = "payment=not used up"
IN_QUESTION: Final = "in_question=in question"
OF_SOURCE: Final = ("source", "month", "currency", "connection")
# Uncertain breaks are in no number of open breaks.
CERTAIN: Final = "state=none"
STATE: Final = Column("state", "State", empty="open")
# Parts of a change, in the order in which they are taken from it, as people call them.
PARTS: Final = {
    "late": "late records",
    "restated": "restated",
    "credits": "credit notes",
    "fees": "charges without usage",
    "new": "new",
    "lost": "ended",
    "volume": "volume",
    "price": "price",
    "unexplained": "no quantity or amount",
}
NAMED: Final = Column("named", "Partner of the matching usage or bill")  # of an unknown partner
CHANGED_PARTS: Final = tuple(
    Column(part, label.capitalize(), "change") for part, label in PARTS.items()
)
# Explained once for each place that shows them.
ABOUT_PARTS: Final = (
    "Late: records that arrived after the month was settled. Restated: records that changed after "
    "it. It is settled when signed off, else when the days allowed for its bills are over. "
    "Charges without usage: lines of bills that name no usage. "
    "New, ended: amounts of a partner that has some in only one of the two months. "
    "Volume: more or less quantity at the price of the month before, rounded half to even, and "
    "plans or metrics that only one of the two months has. Price: the rest, also of that rounding."
)
DIFFERENCE: Final = "Difference = billed + credit notes \u2212 used"
PARTS_OF_IT: Final = (
    f"{DIFFERENCE} = overbilled \u2212 unbilled usage + other differences. Overbilled and unbilled "
    "usage are the open breaks of today, without those with own books; the opposite amount of one "
    "under a wrong partner is among the other differences."
)
OF_OWN_BOOKS: Final = (
    "Difference: what the service has minus what own books have. It is no part of billed minus "
    "used, and these breaks are in no other number of open breaks."
)
LISTINGS: Final = (
    Listing(
        "months",
        "Months",
        (
            Column("month", "Month", "month", "partner-months", ALL_PARTNERS),
            CONNECTION,
            Column("signed", "Signed off"),
            Column("answer", "Is it right?", "answer"),
            *AMOUNTS,
            *OPEN_AMOUNTS,
            Column("open_breaks", "Open breaks", "count", "breaks", ALL_PARTNERS, CERTAIN),
        ),
        'partner-sync sql "FROM finance.month_totals"',
        f"{PARTS_OF_IT} Select a month to see its partners.",
        filters=("answer",),
    ),
    Listing(
        "partners",
        "Partners",
        (
            Column("partner", "Partner", "partner", "partner-months", ALL_MONTHS),
            CONNECTION,
            *AMOUNTS,
            *OPEN_AMOUNTS,
            Column("open_breaks", "Open breaks", "count", "breaks", ALL_MONTHS, CERTAIN),
            Column("age", "Oldest, days", "days"),
            Column("partner_id", "Identifier"),
            NAMED,
            STATEMENT,
        ),
        'partner-sync sql "FROM finance.partner_months"',
        f"All months together. {PARTS_OF_IT} Select a partner to see its months.",
    ),
    Listing(
        "due",
        "Due by partner",
        (
            PARTNER,
            CONNECTION,
            Column("open", "To be paid", "amount", "bills", ALL_MONTHS, TO_BE_PAID),
            Column("overdue", "Overdue", "amount", "bills", ALL_MONTHS, "due_in=overdue"),
            Column("next_7", "Next 7 days", "amount", "bills", ALL_MONTHS, "due_in=next 7 days"),
            Column("next_30", "8 to 30 days", "amount", "bills", ALL_MONTHS, "due_in=8 to 30 days"),
            Column("later", "Later", "amount", "bills", ALL_MONTHS, "due_in=later"),
            Column("undated", "No due date", "amount", "bills", ALL_MONTHS, "due_in=no due date"),
            Column("in_question", "In question", "amount", "bills", ALL_MONTHS, IN_QUESTION),
            Column("unpaid", "Overbilled, unpaid", "amount", "breaks", ALL_MONTHS, CERTAIN),
            Column("credited", "Open credit notes", "change", "bills", ALL_MONTHS, OPEN_CREDITS),
            Column("paid", "Overbilled, paid", "amount", "breaks", ALL_MONTHS, CERTAIN),
            Column("oldest", "Oldest overdue, days", "days"),
            Column("unknown", "Bills, amount not known", "days"),
        ),
        'partner-sync sql "FROM finance.receivables"',
        "As the service says, those with the most overdue first. To be paid = overdue + next 7 "
        "days + 8 to 30 days + later + no due date. Of it, in question: bills of which an open "
        "break says that they bill too much, or nobody can say how much. Overbilled, unpaid: the "
        "excess of these, if it is known. Open credit notes (not used up) and Overbilled, paid (on "
        "bills that are paid) are in no other column. Each amount opens its bills or breaks.",
    ),
    Listing(
        "breaks",
        "Open breaks",
        (
            Column("break_id", "Break", "number"),
            Column("severity", "Severity", "severity"),
            PARTNER,
            CONNECTION,
            MONTH,
            Column("cause", "Cause"),
            Column("difference", "Difference", "change"),
            Column("age", "Age, days", "days", empty="no month"),
            Column("treatment", "Treatment", empty="none"),
            Column("paid", "Overbilled, paid", "amount"),
            Column("unpaid", "Overbilled, unpaid", "amount"),
            Column("owner", "Assigned to", empty="nobody"),
            Column("reason", "Reason"),
            Column("told", "Partner told", empty="no"),
            Column("told_in", "In statement"),
            Column("told_page", "Page", "file"),
            NAMED,
            Column("ageing", "Age", "group"),
            Column("used", "Used", "amount"),
            Column("billed", "Billed", "amount"),
            Column("due", "Bill to be paid by", "day", empty="none: from month end"),
            Column("first_seen", "First seen", "day"),
            STATE,
            Column("uncertain", "Uncertain because", empty="not uncertain"),
        ),
        "partner-sync breaks",
        "An open break is a difference that nobody has explained or resolved yet: + is overbilled, "
        "\u2212 is unbilled usage. Select its number to see its records and what to do. Age counts "
        "from the day when the bill was to be paid, if known, otherwise from the end of the month. "
        "Treatment: what an open break means for who pays. Overbilled, paid: on bills that "
        "are paid, as the service says. Overbilled, unpaid: no more than is open of its bills. "
        "Partner told: yes, if a statement with the break is noted as sent.",
        filters=("severity", "treatment", "ageing", "told", "state"),
    ),
    Listing(
        "records",
        "Records of breaks",
        (
            Column("side", "Kind"),
            Column("id", "Record"),
            Column("bill", "Bill", link="bills", by=("bill",)),
            Column("issued", "Issued", "day"),
            Column("quantity", "Quantity", "quantity"),
            Column("amount", "Amount", "amount"),
        ),
        "partner-sync trace break NUMBER",
        parent="breaks",
        has_sums=False,
    ),
    Listing(
        "own-breaks",
        "Breaks with own books",
        (
            Column("break_id", "Break", "number"),
            Column("severity", "Severity", "severity"),
            Column("source", "Name of own books"),
            PARTNER,
            CONNECTION,
            MONTH,
            Column("cause", "Cause"),
            Column("subject", "Record"),
            Column("service", "Amount of the service", "amount"),
            Column("own", "Amount in own books", "amount"),
            Column("difference", "Difference", "change"),
            Column("age", "Age, days", "days", empty="no month"),
            Column("owner", "Assigned to", empty="nobody"),
            Column("reason", "Reason"),
            STATE,
            Column("uncertain", "Uncertain because", empty="not uncertain"),
        ),
        "partner-sync breaks",
        f"{OF_OWN_BOOKS} Select a number to see its records and what to do.",
        filters=("source", "severity", "state"),
    ),
    Listing(
        "own-totals",
        "Own books by month",
        (
            Column("source", "Name of own books"),
            CONNECTION,
            MONTH,
            Column("own_rows", "Own rows", "count"),
            Column("own", "Amount in own books", "amount"),
            Column("service_rows", "Records", "count"),
            Column("service", "Amount of the service", "amount"),
            Column("difference", "Difference", "change"),
            Column("open_breaks", "Open breaks", "count", "own-breaks", OF_SOURCE, CERTAIN),
        ),
        'partner-sync sql "FROM reconciliation.own_totals"',
        OF_OWN_BOOKS,
    ),
    Listing(
        "resolved",
        "Resolved breaks",
        (
            Column("break_id", "Break", "number"),
            PARTNER,
            CONNECTION,
            MONTH,
            Column("cause", "Cause"),
            Column("difference", "Difference", "change"),
            Column("resolved_on", "Resolved on", "day"),
            Column("resolved_by", "By user", empty="nobody"),
            Column("reason", "Reason"),
            Column("told", "Partner told", empty="no"),
            Column("told_in", "In statement"),
            Column("told_page", "Page", "file"),
        ),
        "partner-sync breaks --state resolved",
        "Resolved by a person, with the reason; accepted by the mapping, though usage and bill "
        "still differ; or no longer found. Of a break that a person resolved, select the number to "
        "see its records; of the others, none are kept.",
    ),
    Listing(
        "partner-months",
        "Partners by month",
        (
            Column("partner", "Partner", "partner", "partner-months", ALL_MONTHS),
            CONNECTION,
            Column("month", "Month", "month", "bills", ONE_MONTH),
            *AMOUNTS,
            Column("verdict", "Verdict"),
            Column("cause", "Likely cause"),
            Column("open_breaks", "Open breaks", "count", "breaks", ONE_MONTH, CERTAIN),
            STATEMENT,
        ),
        'partner-sync sql "FROM finance.partner_months"',
        f"{DIFFERENCE}. Not proven: rows may be missing, or a record cannot be read. Select a "
        "month to see its bills.",
    ),
    Listing(
        "bills",
        "Bills",
        (
            Column("bill", "Bill", "number"),
            PARTNER,
            CONNECTION,
            MONTH,
            Column("billed", "Billed", "amount"),
            Column("credited", "Credit notes", "change"),
            Column("open", "To be paid", "amount"),
            Column("payment", "Payment"),
            Column("due", "Due", "day"),
            Column("due_in", "When due"),
            Column("paid_on", "Paid on", "day"),
            Column("unused", "Open credit", "change"),
            Column("in_question", "In question"),
            Column("issued", "Issued", "day"),
            Column("kind", "Kind"),
            Column("not_counted", "Void, draft or cancelled", "amount"),
            STATEMENT,
        ),
        'partner-sync sql "FROM finance.bills"',
        "Those of breaks come first, then those of the two newest months and what is unpaid, then "
        "all others, up to 10,000. Select its number to see the lines of a bill, and the usage "
        "that they bill. Billed is without credit notes, which have a column of their own. Used "
        "up: of a credit note, nothing is left to set off. In question: it is not paid, and an "
        "open break that is certain says that it bills too much, or nobody can say how much.",
        table="reconciliation.bill_totals",
        filters=("kind", "payment", "due_in", "in_question"),
    ),
    Listing(
        "statements",
        "Statements",
        (
            Column("number", "Number"),
            Column("written", "Written", "day"),
            PARTNER,
            CONNECTION,
            MONTH,
            Column("asked", "Asked for", "change"),
            Column("state", "State"),
            Column("by", "By user"),
            Column("sent", "Sent", "day", empty="not noted"),
            Column("sent_to", "Sent to"),
            Column("statement", "Page", "file"),
        ),
        "partner-sync statement --list",
        "Statements that were written for partners, newest first. A partner that is "
        "not in the list has no statement. Asked for: the sum of the "
        "differences that the partner is asked to confirm or correct. A higher number of the same "
        "month replaces the lower one. Sent: as a person noted it; partner-sync sends none.",
        has_sums=False,
        filters=("state",),
    ),
    Listing(
        "same-usage",
        "Bills of the same usage",
        (
            Column("other", "Bill", link="bills", by=("other",)),
            Column("kind", "Kind"),
            Column("records", "Usage records", "count"),
        ),
        "partner-sync sql \"FROM billed_lines WHERE reference = 'RECORD'\"",
        parent="bills",
        has_sums=False,
        share=4,
    ),
    Listing(
        "lines",
        "Lines of bills",
        (
            Column("line", "Line"),
            Column("quantity", "Quantity", "quantity"),
            Column("price", "Price", "quantity"),
            Column("amount", "Amount", "amount"),
            Column("reference", "Usage record"),
            Column("used_on", "Used on", "day"),
            Column("used_quantity", "Quantity used", "quantity"),
            Column("used_amount", "Amount used", "amount"),
            Column("used_in", "Used in currency"),
            Column("fee", "Accepted fee"),
            Column("plan", "Plan"),
            Column("metric", "Metric"),
            Column("region", "Region"),
            Column("unit", "Unit"),
            Column("break_id", "Open break", link="breaks", by=("break_id",)),
        ),
        "partner-sync sql \"FROM billed_lines WHERE 'NUMBER' IN (number, bill)\"",
        parent="bills",
        share=2,
    ),
    Listing(
        "prices",
        "Prices that changed",
        (
            PARTNER,
            CONNECTION,
            Column("month", "Month", "month", "bills", ONE_MONTH),
            Column("item", "Plan and metric"),
            Column("side", "Used or billed"),
            Column("month_before", "Month before", "month"),
            Column("before", "Average price before", "price"),
            Column("price", "Average price", "price"),
            Column("others", "Other partners", "price", empty="none"),
            Column("effect", "Effect", "change", opens=True),
            Column("quantity", "Quantity", "quantity"),
            Column("now", "Amount", "amount"),
        ),
        'partner-sync sql "FROM billed_lines WHERE partner_id = \'IDENTIFIER\' '
        "AND month = 'YYYY-MM-01' AND plan = 'PLAN'\"",
        "In the twelve newest months whose bills should have come: average prices that are not "
        "those of the last month before that has a quantity, if the effect is as large as a high "
        "break. Effect: the amount, less its quantity at the price before. Other partners: their "
        "average price in the same month, all together. Used and billed at the same price are no "
        "break. Select an effect to see the lines of bills with that price.",
        has_sums=False,
        filters=("side", "item"),
    ),
    Listing(
        "changes",
        "Why amounts changed",
        (
            Column(
                "partner", "Partner", "partner", "partner-months", ALL_MONTHS, empty="all partners"
            ),
            CONNECTION,
            Column("month", "Month", "month", "bills", ONE_MONTH),
            Column("side", "Used or billed"),
            Column("before", "Amount before", "amount"),
            Column("now", "Amount", "amount"),
            Column("difference", "Change", "change", opens=True),
            *CHANGED_PARTS,
        ),
        'partner-sync sql "FROM finance.flux"',
        "From the month before, of the twelve newest months whose bills should have come; billed "
        "is net of credit notes. Choose a month above. One that list Months has as not proven may "
        "change. Select a month to see its bills, a change to see its plans and metrics, with the "
        "average price of one unit; new: there was no quantity in the month before. "
        f"{ABOUT_PARTS}",
        has_sums=False,
        share=2,
        filters=("side",),
    ),
    Listing(
        "items",
        "Plans and metrics that changed",
        (
            Column("kind", "Kind", empty="usage"),
            Column("plan", "Plan", empty="no plan"),
            Column("metric", "Metric", empty="no metric"),
            Column("region", "Region", empty="no region"),
            Column("unit", "Unit"),
            Column("difference", "Change", "change"),
            *CHANGED_PARTS,
            Column("quantity_before", "Quantity before", "quantity"),
            Column("quantity", "Quantity", "quantity"),
            Column("price_before", "Average price before", "price"),
            Column("price_now", "Average price", "price"),
            Column("before", "Amount before", "amount"),
            Column("now", "Amount", "amount"),
        ),
        'partner-sync sql "FROM finance.flux_items '
        "WHERE partner = 'NAME' AND month = 'YYYY-MM-01'\"",
        parent="changes",
    ),
)  # fmt: skip

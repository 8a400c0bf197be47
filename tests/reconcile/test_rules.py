"""Each situation of a partner's month, and the breaks that are found in it: one build for all."""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from pipelines.finance.reconcile.statements import STATEMENTS, read_statement
from tests.reconcile.books import FIRST, MAPPING, bill, home_with, line, partners, publish, used
from tests.versions.homes import Record, Stores, home_of

MISSING, NO_BILL = "not_billed: missing on the bill", "not_billed: no bill for the month"
NEW_NOTE = "not_billed: its bill has the new status credit note"
LATE = "not_billed: recorded after the last bill"
AHEAD = "not_billed: the month is too far ahead"
NOT_USED = "not_used: billed without usage"
FEE = "unreferenced: lines without usage"
WHOLE = "unreferenced: bill without lines"
ABOVE, BELOW = "unreferenced: total above its lines", "unreferenced: total below its lines"
BOTH = "unreferenced: lines without usage, and its total differs from its lines"
TWICE = "billed_twice: usage is also on bill {name} b"
OTHER = "different: other "
AMOUNT, CURRENCY = f"{OTHER}amount", f"{OTHER}currency"
CHANGED = "different: changed after the bill"
WRONG, BALANCED, FEES = "out of balance", "balanced", "fees"


class Case(NamedTuple):
    """A partner's records, the breaks that they are, and its worst verdict."""

    name: str
    used: list[Record]
    bills: list[Record]
    breaks: str = ""
    verdict: str = WRONG


def billed(*amounts: str, name: str = "b", **fields: Any) -> Record:
    """Return a bill of usage `u` with a line for each amount; the first one bills the quantity."""
    lines = [line("u", amount, int(not at)) for at, amount in enumerate(amounts)]
    return bill(name, *lines, **fields)


def again(*amounts: str, **fields: Any) -> list[Record]:
    """Return the bill of the usage, and a second one."""
    return [BILLED, billed(*amounts, name="c", **fields)]


ANOTHER, UNKNOWN = "another", "unknown partner"
REFERRED = MAPPING.replace('id = "id"\npartner', 'id = "ref"\npartner', 1)  # may be missing
USED, BILLED = [used("u")], billed("5.00")
LATER, USD = {"issued": "2026-10-01T00:00:00Z"}, {"currency": "USD"}
LAST = {"issued": "2026-10-02T00:00:00Z"}
TAKEN_BACK = [billed("5.00", name="t", **USD), bill("v", line("u"), kind="credit", **USD)]
CREDIT = [BILLED, bill("c", line("u", "2.00", 0), kind="credit", is_credit=False)]
GONE = bill("c", line("u"), kind="credit")
ALL_AGAIN = billed("5.00", name="d")
BOTH_SIGNS = [BILLED, bill("c", line("u", "2.50", 0), line("u", "-0.50", 0), kind="credit")]
LESS = [billed("10.00"), bill("c", line("u", "5.00", 0), kind="credit", total="3.00")]
NOTE_BELOW = bill("c", line(None, "9.00", 0), kind="credit", total="7.00")
UNKNOWN_AMOUNT = [BILLED, bill("c", lines=[line("u", None)], total="0.00", **LATER)]
EARLIER = [billed("5.00", **LATER), billed("5.00", name="c")]
LATE_USAGE = used("v", "2.00", recorded="2026-10-03T00:00:00Z")
RESTATED = used("u", "6.00", updated="2026-10-03T00:00:00Z")
OTHER_LINE = billed("2.00", name="c", partner=ANOTHER)
FEE_ELSEWHERE = [billed("5.00", month="2026-08-01"), bill("c", line(None, "9.00"))]
CREDITED_FEE = [
    bill("b", line("u"), line(None, "9.00")),
    bill("c", line(None, "9.00"), kind="credit"),
]
CREDITED_IN_PART = [*CREDITED_FEE[:1], bill("c", line(None, "2.00"), kind="credit")]
TAKEN_FROM_ANOTHER = [BILLED, bill("e", line("u"), kind="credit", partner=ANOTHER)]
FEE_AGAIN = bill("d", line(None, "9.00"))
TWO_FEES = [line(None, "9.00"), line(None, "3.00")]
NO_FEES = [line(None, "9.00"), line(None, "-9.00")]
FEES_OF_TWO = [bill("b", line("u"), TWO_FEES[0]), bill("c", TWO_FEES[1])]
VOID = again("5.00", status="void")
VOID_CREDIT = [BILLED, bill("c", line("u", "2.00", 0), kind="credit", status="void")]
ALL_OF_IT = billed("5.00", name="c", **LATER)
NOTE = bill("n", line(None, "1.00"), kind="credit")
CREDITED = [BILLED, bill("n", line("u"), kind="credit")]
THIRD = [ALL_OF_IT, billed("5.00", name="d", **LAST)]
HIGHER = [
    billed("6.00"),
    bill("n", line("u", "6.00"), kind="credit", **LATER),
    billed("6.00", name="c", **LAST),
]
SECOND_CREDITED = [BILLED, ALL_OF_IT, bill("n", line("u"), kind="credit", **LATER), THIRD[1]]
LESS_TWICE = [
    billed("8.00"),
    bill("n", line("u", "1.00", 0), kind="credit"),
    bill("m", line("u", "1.00", 0), kind="credit"),
]
NO_CURRENCY: dict[str, Any] = {"currency": None}
NO_QUANTITY = {**line("u"), "quantity": None}
BLANK = "different: no currency -5.00; different: no currency 5.00"
BASE_FEES = [
    bill("b", line("u"), line("u", "15.00", 0)),
    bill("c", line("v"), line("v", "25.00", 0)),
]
OF_THREE = [used("u", "20.00"), used("v", "30.00"), used("w", "3.00", quantity=0)]
STRANGE = ("billing of an unknown partner 4.00", "usage of an unknown partner -5.00")
CASES = [
    Case("balanced", USED, [BILLED], verdict=BALANCED),
    Case("not billed", USED, [], f"{NO_BILL} -5.00"),
    Case("no identifier", [used("u", ref=None)], [], f"{NO_BILL} -5.00"),
    Case("missing", [*USED, used("v", "2.00")], [BILLED], f"{MISSING} -2.00"),
    Case("late", [*USED, LATE_USAGE], [BILLED], f"{LATE} -2.00"),
    Case("month not over", [used("u", day="2026-11-02")], [], verdict="tentative"),
    Case("wrong year", [used("u", day="2062-09-10")], [], f"{AHEAD} -5.00"),
    Case("not used", [], [BILLED], f"{NOT_USED} 5.00"),
    Case("not used, on two equal bills", [], again("5.00"), f"{NOT_USED} 5.00; {NOT_USED} 5.00"),
    Case("not used, and credited", [], [BILLED, GONE], verdict=BALANCED),
    Case("not used, and credited to another", [], TAKEN_FROM_ANOTHER, f"{NOT_USED} 5.00"),
    Case("not used, and credited in part", [], CREDIT, f"{NOT_USED} 3.00"),
    Case("not used, credited, billed again", [], [BILLED, GONE, ALL_AGAIN], f"{NOT_USED} 5.00"),
    Case("fee", USED, [bill("b", line("u"), line(None, "9.00"))], f"{FEE} 9.00"),
    Case("two fees", USED, [bill("b", line("u"), *TWO_FEES)], f"{FEE} 12.00"),
    Case("fees that add up to nothing", USED, [bill("b", line("u"), *NO_FEES)], verdict=BALANCED),
    Case("fees of two bills", USED, FEES_OF_TWO, f"{FEE} 3.00; {FEE} 9.00"),
    Case("discount", USED, [bill("b", line("u"), line(None, "-1.00"))], f"{FEE} -1.00"),
    Case("total above its lines", USED, [billed("5.00", total="5.50")], f"{ABOVE} 0.50"),
    Case("total below its lines", USED, [billed("5.00", total="4.50")], f"{BELOW} -0.50"),
    Case("bill without lines", [], [bill("b", total="5.00")], f"{WHOLE} 5.00"),
    Case("bill without lines that takes off", [], [bill("b", total="-5.00")], f"{WHOLE} -5.00"),
    Case("total that is rounding", USED, [billed("5.00", total="5.000001")], verdict=BALANCED),
    Case(
        "fee and total", USED, [bill("b", line("u"), *TWO_FEES[:1], total="15.00")], f"{BOTH} 10.00"
    ),
    Case("fee that is credited", USED, CREDITED_FEE, verdict=BALANCED),
    Case("fee that is credited once", USED, [*CREDITED_FEE, FEE_AGAIN], f"{FEE} 9.00"),
    Case("fee that is credited in part", USED, CREDITED_IN_PART, f"{FEE} 9.00"),
    Case(
        "fee of a void bill", USED, [BILLED, bill("v", line(None), status="void")], verdict=BALANCED
    ),
    Case("fee beside usage of another month", USED, FEE_ELSEWHERE, f"{FEE} 9.00"),
    Case("second bill", USED, again("5.00", **LATER), TWICE + " 5.00"),
    Case("second bill, not by its name", USED, EARLIER, TWICE[:-1] + "c 5.00"),
    Case("taken back, and billed again for more", USED, HIGHER, f"{AMOUNT} 1.00"),
    Case("taken back, and billed twice", USED, [*CREDITED, *THIRD], TWICE[:-1] + "c 5.00"),
    Case("billed again, and only that taken back", USED, SECOND_CREDITED, TWICE + " 5.00"),
    Case("two equal credit notes", USED, LESS_TWICE, f"{AMOUNT} 1.00"),
    Case("a part, then all of it", USED, [billed("2.00"), ALL_OF_IT], TWICE + " 2.00"),
    Case("two lines that are more", USED, [billed("4.00", "4.00")], TWICE + " 3.00"),
    Case("two lines that add up", USED, [billed("3.00", "2.00")], verdict=BALANCED),
    Case("two lines that are less", USED, [billed("3.00", "1.00")], f"{AMOUNT} -1.00"),
    Case("two lines, one without an amount", USED, UNKNOWN_AMOUNT, TWICE + " unknown"),
    Case(
        "two lines in two currencies",
        USED,
        [billed("3.00"), bill("c", line("u", "2.00", 0), **USD)],
        f"{AMOUNT} -2.00; {CURRENCY} 2.00",
    ),
    Case(
        "lines of two currencies without usage",
        [],
        [BILLED, billed("5.00", name="c", **USD)],
        f"{NOT_USED} 5.00; {NOT_USED} 5.00",
    ),
    Case("billed, and again in another currency", USED, again("5.00", **USD), f"{CURRENCY} 5.00"),
    Case("credited in another currency", USED, TAKEN_BACK, f"{MISSING} -5.00"),
    Case("billed, and credited in another currency", USED, [BILLED, *TAKEN_BACK], "", BALANCED),
    Case("other currency", USED, [billed("5.00", **USD)], f"{CURRENCY} -5.00; {CURRENCY} 5.00"),
    Case("lines of two partners", USED, [billed("3.00"), OTHER_LINE], f"{OTHER}partner 0.00"),
    Case("a cent more", USED, [billed("5.01")], f"{AMOUNT} 0.01"),
    Case("digits of a float", [used("u", "5.0000001")], [BILLED], verdict=BALANCED),
    Case("more than rounding", [used("u", "5.00001")], [BILLED], f"{AMOUNT} -0.00001"),
    Case("other quantity", USED, [bill("b", line("u", quantity=2))], f"{OTHER}quantity 0.00"),
    Case("restated", [RESTATED], [BILLED], f"{CHANGED} -1.00"),
    Case("void bill", USED, VOID, verdict=BALANCED),
    Case("only a void bill", USED, [billed("5.00", status="void")], f"{NO_BILL} -5.00"),
    Case(
        "a status of that name", USED, [billed("5.00", status="credit note")], f"{NEW_NOTE} -5.00"
    ),
    Case("a bill without a total", USED, [billed("5.00", total=None)], f"{BELOW} -5.00"),
    Case("credit note for usage that was lowered", [used("u", "3.00")], CREDIT, verdict=BALANCED),
    Case("credit note alone", [], CREDIT[1:]),
    Case("void credit note", USED, VOID_CREDIT, verdict=BALANCED),
    Case("credit note with lines of both signs", [used("u", "2.00")], BOTH_SIGNS, f"{ABOVE} 1.00"),
    Case("credit note that takes off less than its lines", USED, LESS, f"{ABOVE} 2.00"),
    Case("credit note for no usage, and less than its lines", USED, [BILLED, NOTE_BELOW]),
    Case("credited, and never billed", USED, [GONE], f"{NO_BILL} -10.00"),
    Case("usage without a currency", [used("u", **NO_CURRENCY)], [BILLED], BLANK),
    Case("bill without a currency", USED, [billed("5.00", **NO_CURRENCY)], BLANK),
    Case(
        "three bills, no line of which is all of it",
        [used("u", "6.00")],
        [billed("3.00"), billed("5.00", name="c", **LATER), billed("4.00", name="d", **LATER)],
        TWICE + " 6.00",
    ),
    Case(
        "credit note for the price",
        USED,
        [billed("6.00"), bill("c", line("u", "1.00"), kind="credit")],
        verdict=BALANCED,
    ),
    Case("line without a quantity", USED, [bill("b", NO_QUANTITY)], verdict=BALANCED),
    Case("blank reference", USED, [bill("b", line("u"), line("", "9.00"))], f"{FEE} 9.00"),
    Case("blank usage", [used("u", ref="")], [], f"{NO_BILL} -5.00"),
    Case("bill without a partner", USED, [billed("5.00", partner=None)]),
    Case("two bills with a line of the same amount", OF_THREE, BASE_FEES, f"{MISSING} -3.00"),
    Case(UNKNOWN, USED, [*VOID, NOTE], "; ".join(f"unknown_partner: {each}" for each in STRANGE)),
    Case(
        "year 9999",
        [used("u", day="9999-12-31")],
        [billed("5.00", month="9999-12-01")],
        verdict=BALANCED,
    ),
]


def _own(case: Case, record: Record) -> Record:
    """Return a record with identifiers of its own, and that of its partner."""
    name = f"{case.name} {record['id']}"
    own = {"ref": name, **record, "id": name}
    if record["partner"] == FIRST:
        own["partner"] = case.name
    if "lines" in record:
        own["lines"] = [
            {**each, "usage": f"{case.name} {each['usage']}"}
            if (each["usage"] or "").strip()
            else each
            for each in record["lines"]
        ]
    return own


def _publish(stores: Stores, mapping: str = REFERRED) -> None:
    publish(
        stores,
        mapping=mapping,
        partners=partners([FIRST, ANOTHER, *(each.name for each in CASES if each.name != UNKNOWN)]),
        usage=[_own(case, each) for case in CASES for each in case.used],
        billing=[_own(case, each) for case in CASES for each in case.bills],
    )


# What remains to be seen where lines do not say which usage they bill.
BY_MONTH = {
    "a bill without a total": f"{AMOUNT} -5.00",
    "a part, then all of it": f"{AMOUNT} 2.00",
    "a status of that name": f"{NEW_NOTE} -5.00",
    "two lines that are more": f"{AMOUNT} 3.00",
    "a cent more": f"{AMOUNT} 0.01",
    "another": f"{NOT_USED} -3.00",
    "credited, and never billed": f"{NO_BILL} -10.00",
    "two bills with a line of the same amount": f"{AMOUNT} -3.00",
    "credit note for no usage, and less than its lines": f"{AMOUNT} -7.00",
    "credit note that takes off less than its lines": f"{AMOUNT} 2.00",
    "credit note with lines of both signs": f"{AMOUNT} 1.00",
    "discount": f"{AMOUNT} -1.00",
    "fee": f"{AMOUNT} 9.00",
    "fee and total": f"{AMOUNT} 10.00",
    "fee that is credited in part": f"{AMOUNT} 7.00",
    "fee that is credited once": f"{AMOUNT} 9.00",
    "fees of two bills": f"{AMOUNT} 12.00",
    "two fees": f"{AMOUNT} 12.00",
    "total below its lines": f"{AMOUNT} -0.50",
    "fee beside usage of another month": f"{NOT_USED} 5.00",
    "late": f"{AMOUNT} -2.00",
    "lines of two partners": f"{AMOUNT} -2.00",
    "missing": f"{AMOUNT} -2.00",
    "more than rounding": f"{AMOUNT} -0.00001",
    "no identifier": f"{NO_BILL} -5.00",
    "no partner": "unknown_partner: billing without a partner 5.00",
    "bill without a partner": f"{NO_BILL} -5.00",
    "three bills, no line of which is all of it": f"{AMOUNT} 6.00",
    "bill without lines": f"{NOT_USED} 5.00",
    "bill without lines that takes off": f"{NOT_USED} -5.00",
    "blank reference": f"{AMOUNT} 9.00",
    "blank usage": f"{NO_BILL} -5.00",
    "not billed": f"{NO_BILL} -5.00",
    "not used": f"{NOT_USED} 5.00",
    "not used, on two equal bills": f"{NOT_USED} 5.00",
    "not used, and credited in part": f"{NOT_USED} 3.00",
    "not used, and credited to another": f"{NOT_USED} 5.00",
    "not used, credited, billed again": f"{NOT_USED} 5.00",
    "only a void bill": f"{NO_BILL} -5.00",
    "restated": f"{CHANGED} -1.00",
    "second bill": "different: two bills of the same amount 5.00",
    "second bill, not by its name": "different: two bills of the same amount 5.00",
    "billed again, and only that taken back": "different: two bills of the same amount 5.00",
    "taken back, and billed again for more": f"{AMOUNT} 1.00",
    "taken back, and billed twice": "different: two bills of the same amount 5.00",
    "two equal credit notes": f"{AMOUNT} 1.00",
    "two lines that are less": f"{AMOUNT} -1.00",
    "total above its lines": f"{AMOUNT} 0.50",
    "wrong year": f"{AHEAD} -5.00",
}
BY_LINES = {  # where they have amounts and quantities all the same
    "a part, then all of it": f"{OTHER}quantity 2.00",
    "discount": f"{OTHER}quantity -1.00",
    "blank reference": f"{OTHER}quantity 9.00",
    "three bills, no line of which is all of it": f"{OTHER}quantity 6.00",
    "fee": f"{OTHER}quantity 9.00",
    "fee and total": f"{OTHER}quantity 10.00",
    "fee that is credited once": f"{OTHER}quantity 9.00",
    "fees of two bills": f"{OTHER}quantity 12.00",
    "fees that add up to nothing": f"{OTHER}quantity 0.00",
    "two fees": f"{OTHER}quantity 12.00",
    "late": f"{OTHER}quantity -2.00",
    "missing": f"{OTHER}quantity -2.00",
    "other quantity": f"{OTHER}quantity 0.00",
    "two lines, one without an amount": f"{OTHER}quantity 0.00",
}
BREAKS = """
SELECT coalesce(partner, 'no partner'), concat(rule, ': ', cause, ' ', coalesce(regexp_replace(
    difference::VARCHAR, '(\\.\\d\\d\\d*?)0+$', '\\1'), 'unknown'))
FROM reconciliation.breaks
ORDER BY ALL
"""


books = home_of(_publish)


def test_breaks_of_a_situation(books: Stores) -> None:
    found = {case.name: list[str]() for case in CASES} | {ANOTHER: [], "no partner": []}
    for partner, text in books.rows(BREAKS):
        found[partner].append(text)
    verdicts = dict(  # of several currencies one may be balanced
        books.rows("SELECT partner, max(verdict) FROM reconciliation.summary GROUP BY partner")
    )
    assert found["no partner"] == ["unknown_partner: billing without a partner 5.00"]
    shown = {case.name: ("; ".join(found[case.name]), verdicts[case.name]) for case in CASES}
    assert shown == {
        each.name: (each.breaks.format(name=each.name), each.verdict) for each in CASES
    }


USED_AGAIN = [
    used("u"),
    used("v", "7.00", day="2026-08-10"),
    used("w", "3.00", partner=ANOTHER),
    used("x", "10.00", day="2026-08-10"),
    used("y", "10.00"),
    used("z", partner="third"),
]
BILLED_AGAIN = [  # what is billed correctly, and again with a bill of all
    BILLED,
    bill("a", line("v", "7.00"), month="2026-08-01"),
    bill("o", line("w", "3.00"), partner=ANOTHER),
    bill("c", line("u"), line("v", "7.00"), line("w", "3.00"), **LATER),
    # No line of it is what is billed too much.
    bill("d", line("x", "4.00"), line("y", "4.00"), month="2026-08-01"),
    bill("e", line("x", "7.00"), line("y", "7.00"), month="2026-10-01", **LATER),
    # A bill without a period has the months of its usage.
    bill("f", line("u"), line("v", "7.00"), month=None, issued="2026-10-02T00:00:00Z"),
    # Twice, and both times to another partner.
    bill("g", line("z")),
    bill("h", line("z"), **LATER),
]
again_books = home_with(USED_AGAIN, BILLED_AGAIN, [FIRST, ANOTHER, "third"])


def test_what_is_billed_twice_is_in_the_month_and_of_the_partner_of_its_bill(
    again_books: Stores,
) -> None:
    columns = "partner, month(month), subject, difference"
    found = again_books.rows(f"SELECT {columns} FROM reconciliation.breaks ORDER BY ALL")
    assert found == [
        (FIRST, 8, "f|first|2026-08-01", 7),
        (FIRST, 9, "c", 15),
        (FIRST, 9, "f", 5),
        (FIRST, 9, "h", 5),
        (FIRST, 10, "e", 2),
    ]
    verdicts = again_books.rows("""
        SELECT partner_id, month(month), difference, verdict, cause FROM finance.partner_months""")
    assert (ANOTHER, 9, 0, BALANCED, None) in verdicts
    assert ("third", 9, -5, WRONG, f"other partner {FIRST}") in verdicts


BILLED_TO_ANOTHER = [
    bill("a", line("u"), partner=ANOTHER),
    bill("n", line("u"), partner=ANOTHER, kind="credit", **LATER),
    bill("b", line("u"), **LATER),
]
corrected_books = home_with(USED, BILLED_TO_ANOTHER, [FIRST, ANOTHER])


def test_a_bill_that_was_taken_back_names_no_partner(corrected_books: Stores) -> None:
    assert corrected_books.rows(BREAKS) == []
    verdicts = "SELECT verdict FROM reconciliation.summary"
    assert corrected_books.rows(verdicts) == [(BALANCED,), (BALANCED,)]


KEYS = "SELECT connection, key, currency FROM temp.{}"
MONTHS = "SELECT connection, partner, month, currency"
# What must be in no row of a version.
FAULTS = {
    "a rule that is not evaluated": """
        FROM reconciliation.rules WHERE NOT evaluated AND rule <> 'receivables'""",
    "a pair without a status": f"""
        {KEYS.format("used")} UNION {KEYS.format("billed")} WHERE key IS NOT NULL AND apart IS NULL
        EXCEPT {KEYS.format("matches")}""",
    "balanced with a difference": "FROM temp.matches WHERE status = 'balanced' AND difference <> 0",
    "two breaks with one identifier": "SELECT break_id FROM reconciliation.breaks "
    "GROUP BY break_id HAVING count(*) > 1",
    "a bill that is not the sum of its lines": """
        SELECT bill FROM temp.bills JOIN temp.billed AS lines USING (bill)
        GROUP BY bill, bills.amount
        HAVING coalesce(sum(lines.amount), 0) IS DISTINCT FROM coalesce(bills.amount, 0)""",
    "a month that is not the sum of its usage": f"""
        {MONTHS}, sum(amount) FROM temp.used GROUP BY ALL
        EXCEPT {MONTHS}, used_amount FROM reconciliation.summary""",
    "a month that is not the sum of its bills": f"""
        {MONTHS}, sum(amount) FROM temp.bills WHERE apart IS NULL GROUP BY ALL
        EXCEPT {MONTHS}, billed_amount FROM reconciliation.summary""",
    "a roll-forward that does not close": "FROM reconciliation.rollforward WHERE difference <> 0",
}


def test_no_version_has_faults(books: Stores) -> None:
    assert [fault for fault, sql in FAULTS.items() if books.rows(sql)] == []


def test_every_rule_and_pair_is_there(books: Stores) -> None:
    assert books.rows("SELECT count(*) FROM reconciliation.rules") == [(25,)]
    pairs = "SELECT key, status, used_amount, billed_amount FROM temp.matches "
    for partner, expected in {
        "balanced": ("balanced u", "balanced", 5, 5),
        "credit note alone": ("credit note alone u", "not used", None, None),
        "no identifier": ("?no identifier u", "not billed", 5, None),  # it has a key all the same
    }.items():
        assert books.rows(f"{pairs} WHERE partner = '{partner}'") == [expected]
    month = "SELECT month FROM temp.matches WHERE key = 'fee beside usage of another month u'"
    assert books.rows(month) == [(date(2026, 9, 1),)]  # that of the usage


def test_every_bill_counts_once_by_its_status_and_kind(books: Stores) -> None:
    expected = defaultdict[tuple[Any, ...], Decimal](Decimal)
    for case in CASES:
        for each in (each for each in case.bills if each["total"] is not None):
            is_credit, partner = each["kind"] == "credit", _own(case, each)["partner"]
            counted = "credited_amount" if is_credit else "billed_amount"
            column = counted if each["status"] == "paid" else "not_counted_amount"
            amount = Decimal(each["total"]) * (-1 if is_credit else 1)
            expected[partner, each["currency"], column] += amount
    query = "SELECT partner, currency, '{0}', sum({0}) FROM reconciliation.summary GROUP BY ALL"
    columns = ("billed_amount", "credited_amount", "not_counted_amount")
    rows = [row for column in columns for row in books.rows(query.format(column))]
    assert {row[:3]: row[3] for row in rows if row[3] is not None} == expected


@pytest.mark.long
def test_without_references_partners_months_are_compared(stores: Stores) -> None:
    for without, others in ("line_", {}), ("line_usage", BY_LINES):
        _publish(stores, "\n".join(each for each in MAPPING.splitlines() if without not in each))
        found = {name: text for name, text in stores.rows(BREAKS) if "currenc" not in name}
        assert found.pop(UNKNOWN)
        assert found == BY_MONTH | others


def test_each_statement_comes_after_those_that_it_needs() -> None:
    for at, name in enumerate(STATEMENTS):
        needs = {*read_statement(name).needs.split()} & {*STATEMENTS}
        assert needs <= {*STATEMENTS[:at]}, name

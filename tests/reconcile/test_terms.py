"""What counts as equal, by a tolerance or without a partner; connections are never mixed."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import DAY, Reading, Record, Stores, read

TOLERANT = f"{MAPPING}\n[tolerance]\nline_minor = 2\nline_percent = 1\nmonth_minor = 3\n"
BALANCED, WITHIN, WRONG = "balanced", "within tolerance", "out of balance"
SEPTEMBER, AUGUST = "2026-09-01", "2026-08-01"
# name, used, billed, currency, month of the bill; status of the pair, verdict of the months
PAIRS = (
    ("equal", "1.00", "1.00", "EUR", SEPTEMBER, BALANCED, BALANCED),
    ("two cents", "1.00", "1.02", "EUR", SEPTEMBER, WITHIN, WITHIN),
    ("three cents", "1.00", "1.03", "EUR", SEPTEMBER, "other amount", WRONG),
    ("one percent", "100.00", "99.00", "EUR", SEPTEMBER, WITHIN, WITHIN),
    ("more than one percent", "100.00", "98.99", "EUR", SEPTEMBER, "other amount", WRONG),
    ("one percent of what is given back", "-100.00", "-101.00", "EUR", SEPTEMBER, WITHIN, WITHIN),
    ("two yen", "10.00", "12.00", "JPY", SEPTEMBER, WITHIN, WITHIN),
    ("three yen", "10.00", "13.00", "JPY", SEPTEMBER, "other amount", WRONG),
    ("another month, three cents", "0.03", "0.03", "EUR", AUGUST, BALANCED, WITHIN),
    ("another month, four cents", "0.04", "0.04", "EUR", AUGUST, BALANCED, WRONG),
    ("another month, three yen", "3.00", "3.00", "JPY", AUGUST, BALANCED, WITHIN),
)


@pytest.mark.long
def test_differences_within_tolerance_are_no_breaks(stores: Stores) -> None:
    publish(
        stores,
        mapping=TOLERANT,
        partners=partners(name for name, *_ in PAIRS),
        usage=[
            used(name, amount, partner=name, currency=currency)
            for name, amount, _, currency, *_ in PAIRS
        ],
        billing=[
            bill(name, line(name, amount), partner=name, currency=currency, month=month)
            for name, _, amount, currency, month, *_ in PAIRS
        ],
    )
    found = stores.rows("""
        SELECT pairs.key, pairs.status, min(months.verdict), max(months.verdict)
        FROM temp.matches AS pairs
        JOIN reconciliation.summary AS months ON months.partner = pairs.partner
        GROUP BY ALL ORDER BY ALL""")
    assert found == sorted((name, status, v, v) for name, *_, status, v in PAIRS)
    month = "SELECT tolerated::VARCHAR FROM reconciliation.summary WHERE partner = '{}' ORDER BY 1"
    assert stores.rows(month.format("another month, three cents")) == [("-0.03",), ("0.03",)]
    wrong = sorted(name for name, *_, status, _ in PAIRS if status == "other amount")
    assert stores.rows("SELECT subject FROM reconciliation.breaks ORDER BY subject") == [
        (name,) for name in wrong
    ]


@pytest.mark.long
def test_a_pair_without_a_partner_is_not_balanced_and_makes_no_month(stores: Stores) -> None:
    nobody: dict[str, Any] = {"partner": None}
    publish(
        stores,
        partners=partners([FIRST]),
        usage=[used("u", **nobody), used("v", **nobody), used("w", day="2026-07-10")],
        billing=[bill("b", line("u"), **nobody), bill("c", line("v"), month="2026-08-01")],
    )
    pairs = "SELECT key, status FROM temp.matches WHERE key <> 'w' ORDER BY key"
    assert stores.rows(pairs) == [("u", "unknown partner"), ("v", "unknown partner")]
    months = "SELECT partner, strftime(month, '%m') FROM reconciliation.summary ORDER BY month"
    assert stores.rows(months) == [(FIRST, "07"), (FIRST, "08"), (None, "09")]


Lists = dict[str, list[Record]]
NAMES = (FIRST, "same", "new", "none")
PARTNERS: list[Record] = [{**each, "externalId": "x"} for each in partners(NAMES)]
USAGE = [*map(used, "uvw"), used("old", day="2026-05-10"), used("x", currency=None)]
BILLS = [
    bill("b", line("u", "5.01"), line(None, "1.00")),
    bill("c", line("v"), line("v")),
    bill("d", line("nothing")),
    bill("e", line("nothing"), kind="credit"),
    bill("f", line("nothing"), currency="USD"),
    bill("g", line("x"), partner="nobody", currency=None),
]
BEFORE: Lists = {"partners": PARTNERS, "usage": USAGE, "billing": BILLS}
AFTER: Lists = {
    "partners": [
        *PARTNERS[:2],
        {**PARTNERS[2], "externalId": "y"},
        {**PARTNERS[3], "externalId": " "},
    ],
    "usage": [used("u", "6.00"), *USAGE[1:]],
    "billing": [*BILLS[:-1], bill("g", line("x", "4.00"), partner="nobody", currency=None)],
}
OTHER: Lists = {  # of the other connection
    "partners": AFTER["partners"],
    "usage": [*USAGE[:-1], used("x", currency="USD"), used("between", day="2026-07-10")],
    "billing": [
        bill("z", line("w", "4.00")),
        *({**each, "issued": "2026-09-01T00:00:00Z"} for each in BILLS),
    ],
}
TABLES = (
    *("exceptions", "matches", "break_rows", "summary", "rollforward"),
    *("restatements", "gaps", "external_ids", "late_arrivals"),
)


def of_acme(stores: Stores) -> dict[str, list[tuple[Any, ...]]]:
    rows = "FROM {} WHERE connection = 'acme' ORDER BY ALL"
    schemas = {table: "temp" if table == "matches" else "reconciliation" for table in TABLES}
    return {name: stores.rows(rows.format(f"{schemas[name]}.{name}")) for name in TABLES}


def publish_all(stores: Stores, connection: str, *states: Lists) -> None:
    for lists in states:
        for stream, records in lists.items():
            read(stores, Reading(records, stream, connection, page_size=50))
    publish(stores)


@pytest.mark.long
def test_lists_of_two_connections_are_never_mixed(stores: Stores) -> None:
    """What is found of one connection is the same, whatever another one with equal keys has."""
    publish_all(stores, "acme", BEFORE, AFTER)
    found = of_acme(stores)
    assert all(found.values())
    assert [row[-8] for row in found["break_rows"] if row[0] == "unknown_partner"] == ["g"]
    assert {row[1]: row[4:6] for row in found["external_ids"]} == {
        FIRST: (None, "duplicate"),
        "same": (None, "duplicate"),
        "new": ("x", "changed"),
        "none": ("x", "blank"),
    }
    publish_all(stores, "another", BEFORE, OTHER)
    assert of_acme(stores) == found


@pytest.mark.long
def test_a_bill_that_was_withdrawn_is_the_cause(stores: Stores) -> None:
    names = [f"p{number}" for number in range(11)]  # fewer would be held
    usage = [used(f"u-{name}", partner=name) for name in names]
    bills = [bill(f"b-{name}", line(f"u-{name}"), partner=name) for name in names]
    publish(stores, partners=partners(names), usage=usage, billing=bills)
    publish(stores, billing=bills[1:])
    causes = "SELECT cause, difference::INTEGER FROM reconciliation.breaks ORDER BY ALL"
    assert stores.rows(causes) == [
        ("billing that is no longer in the list", 0),
        ("the bill is no longer in the list", -5),
    ]
    publish(stores, billing=[{**bills[0], "status": "void"}, *bills[1:]])
    assert stores.rows(f"{causes[:-12]} WHERE gone_at IS NULL") == [("no bill for the month", -5)]


@pytest.mark.long
def test_usage_of_a_month_has_no_day_from_which_it_is_late(stores: Stores) -> None:
    late = (
        "SELECT late_rows, lag_p50, lag_max, suggested_grace_days FROM reconciliation.late_arrivals"
    )
    of_month = used("u", day="2026-09", recorded="2026-10-03T02:30:00Z")
    publish(stores, partners=partners([FIRST]), usage=[of_month], billing=[bill("b", line("u"))])
    assert stores.rows(late) == [(1, None, None, 3)]
    publish(stores, usage=[{**of_month, "day": "2026-09-02"}])
    assert stores.rows(late) == [(1, 31, 31, 3)]


@pytest.mark.long
def test_days_of_times_are_those_of_the_mapping(stores: Stores) -> None:
    last_day = used("u", day="2026-09-30", recorded="2026-10-01T02:30:00Z")  # 22:30 in New York
    stranger = used("v", "7.00", day="2026-11-02", partner="nobody")
    publish(
        stores,
        mapping=f'time_zone = "America/New_York"\n{MAPPING}',
        partners=partners([FIRST]),
        usage=[last_day, stranger],
        billing=[bill("b", line("u"))],
    )
    balances = (
        "SELECT rated, late, billed, closing FROM finance.balances WHERE partner = 'first Ltd'"
    )
    assert [[*map(str, row)] for row in stores.rows(balances)] == [["5.00", "0.00", "5.00", "0.00"]]
    late = "SELECT late_rows, lag_max FROM reconciliation.late_arrivals ORDER BY month LIMIT 1"
    assert stores.rows(late) == [(0, 0)]
    assert stores.rows("SELECT usage, is_due FROM finance.unbilled_usage") == [("v", False)]


AHEAD_OF = range(-3, 15)  # months before and after that of the data


def month_after(day: date, months: int) -> date:
    number = day.year * 12 + day.month - 1 + months
    return date(number // 12, number % 12 + 1, 1)


@pytest.mark.long
@pytest.mark.parametrize("by", ["usage", "month"])
@pytest.mark.parametrize("read_on", [date(2027, 1, 31), date(2028, 2, 29), date(2027, 3, 2)])
def test_no_month_is_not_due_for_ever(stores: Stores, by: str, read_on: date) -> None:
    """Usage that is not billed is a break, unless its bills may still come: at most a month ahead.

    So is a bill without usage, if months are compared.
    """
    mapping = f"grace_days = 2\n{MAPPING}"
    if by == "month":
        mapping = mapping.replace('line_usage = "lines[].usage"\n', "")
    months = {f"{number:+}": month_after(read_on, number) for number in AHEAD_OF}
    usage = [used(name, partner=name, day=f"{month}") for name, month in months.items()]
    bills = [
        bill(name, line("x"), partner=f"bill{name}", month=f"{month}")
        for name, month in months.items()
    ]
    # Three lists are read, a day after each other.
    stores.clock.now = datetime.combine(read_on, time(12), UTC) - 3 * DAY
    names = partners([*months, *(each["partner"] for each in bills)])
    publish(stores, mapping=mapping, partners=names, usage=usage, billing=bills)
    if by == "usage":
        bills = []
    month_of = months | {each["partner"]: months[each["id"]] for each in bills}
    last_day = min(read_on.day, (month_after(read_on, 2) - DAY).day)
    may_come = month_after(read_on, 1).replace(day=last_day)
    expected = {
        partner: not (month_after(month, 1) + 2 * DAY > read_on and month <= may_come)
        for partner, month in month_of.items()
    }
    found = stores.rows("SELECT partner, uncertain FROM reconciliation.breaks")
    found = [row for row in found if row[0] in month_of]
    assert sorted(found) == sorted((name, None) for name in expected if expected[name])
    verdicts = dict(stores.rows("SELECT partner, verdict FROM reconciliation.summary"))
    assert {name: verdicts[name] for name in month_of} == {
        name: WRONG if is_break else "tentative" for name, is_break in expected.items()
    }

"""How severe breaks are: by materiality, whatever their age, and together where they are small."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipelines.core.files import write_durably
from pipelines.finance.books import make_books
from pipelines.finance.breaks import BreakFilter, list_breaks
from pipelines.finance.mapping import Mapping, mapping_of, parse_mapping, read_mapping
from pipelines.finance.materiality import propose_materiality
from pipelines.finance.proposals import accept, propose
from tests.effort import EFFORT
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, publish, used
from tests.versions.homes import Record, Stores, home_of

MATERIAL = f"{MAPPING}\n[materiality]\nEUR = 10\njpy = 1000\n"
# Of each currency: what one record is billed more, and how severe that is.
MORE = {
    "EUR": {"a": ("10.00", "high"), "b": ("9.99", "medium"), "c": ("1.00", "medium"),
            "d": ("0.99", "low"), "e": ("-500.00", "high")},
    "JPY": {"f": ("1000", "high"), "g": ("999", "medium"), "h": ("99", "low")},
    # Nothing is billed in a month that is over, so nobody can say what is small.
    "CHF": {"i": ("0.01", "high")},
}  # fmt: skip
ORDER = ["i", "e", "f", "a", "g", "b", "c", "h", "d"]
SEVERITIES = "SELECT subject, severity FROM reconciliation.breaks WHERE gone_at IS NULL"
MATERIALITY = "SELECT currency, amount, source FROM reconciliation.materiality ORDER BY ALL"


def lists(more: dict[str, dict[str, tuple[str, str]]]) -> dict[str, list[Record]]:
    usage = []
    bills = []
    for currency, records in more.items():
        # The month of CHF is not over yet: its bills are in no median.
        day = "2026-11-01" if currency == "CHF" else "2026-09-10"
        for name, (amount, _severity) in records.items():
            about = {"currency": currency, "partner": f"partner {name}"}
            usage.append(used(name, "600.00", **about, day=day))
            total = Decimal("600.00") + Decimal(amount)
            bills.append(bill(f"b{name}", line(name, str(total)), **about, month=f"{day[:7]}-01"))
    names = [f"partner {name}" for records in more.values() for name in records]
    return {"partners": partners(names), "usage": usage, "billing": bills}


def publish_lists(stores: Stores) -> None:
    made = lists(MORE)
    publish(
        stores,
        mapping=MATERIAL,
        partners=made["partners"],
        usage=made["usage"],
        billing=made["billing"],
    )


books = home_of(publish_lists)


def test_severity_and_order_follow_materiality_and_not_age(books: Stores) -> None:
    expected = {name: severity for of in MORE.values() for name, (_, severity) in of.items()}
    assert dict(books.rows(SEVERITIES)) == expected
    listed = list_breaks(books, BreakFilter())
    assert [each["subject"] for each in listed.breaks.to_pylist()] == ORDER
    shown = books.rows("SELECT partner_id FROM finance.open_breaks")
    assert [name.removeprefix("partner ") for (name,) in shown] == ORDER
    assert [(each["currency"], each["source"]) for each in listed.materiality] == [
        ("EUR", "mapping"),
        ("JPY", "mapping"),
    ]
    books.clock.now += timedelta(days=200)
    publish(books, mapping=MATERIAL, usage=lists(MORE)["usage"])
    del expected["i"]  # its month is over now, and it has a materiality
    found = dict(books.rows(SEVERITIES))
    assert found.pop("i") == "low"
    assert found == expected


@pytest.mark.long
def test_without_an_amount_in_the_mapping_it_is_proposed_from_bills(books: Stores) -> None:
    write_durably(books.home.mapping_file, MAPPING.encode())
    assert make_books(books).is_new
    # EUR 2,521.98 and JPY 3,898 are billed in September.
    proposed = [("EUR", Decimal(2), "proposal"), ("JPY", Decimal(5), "proposal")]
    assert books.rows(MATERIALITY) == proposed
    rows = {each["role"]: each for each in propose(books)}
    assert (rows["materiality.EUR"]["field"], rows["materiality.JPY"]["field"]) == ("2", "5")
    assert "2521.98, the median of 1 complete month" in rows["materiality.EUR"]["evidence"]
    assert "materiality.CHF" not in rows
    accept(books, replace=True)
    mapping = read_mapping(books.home.mapping_file)
    assert mapping
    assert mapping.materiality == {"EUR": 2, "JPY": 5}
    # What a person set stays, also if it is spelled in another way.
    text = books.home.mapping_file.read_text().replace('"EUR" = 2', "eur = 70")
    write_durably(books.home.mapping_file, text.encode())
    accept(books, replace=True)
    assert parse_mapping(books.home.mapping_file.read_text()).materiality == {"eur": 70, "JPY": 5}


def test_age_counts_from_the_end_of_the_month(books: Stores) -> None:
    ages = """
        SELECT month, age_days, first_seen::DATE FROM reconciliation.breaks
        WHERE subject IN ('a', 'i') ORDER BY month"""
    (september, november) = books.rows(ages)
    as_of = books.rows("SELECT as_of::DATE FROM reconciliation.basis")[0][0]
    assert september == (date(2026, 9, 1), (as_of - date(2026, 9, 30)).days, as_of)
    assert september[1] > 30
    assert november == (date(2026, 11, 1), 0, as_of)  # it is not over: no negative age
    first_seen = "SELECT min(first_seen), max(first_seen) FROM reconciliation.breaks"
    known = books.rows(first_seen)
    books.clock.now += timedelta(days=10)
    publish(books, mapping=MATERIAL, partners=lists(MORE)["partners"])
    assert books.rows(ages)[0][1] >= september[1] + 10
    assert books.rows(first_seen) == known


@pytest.mark.long
def test_small_breaks_that_add_up_are_shown_as_high(books: Stores) -> None:
    small = {"x": "4.00", "y": "5.99", "z": "0.01"}
    usage = [used(name, "1.00", partner="partner a") for name in small]
    bills = [
        bill(f"b{name}", line(name, str(1 + Decimal(more))), partner="partner a")
        for name, more in small.items()
    ]
    made = lists(MORE)
    publish(
        books,
        mapping=MATERIAL,
        usage=made["usage"] + usage,
        billing=made["billing"] + bills,
    )
    (found,) = list_breaks(books, BreakFilter()).small_breaks
    about = (found["partner"], found["currency"], found["breaks"], found["difference"])
    assert about == ("partner a", "EUR", 3, Decimal("10.00"))
    assert list_breaks(books, BreakFilter(partner="partner b")).small_breaks == []
    # Without one of them, or if somebody resolved it, they are below.
    ((break_id,),) = books.rows("SELECT break_id FROM reconciliation.breaks WHERE subject = 'z'")
    decide(books, "break_resolve", break_id)
    assert make_books(books).is_new
    assert list_breaks(books, BreakFilter()).small_breaks == []


@pytest.mark.parametrize("text", ["EUR = 0", "EUR = -1", 'EUR = "x"', "EUR = 1e15", "EUR = 1e-5"])
def test_an_amount_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"materiality\.EUR: "):
        mapping_of(f"[materiality]\n{text}".encode(), tmp_path)


def nearest(median: Fraction) -> Decimal:
    """Return the nearest of 1, 2 and 5 x 10^k, the smaller one of two; in other words."""
    steps = [Decimal(digit).scaleb(power) for power in range(-4, 16) for digit in (1, 2, 5)]
    return min(steps, key=lambda step: (abs(Fraction(step) - median / 1000), step))


def test_what_is_proposed_is_a_thousandth_of_the_median(stores: Stores) -> None:
    """Of random months, the last three that are over; a month that is not over does not count."""
    chance = Random(EFFORT)
    bills: list[Record] = [bill("b", line("u"), currency="XXX")]
    expected: dict[str, Any] = {}
    for code in ("EUR", "USD", "GBP", "JPY", "KWD", "SEK"):
        months = sorted(chance.sample(range(1, 11), chance.randint(1, 5)))
        totals = [round(Decimal(10 ** chance.uniform(0, 12)), 2) for _month in months]
        for month, total in zip([*months, 11], [*totals, Decimal("9e9")], strict=True):
            about = {"currency": code, "month": f"2026-{month:02}-01"}
            bills.append(bill(f"{code} {month}", line(None, str(total)), **about))
        last = sorted(totals[-3:])
        expected[code] = nearest(Fraction(last[(len(last) - 1) // 2]))
    publish(stores, partners=partners([FIRST]), usage=[used("u", currency="XXX")], billing=bills)
    found = {code: amount for code, amount, _source in stores.rows(MATERIALITY)}
    assert found.pop("XXX")
    assert found == expected
    with stores.warehouse.open() as db:
        mapping = parse_mapping(MAPPING)
        again = {each["currency"]: each["amount"] for each in propose_materiality(db, mapping)}
        assert again == stores_amounts(stores)
        assert propose_materiality(db, Mapping()) == []


@pytest.mark.long
def test_materiality_of_bills_over_several_months_is_that_of_their_lines(stores: Stores) -> None:
    """A bill without a period has a line of each month; the books count each in its own."""
    days = {"a": "2026-08-03", "b": "2026-09-03", "c": "2026-10-03"}
    usage = [used(name, "2000.00", day=day) for name, day in days.items()]
    document = bill("b", *(line(name, "2000.00") for name in days), month=None)
    text = MAPPING.replace('period = "month"\n', "")
    publish(stores, mapping=text, usage=usage, billing=[document])
    with stores.warehouse.open() as db:
        (proposed,) = propose_materiality(db, parse_mapping(text))
    assert {"EUR": proposed["amount"]} == stores_amounts(stores) == {"EUR": 2}


def stores_amounts(stores: Stores) -> dict[str, Decimal]:
    return {code: amount for code, amount, _source in stores.rows(MATERIALITY)}


def publish_of_another_partner(stores: Stores) -> None:
    """Publish usage that another partner is billed for: at the same price, and for less."""
    publish(
        stores,
        mapping=MATERIAL,
        partners=partners([FIRST, "second"]),
        usage=[used("same", "600.00"), used("less", "9.50"), used("tiny", "5.00")],
        billing=[
            bill("b1", line("same", "600.00"), partner="second"),
            bill("b2", line("less", "1.50"), partner="second"),
            bill("b3", line("tiny", "4.99")),
        ],
    )


of_another = home_of(publish_of_another_partner)


def test_what_another_partner_is_billed_is_at_stake_as_a_whole(of_another: Stores) -> None:
    query = """
        SELECT subject, cause, severity, at_stake::VARCHAR, difference::VARCHAR
        FROM reconciliation.breaks ORDER BY subject
    """
    assert of_another.rows(query) == [
        ("less", "other partner", "medium", "9.50", "-8.00"),
        ("same", "other partner", "high", "600.00", "0.00"),
        ("tiny", "other amount", "low", "0.01", "-0.01"),
    ]
    listed = list_breaks(of_another, BreakFilter())
    assert [each["subject"] for each in listed.breaks.to_pylist()] == ["same", "less", "tiny"]
    assert listed.small_breaks == []
    sums = "SELECT sum(difference)::VARCHAR FROM finance.month_totals WHERE currency = 'EUR'"
    assert of_another.rows(sums) == [("-8.01",)]

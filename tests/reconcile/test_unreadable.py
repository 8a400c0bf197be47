"""Values of roles in other columns than usual, and records that cannot be read."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Record, Stores, home_of

ANOTHER = "another"
BY_MONTH = MAPPING.replace('line_usage = "lines[].usage"\n', "")
IN_BRAZIL = f'time_zone = "America/Sao_Paulo"\n{BY_MONTH}'
BREAKS = "SELECT rule, partner, difference, doubt FROM reconciliation.breaks WHERE gone_at IS NULL"
DOUBT = "may be explained by {} that cannot be read"
# The last hour of September in Brazil, and one that it is not.
SPELLED = (
    "2026-10-01T02:30:00Z", "2026-09-30T23:30:00-03:00", "2026-10-01T02:30:00.123456789Z",
    "2026-09-30T23:30:00-0300", "2026-09-30T23:30:00-03", "2026-10-01 02:30:00+00:00",
    "2026-10-01 02:30:00 UTC", "2026-10-01T02:30Z", "2026-10-01t02:30:00z", "2026-09-30T23:30:00",
    "2026-09-30", "2026-09",
)  # fmt: skip
GUESSED = (1790822400, "1790822400", 1790822400000, "10/01/2026 02:30", True, {"at": 1}, "soon")


# What the usage of a partner says beside that of the model, and the roles that cannot be read.
READABLE: list[Record] = [
    {"amount": "5"}, {"amount": "50e-1"}, {"amount": 5}, {"amount": "5.0000"}, {"quantity": "1"},
    {"day": "2026-09-30T23:59:59.123456789Z"}, {"quantity": "10e-1"}, {"partner": 7},
]  # fmt: skip
UNREADABLE: dict[str, Record] = {
    "five": {"amount": "five"},
    "true": {"amount": True},
    '{"value": "5.00"}': {"amount": {"value": "5.00"}},
    "9" * 40: {"amount": "9" * 40},
    '{"code":"EUR"}': {"currency": {"code": "EUR"}},
    '["first"]': {"partner": ["first"], "currency": "JPY"},
}


def _odd(stores: Stores) -> None:
    """Publish usage as the model has it, so that columns have its types; then other values."""
    stores.configure()
    odd = [*READABLE, *UNREADABLE.values()]
    names = [f"p{at}" for at in range(len(odd))]
    names[READABLE.index({"partner": 7})] = "7"
    own = [
        {"partner": name, "currency": "EUR", **each} for name, each in zip(names, odd, strict=True)
    ]
    yen = {"partner": names[-1], "currency": "JPY"}
    lists: dict[str, Any] = {
        "usage": [used(name, partner=name) for name in names],
        "billing": [bill(f"b{name}", line(name), partner=name) for name in names],
    }
    lists["billing"][-1] = bill(f"b{names[-1]}", line(names[-1]), **yen)
    publish(stores, partners=partners([*names, FIRST, ANOTHER]), **lists)
    usage = [used(name, **each) for name, each in zip(names, own, strict=True)]
    usage.append(used("q", deep=json.loads("[" * 70 + "]" * 70)))  # goes to quarantine
    lists["billing"] += [bill("bq", line("q")), bill("bw", line("w"), partner=ANOTHER)]
    publish(stores, usage=usage, billing=lists["billing"])


odd = home_of(_odd)


@pytest.mark.long
def test_what_is_spelled_otherwise_counts_and_what_cannot_be_read_is_no_difference(
    odd: Stores,
) -> None:
    read = odd.rows("SELECT amount, month FROM temp.used WHERE unread IS NULL")
    assert read == [(5, date(2026, 9, 1))] * len(READABLE)
    found = odd.rows("SELECT sent, any_partner FROM reconciliation.unreadable")
    assert {*found} == {(None, False), *((sent, sent == '["first"]') for sent in UNREADABLE)}
    # A record in quarantine may be what a bill bills, if it is of that partner.
    breaks = {row[1:] for row in odd.rows(BREAKS)}
    assert breaks == {(FIRST, 5, DOUBT.format("usage")), (ANOTHER, 5, None)}
    verdicts = odd.rows("SELECT verdict, count(*) FROM reconciliation.summary GROUP BY ALL")
    # One partner has two currencies now, and the usage without a partner is in a row of its own.
    unproven = {"not proven": len(UNREADABLE) + 3}
    assert dict(verdicts) == {"balanced": len(READABLE), "out of balance": 1, **unproven}
    cli = Cli(odd.home)
    said = cli("breaks", code=3).stdout
    assert said.startswith("Not known: ")
    assert "Not known: 4 records of usage cannot be read: field amount" in said
    assert "Not known: 1 record of usage is in quarantine" in said
    assert "EUR 5.00" in said
    assert len(cli.json("breaks", code=3)["not_known"]) == 4


def _one_object(stores: Stores) -> None:
    """Publish bills of which one has an object in place of its lines, from the first scan on."""
    names = ["p0", "p1", "p2"]
    bills = [bill(f"b{name}", line(name), partner=name) for name in names]
    bills[0] = {**bills[0], "lines": line("p0")}
    usage = [used(name, partner=name) for name in names]
    publish(stores, mapping=MAPPING, partners=partners(names), usage=usage, billing=bills)


one_object = home_of(_one_object)


def test_a_bill_with_an_object_for_lines_leaves_the_lines_of_other_bills(
    one_object: Stores,
) -> None:
    found = one_object.rows("SELECT partner, verdict FROM reconciliation.summary ORDER BY ALL")
    assert found == [("p0", "not proven"), ("p1", "balanced"), ("p2", "balanced")]
    assert one_object.rows("SELECT id, roles FROM reconciliation.unreadable") == [("bp0", "lines")]
    assert {row[1] for row in one_object.rows(BREAKS)} <= {"p0"}


OF_LINES = f'{MAPPING}line_currency = "lines[].currency"\n'
WITHOUT_USAGE = OF_LINES.replace('line_usage = "lines[].usage"\n', "")


def _line_currencies(stores: Stores) -> None:
    stores.configure()
    names = {"p0": "EUR", "p1": " eur", "p2": None, "p3": "USD"}
    bills = []
    for name, currency in names.items():
        bills.append(bill(f"b{name}", {**line(name), "currency": currency}, partner=name))
    usage = [used(name, partner=name) for name in names]
    publish(stores, mapping=OF_LINES, partners=partners(names), usage=usage, billing=bills)


line_currencies = home_of(_line_currencies)


def test_a_line_of_another_currency_than_its_bill_is_not_compared(line_currencies: Stores) -> None:
    verdicts = "SELECT partner, verdict FROM reconciliation.summary ORDER BY ALL"
    balanced = [(name, "balanced") for name in ("p0", "p1", "p2")]
    assert line_currencies.rows(verdicts) == [*balanced, ("p3", "not proven")]
    assert line_currencies.rows("SELECT key, status FROM reconciliation.exceptions") == [
        ("p3", "unreadable")
    ]
    said = Cli(line_currencies.home)("breaks", code=3).stdout
    assert (
        "1 record of billing cannot be compared, as a line is of another currency than its bill: "
        "field lines[].currency (billing.line_currency), such as `USD`."
    ) in " ".join(said.split())
    # Months are compared by the totals of bills.
    publish(line_currencies, mapping=WITHOUT_USAGE)
    assert {verdict for _partner, verdict in line_currencies.rows(verdicts)} == {"balanced"}


def _periods(stores: Stores) -> None:
    stores.configure()
    names = [f"p{at}" for at in range(len(SPELLED) + len(GUESSED))]
    days = zip(names, (*SPELLED, *GUESSED), strict=True)
    usage = [used(name, partner=name, day=day) for name, day in days]
    bills = [bill(name, partner=name, total="5.00", month="2026-09") for name in names]
    publish(stores, mapping=IN_BRAZIL, partners=partners(names), usage=usage, billing=bills)


periods = home_of(_periods)


def test_every_period_that_says_a_month_is_in_it(periods: Stores) -> None:
    found = periods.rows(
        "SELECT month, verdict, count(*) FROM reconciliation.summary WHERE used_rows > 0 "
        "GROUP BY ALL"
    )
    assert {*found} == {
        (date(2026, 9, 1), "balanced", len(SPELLED)),
        (None, "not proven", len(GUESSED)),
    }
    breaks = periods.rows("SELECT rule, difference, doubt FROM reconciliation.breaks")
    assert breaks == [("not_used", Decimal(5), DOUBT.format("usage"))] * len(GUESSED)
    message = Cli(periods.home).json("breaks", code=3)["not_known"][-1]["message"]
    assert f"{len(GUESSED)} records of usage cannot be read: field day (usage.period)" in message
    assert "Their readable amounts: EUR 35.00." in message


def _times(stores: Stores) -> None:
    """Publish usage of which every period is a moment, so that its column is one of times."""
    stores.configure()
    times = ("2026-10-01T02:59:59Z", "2026-10-01T03:00:00Z", "2026-09-30T23:30:00-03:00")
    usage = [used(f"u{at}", day=day) for at, day in enumerate(times)]
    publish(stores, mapping=IN_BRAZIL, partners=partners([FIRST]), usage=usage, billing=[bill("b")])


times = home_of(_times)


def test_a_moment_is_of_the_month_that_it_has_in_the_time_zone(times: Stores) -> None:
    months = times.rows("SELECT id, month FROM temp.used ORDER BY id")
    september, october = date(2026, 9, 1), date(2026, 10, 1)
    assert months == [("u0", september), ("u1", october), ("u2", september)]


def _quantities(stores: Stores) -> None:
    """Publish months of equal amounts, of which each but the last lacks a quantity of one side."""
    stores.configure()
    names = ["less used", "less billed", "not read", "other"]
    usage = [used(name, partner=name) for name in names]
    bills = [bill(f"b{name}", line(name), partner=name) for name in names]
    usage[0] = {**usage[0], "quantity": "one"}
    usage.append(used("more", "none", partner=names[2], quantity="none"))
    bills[1] = {**bills[1], "lines": [{**line(names[1]), "quantity": "one"}]}
    for at in (2, 3):
        bills[at] = {**bills[at], "lines": [line(names[at], quantity=2)]}
    publish(stores, mapping=BY_MONTH, partners=partners(names), usage=usage, billing=bills)


quantities = home_of(_quantities)


def test_a_quantity_that_cannot_be_read_may_explain_a_difference_of_quantities_alone(
    quantities: Stores,
) -> None:
    found = quantities.rows(
        "SELECT partner, cause, difference, doubt FROM reconciliation.breaks ORDER BY ALL"
    )
    assert found == [
        ("not read", "other quantity", 0, DOUBT.format("usage")),
        ("other", "other quantity", 0, None),
    ]
    verdicts = dict(quantities.rows("SELECT partner, verdict FROM reconciliation.summary"))
    assert [verdicts[name] for name in ("less billed", "less used")] == ["not proven"] * 2

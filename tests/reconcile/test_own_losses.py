"""Own books lose nothing in silence: what cannot be compared is a doubt or a reason, or a break."""

from datetime import date
from typing import Any

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.finance import own_books, own_check
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month
from pipelines.finance.closing.holding import copies_with
from pipelines.finance.mapping import parse_mapping
from pipelines.versions.erase import NothingFound
from tests.reconcile.books import FIRST, MAPPING, bill, decide, line, partners, publish, used
from tests.reconcile.own import HEAD, LEDGER, METER, METERED, SEPTEMBER, publish_own, write
from tests.versions.homes import Stores, home_of
from tests.versions.named import erase, files_with

FIRST_MONTHS = ["2026-08", "2026-09"]


def publish_many(stores: Stores) -> None:
    """Publish a bill of each of twelve ids in August and September, booked in two files."""
    stores.configure()
    numbers = range(12)
    usage = [used(f"u{number}") for number in numbers]
    billing = [
        bill(f"b{number}", line(f"u{number}"), month=FIRST_MONTHS[number > 0]) for number in numbers
    ]
    write(stores, "ledger/2026-08.csv", [HEAD, "b0,first,2026-08-31,5.00,EUR"])
    write(stores, "ledger/2026-09.csv", [HEAD, *map(booked, numbers[1:])])
    publish(
        stores, mapping=MAPPING + LEDGER, partners=partners([FIRST]), usage=usage, billing=billing
    )


def booked(number: int, day: str = "2026-09-30") -> str:
    return f"b{number},first,{day},5.00,EUR"


many = home_of(publish_many)
own = home_of(publish_own)


def remade(stores: Stores, mapping: str = "") -> Stores:
    if mapping:
        write_durably(stores.home.mapping_file, (MAPPING + mapping).encode())
    make_books(stores, again=True)
    return stores


def with_setting(setting: str) -> str:
    return LEDGER.replace("[own.ledger.roles]", f"{setting}\n[own.ledger.roles]")


def why(stores: Stores, name: str = "ledger") -> str:
    """Return why a source was not compared; empty if it was, whatever its doubts."""
    query = "SELECT source, evaluated, reason FROM reconciliation.own_sources"
    found = {source: (evaluated, reason) for source, evaluated, reason in stores.rows(query)}
    evaluated, reason = found[name]
    return "" if evaluated else reason


def breaks(stores: Stores, rule: str = "own_ledger") -> dict[str, tuple[Any, ...]]:
    query = f"""
        SELECT subject, cause, difference::VARCHAR, severity, doubt FROM reconciliation.breaks
        WHERE gone_at IS NULL AND rule = '{rule}'
    """
    return {subject: tuple(about) for subject, *about in stores.rows(query)}


def causes(stores: Stores) -> dict[str, str]:
    return {subject: about[0] for subject, about in breaks(stores).items()}


@pytest.mark.long
def test_a_first_file_that_vanished_resolves_nothing(many: Stores) -> None:
    assert (why(many), causes(many)) == ("", {})
    (many.home.root / "ledger/2026-08.csv").unlink()
    remade(many)
    assert "begins with 2026-09, and began with 2026-08 before" in why(many)
    assert 'set begins = "2026-09"' in why(many)
    (ledger,) = own_check.check(many)
    assert "began with 2026-08" in ledger["problem"]
    assert why(remade(many)) != ""  # however often books are made
    assert why(remade(many, with_setting('begins = "2026-08"'))) == ""
    assert causes(many) == {"b0": "missing in own books"}
    assert why(remade(many, with_setting('begins = "2026-09"'))) == ""
    assert causes(many) == {}


@pytest.mark.long
def test_rows_are_not_lost_a_few_at_a_time(many: Stores) -> None:
    lines = [booked(number) for number in range(1, 12)]
    write(many, "ledger/2026-09.csv", [HEAD, *lines[:-1]])
    assert why(remade(many)) == ""  # 11 of 12
    write(many, "ledger/2026-09.csv", [HEAD, *lines[:-2]])
    assert "has 10 rows, and had 12 before" in why(remade(many))
    assert why(remade(many, with_setting("fewest_rows = 10"))) == ""
    write(many, "ledger/2026-09.csv", [HEAD, *lines])
    assert why(remade(many)) == ""
    write(many, "ledger/2026-09.csv", [HEAD, *lines[:-2]])
    assert "10 rows, and had 12 before. If that is right, set fewest_rows = 9" in why(remade(many))


@pytest.mark.long
@pytest.mark.parametrize(
    ("days", "expected"),
    [
        # September is booked in October.
        ({1: "2026-10-02", 2: None}, {"b1": "other month", "b2": "missing in own books"}),
        # A period that says nothing, and a wrong year.
        ({1: "", 2: None}, {"b2": "missing in own books"}),
        ({99: "1900-01-01"}, {"b99": "only in own books"}),
        ({99: "2062-01-01"}, {"b99": "only in own books"}),
    ],
)
def test_what_own_books_begin_with_is_what_they_have(
    days: dict[int, str | None], expected: dict[str, str], many: Stores
) -> None:
    booked_days = dict.fromkeys(range(1, 12), "2026-09-30") | days
    lines = [booked(number, day) for number, day in booked_days.items() if day is not None]
    write(many, "ledger/2026-09.csv", [HEAD, *lines])
    assert causes(remade(many)) == expected
    assert why(many) == ""


@pytest.mark.long
def test_a_record_that_is_not_understood_hides_no_total(own: Stores) -> None:
    usage = [used(f"u{number}") for number in range(1, 8)] + [used("u8", amount="n/a")]
    write(own, "meter.csv", [*METERED, "first,2026-09-12,999.00,EUR"])
    publish(own, mapping=MAPPING + LEDGER + METER, usage=usage)
    ((cause, difference, _severity, doubt),) = breaks(own, "own_meter").values()
    assert (cause, difference) == ("other total", "-1004.00")
    assert doubt is not None
    reason = "SELECT reason FROM reconciliation.rules WHERE rule = 'own_meter'"
    assert own.rows(reason) == [("1 record of usage not understood, and not compared",)]


@pytest.mark.long
def test_what_is_booked_elsewhere_is_wrong_as_a_whole(own: Stores) -> None:
    materiality = '\n[materiality]\nEUR = "5.00"\n'
    found = breaks(remade(own, LEDGER + METER + materiality))
    assert found["b3"][:3] == ("other partner", "0.00", "high")
    assert found["b4"][:3] == ("other month", "0.00", "high")
    assert found["b2"][:3] == ("other amount", "-2.25", "medium")


@pytest.mark.long
def test_what_is_booked_and_reversed_is_no_break(own: Stores) -> None:
    pairs = [("v1", "-5.00"), ("x", "7.00"), ("x", "-7.00")]
    lines = [f"{key},first,2026-09-30,{amount},EUR" for key, amount in pairs]
    # A bill of EUR that agrees, and was first booked in USD.
    lines += [f"b1,first,2026-09-30,{amount},USD" for amount in ("5.00", "-5.00")]
    write(own, "ledger/2026-11.csv", [HEAD, *lines])
    found = causes(remade(own))
    assert found.keys() & {"v1", "x", "b1"} == set()
    assert found["unknown"] == "only in own books"


@pytest.mark.long
def test_a_role_that_the_service_lacks_is_a_reason(own: Stores) -> None:
    meter = METER + 'quantity = "value"\n'
    mapping = MAPPING.replace('quantity = "quantity"\namount', "amount", 1)
    write_durably(own.home.mapping_file, (mapping + LEDGER + meter).encode())
    assert "usage.quantity is not mapped" in why(remade(own), "meter")


def test_a_quantity_of_bills_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="quantity is of usage"):
        parse_mapping(MAPPING + LEDGER + 'quantity = "n"\n')


@pytest.mark.long
def test_what_was_erased_does_not_come_back_from_own_books(own: Stores) -> None:
    lines = [f"{key},second,2026-09-30,9.00,EUR" for key in ("zz", "")]
    write(own, "ledger/2026-11.csv", [HEAD, *lines, "b1,first,2026-09-30,second,EUR"])
    write(own, "meter.csv", [*METERED, "second,2026-09-12,1.00,EUR"])
    assert "?|second|2026-09-01|EUR" in breaks(remade(own))
    erase(own, "second")
    remade(own)
    for table in ("break_rows", "breaks", "own_unread"):
        rows = own.rows(f"FROM reconciliation.{table}")
        assert rows
        assert "second" not in str(rows)
    assert breaks(own)["?|[erased]|2026-09-01|EUR"]
    assert breaks(own, "own_meter").keys() == {"[erased]|2026-09-01|EUR"}


@pytest.mark.long
def test_a_value_that_only_own_books_have_is_erased_from_what_is_kept(own: Stores) -> None:
    name = "Ada Lovelace"
    write(own, "ledger/2026-11.csv", [HEAD, f"zz,{name},2026-09-30,9.00,EUR"])
    assert name in str(remade(own).rows("FROM reconciliation.break_rows"))
    changed = erase(own, name)
    assert changed >= 2  # what is remembered, and each of the books
    assert own_books.kept_with(own, name) == []
    assert own.rows("SELECT partner FROM reconciliation.breaks WHERE subject = 'zz'") == [
        ("[erased]",)
    ]
    close_month(own, date(2026, 9, 1), "ann", "bob")
    assert own_check.sources_with(own, name) == [{"source": "ledger", "files": "2026-11.csv"}]
    assert copies_with(own, name) == []
    with pytest.raises(NothingFound, match="No file contains the value"):
        erase(own, "nobody has it")
    own.metadata.close()
    assert files_with(own.home.root, name) == ["2026-11.csv"]  # that one is the user's


@pytest.mark.long
@pytest.mark.parametrize("meanwhile", ["", MAPPING], ids=["nothing is mapped", "it is taken out"])
def test_what_a_source_had_is_known_after_books_without_it(many: Stores, meanwhile: str) -> None:
    write_durably(many.home.mapping_file, meanwhile.encode())
    make_books(many)
    write(many, "ledger/2026-09.csv", [HEAD, *map(booked, range(1, 10))])
    remade(many, LEDGER)
    assert "10 rows, and had 12 before" in why(many)
    assert why(remade(many, with_setting("fewest_rows = 10"))) == ""


@pytest.mark.long
def test_a_decision_is_about_the_cause_where_amounts_agree(own: Stores) -> None:
    write(own, "ledger/2026-09.csv", [HEAD, *SEPTEMBER])
    query = "SELECT break_id, cause, state FROM reconciliation.breaks WHERE subject = 'b4'"
    ((break_id, *_about),) = own.rows(query)
    decide(own, "break_resolve", break_id)
    assert [row[1:] for row in remade(own).rows(query)] == [("other month", "resolved")]
    lines = [line.replace("b4,first,2026-10", "b4,second,2026-09") for line in SEPTEMBER]
    write(own, "ledger/2026-09.csv", [HEAD, *lines])
    found = {cause: state for _id, cause, state in remade(own).rows(query)}
    assert found == {"other month": "resolved", "other partner": "open"}

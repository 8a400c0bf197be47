"""Each situation of a partner's month, and the breaks that are found in it: one build for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.publish.homes import Record, Stores
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used

MISSING = "not_billed: missing on the bill"
LATE = "not_billed: recorded after the last bill"
NOT_USED = "not_used: billed without usage"
TWICE = "billed_twice: usage on two bills"
AMOUNT = "different: other amount"
CURRENCY = "different: other currency"
CHANGED = "different: changed after the bill"
WRONG, BALANCED, TOLERATED = "out of balance", "balanced", "within tolerance"


class Case(NamedTuple):
    """A partner's records, the breaks that they are, and its worst verdict."""

    name: str
    used: list[Record]
    bills: list[Record]
    breaks: str = ""
    verdict: str = WRONG


def bills(*lines: Record, **fields: Any) -> list[Record]:
    """Return the bill of the usage, and one of these lines."""
    return [BILLED, bill("c", *lines, **fields)]


ANOTHER, UNKNOWN = "another", "unknown partner"
REFERRED = MAPPING.replace('id = "id"\npartner', 'id = "ref"\npartner', 1)  # may be missing
USED, BILLED = [used("u")], bill("b", line("u"))
LATER = {"issued": "2026-10-01T00:00:00Z"}
CASES = [
    Case("balanced", USED, [BILLED], verdict=BALANCED),
    Case("not billed", USED, [], f"{MISSING} -5.00"),
    Case("no identifier", [used("u", ref=None)], [], f"{MISSING} -5.00"),
    Case(
        "late",
        [*USED, used("v", "2.00", recorded="2026-10-03T00:00:00Z")],
        [BILLED],
        f"{LATE} -2.00",
    ),
    Case("month not over", [used("u", day="2026-11-02")], [], verdict="tentative"),
    Case("not used", [], [BILLED], f"{NOT_USED} 5.00"),
    Case("fee", USED, [bill("b", line("u"), line(None, "9.00"))], verdict=TOLERATED),
    Case("total above its lines", USED, [bill("b", line("u"), total="5.50")], verdict=TOLERATED),
    Case("second bill", USED, bills(line("u"), **LATER), f"{TWICE} 5.00"),
    Case(
        "two lines that add up",
        USED,
        [bill("b", line("u", "3.00"), line("u", "2.00", 0))],
        verdict=BALANCED,
    ),
    Case(
        "two lines that are less",
        USED,
        [bill("b", line("u", "3.00"), line("u", "1.00", 0))],
        f"{AMOUNT} -1.00",
    ),
    Case(
        "two lines, one without an amount",
        USED,
        bills(lines=[line("u", None)], total="0.00", **LATER),
        f"{TWICE} unknown",
    ),
    Case(
        "two lines in two currencies",
        USED,
        [bill("b", line("u", "3.00")), bill("c", line("u", "2.00", 0), currency="USD")],
        f"{AMOUNT} -2.00; {CURRENCY} 2.00",
    ),
    Case(
        "lines of two currencies without usage",
        [],
        [bill("b", line("x")), bill("c", line("x"), currency="USD")],
        f"{NOT_USED} 5.00; {NOT_USED} 5.00",
    ),
    Case(
        "billed, and again in another currency",
        USED,
        bills(line("u"), currency="USD"),
        f"{CURRENCY} 5.00",
    ),
    Case(
        "other currency",
        USED,
        [bill("b", line("u"), currency="USD")],
        f"{CURRENCY} -5.00; {CURRENCY} 5.00",
    ),
    Case(
        "lines of two partners",
        USED,
        [bill("b", line("u", "3.00")), bill("c", line("u", "2.00", 0), partner=ANOTHER)],
        "different: other partner 0.00",
    ),
    Case("a cent more", USED, [bill("b", line("u", "5.01"))], f"{AMOUNT} 0.01"),
    Case("more digits than money has", [used("u", "5.0000001")], [BILLED], f"{AMOUNT} -0.0000001"),
    Case(
        "other quantity", USED, [bill("b", line("u", quantity=2))], "different: other quantity 0.00"
    ),
    Case(
        "restated",
        [used("u", "6.00", updated="2026-10-03T00:00:00Z")],
        [BILLED],
        f"{CHANGED} -1.00",
    ),
    Case("void bill", USED, bills(line("u"), status="void"), verdict=BALANCED),
    Case("only a void bill", USED, [bill("c", line("u"), status="void")], f"{MISSING} -5.00"),
    Case(
        "credit note for usage that was lowered",
        [used("u", "3.00")],
        bills(line("u", "2.00", 0), kind="credit"),
        verdict=BALANCED,
    ),
    Case(
        "credit note with lines of both signs",
        [used("u", "2.00")],
        bills(line("u", "2.50", 0), line("u", "-0.50", 0), kind="credit"),
    ),
    Case(
        UNKNOWN,
        USED,
        [BILLED],
        "unknown_partner: billing of an unknown partner 5.00; "
        "unknown_partner: usage of an unknown partner -5.00",
    ),
    Case(
        "year 9999",
        [used("u", day="9999-12-31")],
        [bill("b", line("u"), month="9999-12-01")],
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
            {**each, "usage": each["usage"] and f"{case.name} {each['usage']}"}
            for each in record["lines"]
        ]
    return own


def _publish(stores: Stores, mapping: str) -> None:
    publish(
        stores,
        mapping=mapping,
        partners=partners([FIRST, ANOTHER, *(each.name for each in CASES if each.name != UNKNOWN)]),
        usage=[_own(case, each) for case in CASES for each in case.used],
        billing=[_own(case, each) for case in CASES for each in case.bills],
    )


# What remains to be seen where lines do not say which usage they bill.
BY_MONTH = {
    "a cent more": f"{AMOUNT} 0.01",
    "another": f"{NOT_USED} 2.00",
    "credit note with lines of both signs": f"{AMOUNT} 1.00",
    "fee": f"{AMOUNT} 9.00",
    "late": f"{AMOUNT} -2.00",
    "lines of two partners": f"{AMOUNT} -2.00",
    "more digits than money has": f"{AMOUNT} -0.0000001",
    "no identifier": f"{MISSING} -5.00",
    "not billed": f"{MISSING} -5.00",
    "not used": f"{NOT_USED} 5.00",
    "only a void bill": f"{MISSING} -5.00",
    "restated": f"{CHANGED} -1.00",
    "second bill": "different: two bills of the same amount 5.00",
    "two lines that are less": f"{AMOUNT} -1.00",
    "total above its lines": f"{AMOUNT} 0.50",
}
BREAKS = """
SELECT partner, concat(rule, ': ', cause, ' ', coalesce(regexp_replace(
    difference::VARCHAR, '(\\.\\d\\d\\d*?)0+$', '\\1'), 'unknown'))
FROM reconciliation.breaks
ORDER BY ALL
"""


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """A published version of all cases."""
    stores = Stores.open(tmp_path_factory.mktemp("books") / "home")
    _publish(stores, REFERRED)
    yield stores
    stores.metadata.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_breaks_of_a_situation(books: Stores, case: Case) -> None:
    found = [text for partner, text in books.rows(BREAKS) if partner == case.name]
    assert "; ".join(found) == case.breaks
    verdicts = books.rows(  # of several currencies one may be balanced
        f"SELECT max(verdict) FROM reconciliation.summary WHERE partner = '{case.name}'"
    )
    assert verdicts == [(case.verdict,)]


def test_every_rule_is_evaluated_and_every_column_explained(books: Stores) -> None:
    assert books.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated") == []
    assert books.rows("SELECT count(*) FROM reconciliation.rules") == [(18,)]
    uncommented = (
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name = 'reconciliation' AND coalesce(comment, '') = ''"
    )
    assert books.rows(uncommented) == []


def test_every_pair_has_a_status(books: Stores) -> None:
    keys = "SELECT connection, key, currency FROM reconciliation.{}"
    both = f"{keys.format('used')} UNION {keys.format('billed')} WHERE key IS NOT NULL"
    missing = f"{both} AND apart IS NULL EXCEPT {keys.format('matches')}"
    assert books.rows(f"SELECT * FROM ({missing}) AS pairs WHERE currency IS NOT NULL") == []
    wrong = "FROM reconciliation.matches WHERE status = 'balanced' AND difference <> 0"
    assert books.rows(f"SELECT count(*) {wrong}") == [(0,)]
    pair = "SELECT status, used_amount, billed_amount FROM reconciliation.matches WHERE partner = "
    assert books.rows(f"{pair} 'balanced'") == [("balanced", 5, 5)]


def test_usage_without_an_identifier_has_a_key(books: Stores) -> None:
    found = books.rows("SELECT key FROM reconciliation.matches WHERE partner = 'no identifier'")
    assert found == [("?no identifier u",)]


def test_every_break_has_an_identifier_of_its_own(books: Stores) -> None:
    ids = "SELECT count(*) FROM reconciliation.breaks GROUP BY break_id HAVING count(*) > 1"
    assert books.rows(ids) == []


def test_the_lines_of_every_bill_add_up_to_it(books: Stores) -> None:
    wrong = (
        "SELECT bills.bill FROM reconciliation.bills AS bills JOIN reconciliation.billed AS lines "
        "ON lines.bill = bills.bill GROUP BY bills.bill, bills.amount "
        "HAVING coalesce(sum(lines.amount), 0) IS DISTINCT FROM bills.amount"
    )
    assert books.rows(wrong) == []


def test_bills_set_apart_count_nowhere(books: Stores) -> None:
    found = books.rows(
        "SELECT partner, billed_amount, credited_amount, not_counted_amount "
        "FROM reconciliation.summary WHERE credited_amount <> 0 OR not_counted_amount <> 0 "
        "ORDER BY partner"
    )
    assert found == [
        ("credit note for usage that was lowered", 5, -2, None),
        ("credit note with lines of both signs", 5, -2, None),
        ("only a void bill", None, None, 5),
        ("void bill", 5, None, 5),
    ]


def test_the_rollforward_closes_for_every_partner(books: Stores) -> None:
    sql = "SELECT count(*), count(*) FILTER (difference <> 0) FROM reconciliation.rollforward"
    ((rows, wrong),) = books.rows(sql)
    assert rows > wrong == 0


def test_without_references_partners_months_are_compared(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    mapping = "\n".join(each for each in MAPPING.splitlines() if not each.startswith("line_"))
    _publish(stores, mapping)
    found = {name: text for name, text in stores.rows(BREAKS) if "currenc" not in name}
    stores.metadata.close()
    assert found.pop(UNKNOWN)
    assert found == BY_MONTH

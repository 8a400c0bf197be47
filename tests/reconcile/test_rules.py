"""Each situation of a partner's month, and the breaks that are found in it: one build for all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.publish.homes import Record, Stores
from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used

LATE = "recorded after the last bill"
MISSING = "missing on the bill"
CHANGED = "changed after the bill"
TWICE = "usage on two bills"


@dataclass(frozen=True)
class Case:
    """A partner's records, and the breaks expected: rule, cause, difference. `known`: is listed."""

    name: str
    used: list[Record] = field(default_factory=list)
    bills: list[Record] = field(default_factory=list)
    breaks: list[tuple[str, str, str]] = field(default_factory=list)
    verdict: str = "out of balance"
    known: bool = True


ANOTHER = "another"
REFERRED = MAPPING.replace('id = "id"\npartner', 'id = "ref"\npartner', 1)  # may be missing
BILLED = bill("b", line("u"))
CASES = [
    Case("balanced", [used("u")], [BILLED], verdict="balanced"),
    Case("not billed", [used("u")], [], [("not_billed", MISSING, "-5.00")]),
    Case(
        "late",
        [used("u"), used("v", "2.00", recorded="2026-10-03T00:00:00Z")],
        [BILLED],
        [("not_billed", LATE, "-2.00")],
    ),
    Case("month not over", [used("u", day="2026-11-02")], [], verdict="tentative"),
    Case("not used", [], [BILLED], [("not_used", "billed without usage", "5.00")]),
    Case(
        "fee", [used("u")], [bill("b", line("u"), line(None, "9.00"))], verdict="within tolerance"
    ),
    Case(
        "total above its lines",
        [used("u")],
        [bill("b", line("u"), total="5.50")],
        verdict="within tolerance",
    ),
    Case(
        "second bill",
        [used("u")],
        [BILLED, bill("c", line("u"), issued="2026-10-01T00:00:00Z")],
        [("billed_twice", TWICE, "5.00")],
    ),
    Case(
        "two lines that add up",
        [used("u")],
        [bill("b", line("u", "3.00"), line("u", "2.00", 0))],
        verdict="balanced",
    ),
    Case(
        "two lines that are less",
        [used("u")],
        [bill("b", line("u", "3.00"), line("u", "1.00", 0))],
        [("different", "other amount", "-1.00")],
    ),
    Case(
        "two lines, one without an amount",
        [used("u")],
        [BILLED, bill("c", lines=[line("u", None)], total="0.00", issued="2026-10-01T00:00:00Z")],
        [("billed_twice", TWICE, "unknown")],
    ),
    Case(
        "two lines in two currencies",
        [used("u")],
        [bill("b", line("u", "3.00")), bill("c", line("u", "2.00", 0), currency="USD")],
        [("different", "other amount", "-2.00"), ("different", "other currency", "2.00")],
    ),
    Case(
        "billed, and again in another currency",
        [used("u")],
        [BILLED, bill("c", line("u"), currency="USD")],
        [("different", "other currency", "5.00")],
    ),
    Case(
        "lines of two partners",
        [used("u")],
        [bill("b", line("u", "3.00")), bill("c", line("u", "2.00", 0), partner=ANOTHER)],
        [("different", "other partner", "0.00")],
    ),
    Case("no identifier", [used("u", ref=None)], [], [("not_billed", MISSING, "-5.00")]),
    Case(
        "a cent more",
        [used("u")],
        [bill("b", line("u", "5.01"))],
        [("different", "other amount", "0.01")],
    ),
    Case(
        "more digits than money has",
        [used("u", "5.0000001")],
        [bill("b", line("u", "5.00"))],
        [("different", "other amount", "-0.0000001")],
    ),
    Case(
        "other quantity",
        [used("u")],
        [bill("b", line("u", quantity=2))],
        [("different", "other quantity", "0.00")],
    ),
    Case(
        "restated",
        [used("u", "6.00", updated="2026-10-03T00:00:00Z")],
        [BILLED],
        [("different", CHANGED, "-1.00")],
    ),
    Case(
        "other currency",
        [used("u")],
        [bill("b", line("u"), currency="USD")],
        [("different", "other currency", "-5.00"), ("different", "other currency", "5.00")],
    ),
    Case("void bill", [used("u")], [BILLED, bill("c", line("u"), status="void")], [], "balanced"),
    Case(
        "only a void bill",
        [used("u")],
        [bill("c", line("u"), status="void")],
        [("not_billed", MISSING, "-5.00")],
    ),
    Case(
        "credit note for usage that was lowered",
        [used("u", "3.00")],
        [BILLED, bill("c", line("u", "2.00", 0), kind="credit")],
        [],
        "balanced",
    ),
    Case(
        "credit note with lines of both signs",
        [used("u", "2.00")],
        [BILLED, bill("c", line("u", "2.50", 0), line("u", "-0.50", 0), kind="credit")],
    ),
    Case(
        "unknown partner",
        [used("u")],
        [BILLED],
        [
            ("unknown_partner", "billing of an unknown partner", "5.00"),
            ("unknown_partner", "usage of an unknown partner", "-5.00"),
        ],
        known=False,
    ),
    Case(
        "year 9999",
        [used("u", day="9999-12-31")],
        [bill("b", line("u"), month="9999-12-01")],
        verdict="balanced",
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
        partners=partners([FIRST, ANOTHER, *(each.name for each in CASES if each.known)]),
        usage=[_own(case, each) for case in CASES for each in case.used],
        billing=[_own(case, each) for case in CASES for each in case.bills],
    )


# What remains to be seen where lines do not say which usage they bill.
BY_MONTH = {
    "a cent more": ("different", "other amount", "0.01"),
    "credit note with lines of both signs": ("different", "other amount", "1.00"),
    "fee": ("different", "other amount", "9.00"),
    "another": ("not_used", "billed without usage", "2.00"),
    "late": ("different", "other amount", "-2.00"),
    "lines of two partners": ("different", "other amount", "-2.00"),
    "more digits than money has": ("different", "other amount", "-0.0000001"),
    "no identifier": ("not_billed", MISSING, "-5.00"),
    "not billed": ("not_billed", MISSING, "-5.00"),
    "not used": ("not_used", "billed without usage", "5.00"),
    "only a void bill": ("not_billed", MISSING, "-5.00"),
    "restated": ("different", CHANGED, "-1.00"),
    "second bill": ("different", "two bills of the same amount", "5.00"),
    "two lines that are less": ("different", "other amount", "-1.00"),
    "total above its lines": ("different", "other amount", "0.50"),
}


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """A published version of all cases."""
    stores = Stores.open(tmp_path_factory.mktemp("books") / "home")
    _publish(stores, REFERRED)
    yield stores
    stores.metadata.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_breaks_of_a_situation(books: Stores, case: Case) -> None:
    found = books.rows(
        "SELECT rule, cause, difference::VARCHAR FROM reconciliation.breaks "
        f"WHERE partner = '{case.name}' ORDER BY ALL"
    )
    assert [(rule, cause, _plain(each)) for rule, cause, each in found] == case.breaks
    verdicts = books.rows(  # of several currencies one may be balanced
        f"SELECT max(verdict) FROM reconciliation.summary WHERE partner = '{case.name}'"
    )
    assert verdicts == [(case.verdict,)]


def _plain(difference: str | None) -> str:
    """Return an amount with two decimals, and more only where it has them."""
    if difference is None:
        return "unknown"
    whole, _, digits = difference.partition(".")
    return f"{whole}.{digits.rstrip('0').ljust(2, '0')}"


def test_every_rule_is_evaluated_and_every_column_explained(books: Stores) -> None:
    assert books.rows("SELECT rule, reason FROM reconciliation.rules WHERE NOT evaluated") == []
    assert books.rows("SELECT count(*) FROM reconciliation.rules") == [(17,)]
    uncommented = (
        "SELECT table_name, column_name FROM duckdb_columns() "
        "WHERE schema_name = 'reconciliation' AND coalesce(comment, '') = ''"
    )
    assert books.rows(uncommented) == []


def test_usage_without_an_identifier_has_a_key(books: Stores) -> None:
    found = books.rows("SELECT key FROM reconciliation.matches WHERE partner = 'no identifier'")
    assert found == [("?no identifier u",)]


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
    assert [(name, *map(_shown, amounts)) for name, *amounts in found] == [
        ("credit note for usage that was lowered", "5.00", "-2.00", None),
        ("credit note with lines of both signs", "5.00", "-2.00", None),
        ("only a void bill", None, None, "5.00"),
        ("void bill", "5.00", None, "5.00"),
    ]


def _shown(amount: object) -> str | None:
    return None if amount is None else _plain(str(amount))


def test_the_rollforward_closes_for_every_partner(books: Stores) -> None:
    sql = "SELECT count(*), count(*) FILTER (difference <> 0) FROM reconciliation.rollforward"
    ((rows, wrong),) = books.rows(sql)
    assert rows > 0
    assert wrong == 0


def test_without_references_partners_months_are_compared(tmp_path: Path) -> None:
    stores = Stores.open(tmp_path / "home")
    mapping = "\n".join(each for each in MAPPING.splitlines() if not each.startswith("line_"))
    _publish(stores, mapping)
    found = stores.rows(
        "SELECT partner, rule, cause, difference::VARCHAR FROM reconciliation.breaks "
        "WHERE rule <> 'unknown_partner' AND partner NOT LIKE '%currenc%' ORDER BY ALL"
    )
    stores.metadata.close()
    assert {row[0]: (*row[1:3], _plain(row[3])) for row in found} == BY_MONTH

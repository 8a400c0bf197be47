"""`finance.totals`: used and billed by all that identifies what they are for."""

import pytest

from tests.reconcile.books import FIRST, MAPPING, bill, line, partners, publish, used
from tests.versions.homes import Stores, home_of

USAGE_ROLES = ("plan", "metric", "unit", "region", "organization")
LINE_ROLES = ("plan", "metric", "unit", "region")


def with_roles(usage: tuple[str, ...], lines: tuple[str, ...] = ()) -> str:
    """Return the mapping with more roles, whose fields have their names."""
    of_usage = "".join(f'{role} = "{role}"\n' for role in usage)
    of_lines = "".join(f'line_{role} = "lines[].{role}"\n' for role in lines)
    with_usage = MAPPING.replace("[billing]\n", f"{of_usage}[billing]\n")
    return f"{with_usage}{of_lines}"


OF_USAGE = with_roles(USAGE_ROLES)
OF_LINES = with_roles(USAGE_ROLES, LINE_ROLES)
HOURS = {"plan": "pro", "metric": "cpu", "unit": "h", "region": "eu", "organization": "o"}
BYTES = {"plan": "pro", "metric": "disk", "unit": "GB", "region": "us", "organization": "o"}
TOTALS = """
SELECT metric, unit, region, organization, kind, used_rows, used::VARCHAR, used_quantity::INTEGER,
    billed_rows, billed::VARCHAR, billed_quantity::INTEGER
FROM finance.totals WHERE partner = 'first Ltd' AND {} ORDER BY ALL
"""


def publish_kinds(stores: Stores, mapping: str = OF_USAGE) -> None:
    """Publish usage of two metrics, and bills with a fee, a credit note and a void bill."""
    lines = [{**line("u"), **BYTES}, {**line("v", "2.50", 2), **BYTES}, line(None, "0.75")]
    publish(
        stores,
        mapping=mapping,
        partners=partners([FIRST]),
        usage=[
            used("u", **HOURS),
            used("v", "3.00", **HOURS, quantity=2),
            used("w", "1.00", **BYTES),
        ],
        billing=[
            bill("b", *lines, total="9.25"),  # 1.00 is on no line
            bill("c", line("u", "0.20"), kind="credit"),
            bill("void", line("w", "1.00"), status="void"),
        ],
    )


kinds = home_of(publish_kinds)


def test_a_line_is_of_what_its_usage_is_of(kinds: Stores) -> None:
    assert kinds.rows(TOTALS.format("plan = 'pro'")) == [
        ("cpu", "h", "eu", "o", "credit note", 0, None, None, 1, "-0.20", -1),
        ("cpu", "h", "eu", "o", "usage", 2, "8.00", 3, 2, "7.50", 3),
        ("disk", "GB", "us", "o", "usage", 1, "1.00", 1, 0, None, None),
    ]
    assert kinds.rows(TOTALS.format("plan IS NULL")) == [
        (None, None, None, None, "fee", 0, None, None, 2, "1.75", 1),
    ]


@pytest.mark.long
def test_what_a_line_says_itself_counts_first(stores: Stores) -> None:
    publish_kinds(stores, OF_LINES)
    found = stores.rows(
        "SELECT metric, billed::VARCHAR FROM finance.totals WHERE billed <> 0 ORDER BY ALL"
    )
    assert found == [("cpu", "-0.20"), ("disk", "7.50"), (None, "1.75")]


@pytest.mark.long
def test_without_roles_there_is_a_row_for_each_month_and_kind(stores: Stores) -> None:
    publish_kinds(stores, MAPPING)
    totals = "FROM finance.totals ORDER BY used_rows + billed_rows DESC"
    assert stores.rows(f"SELECT plan, kind, used_rows, billed_rows {totals}") == [
        (None, "usage", 3, 2),
        (None, "fee", 0, 2),
        (None, "credit note", 0, 1),
    ]


def test_totals_add_up_to_the_months(kinds: Stores) -> None:
    ((used_of_months, billed_of_months),) = kinds.rows(
        "SELECT sum(used), sum(billed + credited) FROM finance.partner_months"
    )
    added = kinds.rows("SELECT sum(used), sum(billed) FROM finance.totals")
    assert added == [(used_of_months, billed_of_months)]

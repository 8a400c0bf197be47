"""A month is closed for some connections: an account that is broken does not block the others."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.errors import ConfigurationError
from pipelines.finance.books import make_books
from pipelines.finance.close import close_month, list_closes
from pipelines.finance.close_refusals import prepare_month
from pipelines.finance.closing.verify import find_problems
from pipelines.finance.reconcile.close_copy import MANIFEST, PAGE
from pipelines.finance.signing import Signing
from tests.reconcile.books import FIRST, decide, partners, used
from tests.reconcile.months import (
    ACCOUNTS,
    BILLS,
    OCTOBER,
    POSTED,
    SEPTEMBER,
    SERVICE,
    TERMS,
    USAGE,
)
from tests.versions.homes import Reading, Stores, home_of, read

ACME = Signing("for acme", "", ("acme",))


def read_lists(stores: Stores, name: str, *, complete: bool = True, **lists: Any) -> None:
    for stream, records in lists.items():
        reading = Reading(records, stream, connection=name, complete=complete, page_size=50)
        read(stores, reading)


def publish_broken(stores: Stores) -> None:
    """Read two accounts; the bills of one are not proven complete."""
    for name in ("acme", "beta"):
        stores.configure(name, **SERVICE)
        names = partners([FIRST])
        read_lists(stores, name, partners=names, usage=USAGE)
        read_lists(stores, name, complete=name == "acme", billing=BILLS)
    stores.home.mapping_file.write_text(TERMS + ACCOUNTS)
    build_with_books(stores)


two = home_of(publish_broken)


OPEN = """
SELECT 1 FROM reconciliation.breaks
WHERE connection = 'acme' AND month = '2026-09-01' AND state <> 'resolved' AND currency = 'EUR'
"""


def copy_of(stores: Stores, month: str = "2026-09") -> Path:
    return stores.home.closes / month / "001"


@pytest.mark.long
def test_a_broken_account_does_not_block_the_books_of_others(two: Stores) -> None:
    with pytest.raises(ConfigurationError, match="billing of beta is not proven complete"):
        close_month(two, SEPTEMBER, "ann", "bob")
    assert prepare_month(two, SEPTEMBER, ["acme"])["refusals"] == []
    asked = two.changed(approval="one")
    (refusal,) = prepare_month(asked, SEPTEMBER, ["acme"])["refusals"]
    severe = (
        "SELECT break_id FROM reconciliation.breaks WHERE connection = 'acme' AND severity = 'high'"
        " AND month = '2026-09-01'"
    )
    for (name,) in two.rows(severe):
        decide(two, "break_assign", name, owner="bob")
    make_books(two)
    # Those of beta have no owner.
    assert prepare_month(asked, SEPTEMBER, ["acme"])["refusals"] == []
    assert "has no owner" in refusal["message"] or "have no owner" in refusal["message"]
    text = close_month(two, SEPTEMBER, "ann", "bob", ACME)
    assert "2026-09 is closed" in text
    assert f"Still open: {len(two.rows(OPEN))} break" in text
    folder = copy_of(two)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["connections"] == ["acme"]
    assert {name.partition("/")[0] for name in manifest["scans"]} == {"acme"}
    for table in ("used", "billed", "summary", "breaks", "break_rows", "rollforward", "entries"):
        found = duckdb.sql(f"SELECT DISTINCT connection FROM '{folder}/{table}.parquet'").fetchall()
        assert found == [("acme",)], table
    assert "beta" not in (folder / PAGE).read_text()
    assert [*find_problems(folder, "")] == []


@pytest.mark.long
def test_what_changes_of_another_connection_changes_no_closed_month(two: Stores) -> None:
    close_month(two, SEPTEMBER, "ann", "bob", ACME)
    build_with_books(two)
    (row,) = list_closes(two)
    assert (row["state"], row["connections"], row["changed_records"]) == ("closed", "acme", 0)
    more = [*USAGE, used("new", "3.00")]
    read_lists(two, "beta", usage=more)
    build_with_books(two)
    assert list_closes(two)[0]["state"] == "closed"
    read_lists(two, "acme", usage=more)
    build_with_books(two)
    assert list_closes(two)[0]["state"] == "outdated"
    assert [row[:2] for row in two.rows(POSTED)] == [("usage", "new")]
    read_lists(two, "acme", partners=partners([FIRST]), billing=BILLS)
    build_with_books(two)
    close_month(two, OCTOBER, "ann", "bob", ACME)
    folder = copy_of(two, "2026-10")
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["previous"]["month"] == "2026-09"
    assert [*find_problems(folder, "")] == []


@pytest.mark.long
def test_records_of_a_connection_that_was_added_since_are_named_as_such(two: Stores) -> None:
    read_lists(two, "beta", billing=BILLS)
    build_with_books(two)
    close_month(two, SEPTEMBER, "ann", "bob")
    two.configure("gamma", **SERVICE)
    names = partners([FIRST])
    read_lists(two, "gamma", partners=names, usage=[used("new", "3.00")], billing=[])
    read_lists(two, "acme", usage=[*USAGE, used("more", "4.00")])
    build_with_books(two)
    (row,) = list_closes(two)
    added = "usage EUR +3.00 (connection gamma, which was added after the close)"
    assert (row["state"], row["changed_records"]) == ("outdated", 2)
    assert row["net_difference"] == f"usage EUR +4.00, {added}"
    posted = "SELECT connection, id, difference::VARCHAR FROM finance.corrections ORDER BY ALL"
    assert two.rows(posted) == [("acme", "more", "4.00"), ("gamma", "new", "3.00")]


def test_a_connection_that_is_not_there_is_refused(two: Stores) -> None:
    with pytest.raises(ConfigurationError, match="closed for `gamma`") as refused:
        close_month(two, SEPTEMBER, "ann", "bob", Signing(connections=("acme", "gamma")))
    assert refused.value.remedy == "Connections: acme, beta."

"""Charges that name no usage, and own books, planted among other errors: found to the cent, once.

Here: five seeds, under both sets of field names, without HTTP. Not here: the service (end_to_end).
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from pipelines.app.nightly import build_with_books
from pipelines.core.files import write_durably
from pipelines.finance.books import make_books
from pipelines.finance.breaks import BreakFilter, list_breaks
from pipelines.finance.proposals import accept
from sandbox.data.dataset import dataset
from sandbox.data.names import OTHER, FieldNames
from sandbox.data.own import ledger, meter
from sandbox.data.plant import COUNTS, FEES, plant
from sandbox.data.sizes import Sizes
from tests.end_to_end.test_planted import FOUND, expected
from tests.versions.homes import Reading, Stores, read

SIZES = Sizes(25, 2_500, 560)
# The field that says what a line is for; a rule of the mapping accepts support.
FIELDS: dict[FieldNames, str] = {"usual": "lines[].description", "other": "items[].text"}
KEYS: dict[FieldNames, dict[str, str]] = {
    "usual": {"partners": "partnerId", "usage": "usageId", "billing": "billingId"},
    "other": {
        "partners": "partnerId",
        "usage": OTHER["usage"]["usageId"],
        "billing": OTHER["billing"]["billingId"],
    },
}
ACCEPTED = '[accepted_fees.support]\nfield = "{}"\nvalues = ["support"]\n'
CAUSE = "regexp_replace(cause, ' [0-9A-Z-]+$', '')"
BREAKS = f"""
SELECT
    rule, replace({CAUSE}, 'no bill for the month', 'missing on the bill') AS cause, partner,
    month::VARCHAR, currency, difference
FROM reconciliation.breaks
WHERE NOT starts_with(rule, 'own_')
"""
OWN_BREAKS = """
SELECT rule, cause, subject, currency, difference FROM reconciliation.breaks
WHERE starts_with(rule, 'own_')
ORDER BY ALL
"""
# Of the ledger and the meter: its columns are other names, whatever the service's are.
OWN = """
[own.{name}]
against = "{against}"
connection = "acme"
file = "{name}.csv"
[own.{name}.roles]
id = "Document"
partner = "Reseller"
period = "Posted"
amount = "Value"
currency = "Ccy"
"""
BY_BILL = """
SELECT subject, difference FROM reconciliation.breaks WHERE rule = 'unreferenced' ORDER BY ALL
"""


def planted(seed: int) -> list[dict[str, Any]]:
    errors: list[dict[str, Any]] = plant(seed, SIZES).report()["errors"]
    return errors


def add_own_books(stores: Stores, seed: int) -> list[tuple[Any, ...]]:
    """Write own books with errors, map them, and return the breaks that these are."""
    made = dataset(seed, SIZES, plant(seed, SIZES))
    usage, billing = (
        [*map(json.loads, rows.rows(0, rows.count))] for rows in (made.usage, made.billing)
    )
    books = {"usage": ("meter", meter(usage, seed)), "billing": ("ledger", ledger(billing, seed))}
    mapping = stores.home.mapping_file.read_text()
    breaks = []
    for against, (name, of_side) in books.items():
        write_durably(stores.home.root / f"{name}.csv", of_side.as_csv().encode())
        mapping += OWN.format(name=name, against=against)
        for error in of_side.errors:
            difference = Decimal(error.difference)
            about = (f"own_{name}", error.cause, error.record, error.currency, difference)
            breaks.append(about)
    write_durably(stores.home.mapping_file, mapping.encode())
    return breaks


@pytest.mark.parametrize(
    ("seed", "names"),
    [
        pytest.param(1, "usual", marks=pytest.mark.long),
        pytest.param(2, "other", marks=pytest.mark.long),
        pytest.param(3, "usual", marks=pytest.mark.slow),
        pytest.param(4, "other", marks=pytest.mark.slow),
        pytest.param(5, "usual", marks=pytest.mark.slow),
    ],
)
def test_planted_charges_are_found_to_the_cent_and_nothing_else(
    seed: int, names: FieldNames, stores: Stores
) -> None:
    made = dataset(seed, SIZES, plant(seed, SIZES), field_names=names)
    for stream in ("partners", "usage", "billing"):
        rows = getattr(made, stream)
        records = [*map(json.loads, rows.rows(0, rows.count))]
        read(stores, Reading(records, stream, key=KEYS[names][stream], page_size=500))
    build_with_books(stores)
    accept(stores)
    file = stores.home.mapping_file
    write_durably(file, file.read_bytes() + ACCEPTED.format(FIELDS[names]).encode())
    own = add_own_books(stores, seed)
    assert make_books(stores).is_new

    found = stores.rows(OWN_BREAKS)
    assert found == sorted(own)
    compared = stores.rows(
        "SELECT source, evaluated, not_understood FROM reconciliation.own_sources"
    )
    assert sorted(compared) == [("ledger", True, 0), ("meter", True, 0)]
    errors = planted(seed)
    assert len(errors) == sum(COUNTS.values())
    wrong = [error for error in errors if error["kind"] in FOUND.keys() - {"accepted_fee"}]
    assert sorted(stores.rows(BREAKS)) == sorted(map(expected, wrong))
    charges = [error for error in wrong if error["kind"] in FEES]
    assert stores.rows(BY_BILL) == sorted(
        (error["billing_id"], Decimal(error["amount"])) for error in charges
    )
    fees = [Decimal(error["amount"]) for error in errors if error["kind"] == "accepted_fee"]
    assert stores.rows("SELECT kind, sum(billed) FROM finance.accepted_fees GROUP BY ALL") == [
        ("support", sum(fees))
    ]
    listed = list_breaks(stores, BreakFilter(rule="unreferenced"))
    millions = [error["billing_id"] for error in charges if error["kind"] == "fee_line"]
    first = listed.breaks.to_pylist()[: len(millions)]
    assert {each["subject"] for each in first} == {*millions}
    assert {each["severity"] for each in first} == {"high"}
    assert all(each["amount"] > 0 for each in listed.materiality)

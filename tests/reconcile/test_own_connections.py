"""One ledger has rows of several connections: each source compares its own, and none is lost."""

from random import Random

import pytest

from pipelines.core.errors import ConfigurationError
from pipelines.core.files import write_durably
from pipelines.finance import own_check
from pipelines.finance.books import make_books
from pipelines.finance.mapping import parse_mapping
from tests.effort import EFFORT
from tests.reconcile.books import MAPPING
from tests.reconcile.own import HEAD, LEDGER, OCTOBER, SEPTEMBER, publish_own, write
from tests.versions.homes import Stores, home_of

own = home_of(publish_own)
ROLES = 'connection = "Entity"\nconnection_values = ["DE 01"]\nother_values = ["FR 02", "US 03"]\n'
BREAKS = """
SELECT break_id, cause, own_amount, difference, doubt FROM reconciliation.breaks
WHERE own_source = 'ledger' AND gone_at IS NULL ORDER BY ALL
"""
SOURCE = """
SELECT rows, left_out, not_understood, evaluated, reason FROM reconciliation.own_sources
WHERE source = 'ledger'
"""
UNREAD = "SELECT role, sent FROM reconciliation.own_unread ORDER BY ALL"
TOTALS = "SELECT * FROM reconciliation.own_totals WHERE source = 'ledger' ORDER BY ALL"


def of_entity(entity: str, *rows: str) -> list[str]:
    return [f"{row},{entity}" for row in rows]


def remade(stores: Stores, mapping: str = LEDGER + ROLES) -> Stores:
    write_durably(stores.home.mapping_file, (MAPPING + mapping).encode())
    make_books(stores, again=True)
    return stores


@pytest.mark.long
@pytest.mark.parametrize("seed", range(EFFORT))
def test_rows_of_other_connections_change_nothing(own: Stores, seed: int) -> None:
    random = Random(seed)
    expected = (own.rows(BREAKS), own.rows(TOTALS))
    # The others have the same identifiers, partners and months.
    others = [random.choice([*SEPTEMBER, *OCTOBER]) for _ in range(30)]
    rows = of_entity("DE 01", *SEPTEMBER[:5]) + of_entity(" de 01 ", *SEPTEMBER[5:], *OCTOBER)
    for row in others:
        rows += of_entity(random.choice(["FR 02", "us 03"]), row)
    random.shuffle(rows)
    write(own, "ledger/2026-09.csv", [f"{HEAD},Entity", *rows])
    (own.home.root / "ledger/2026-10.csv").unlink()
    assert (remade(own).rows(BREAKS), own.rows(TOTALS)) == expected
    assert own.rows(SOURCE) == [(12, 30, 0, True, None)]
    (ledger,) = own_check.check(own)
    assert sum(each["rows"] for each in ledger["left_out"]) == 30
    assert {each["value"] for each in ledger["left_out"]} == {"fr 02", "us 03"}


@pytest.mark.long
def test_a_row_of_no_known_connection_is_not_left_out_in_silence(own: Stores) -> None:
    rows = of_entity("DE 01", *SEPTEMBER, *OCTOBER)
    unknown = of_entity("FR02", SEPTEMBER[0]) + of_entity("", SEPTEMBER[1])
    write(own, "ledger/2026-09.csv", [f"{HEAD},Entity", *rows, *unknown])
    (own.home.root / "ledger/2026-10.csv").unlink()
    assert remade(own).rows(UNREAD) == [("connection", "FR02"), ("connection", None)]
    assert all("2 rows not understood" in row[-1] for row in own.rows(SOURCE))
    assert all(row[-1] for row in own.rows(BREAKS))
    # What another source of the same ledger compares is known.
    other = LEDGER.replace("own.ledger", "own.french") + ROLES.replace("DE 01", "FR02")
    remade(own, LEDGER + ROLES + other.replace('"FR 02"', '"DE 01"'))
    assert own.rows(UNREAD)[0] == ("connection", None)
    assert own.rows(SOURCE)[0][:3] == (13, 1, 1)
    # As before: it has lost rows to a connection that has none.
    remade(own, LEDGER + ROLES.replace('"DE 01"', '"IT"').replace('"FR 02"', '"DE 01", "FR02"'))
    ((*_numbers, evaluated, reason),) = own.rows(SOURCE)
    assert not evaluated
    assert "1 row, and had 14 before" in reason


@pytest.mark.parametrize(
    ("roles", "why"),
    {
        'connection = "Entity"\n': "both connection and connection_values",
        'connection_values = ["1"]\n': "both connection and connection_values",
        'other_values = ["1"]\n': "other_values are values of the role connection",
        ROLES.replace("FR 02", "de 01"): "de 01 is in connection_values and in other_values",
    }.items(),
)
def test_roles_that_leave_rows_to_chance_are_refused(roles: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        parse_mapping(MAPPING + LEDGER + roles)

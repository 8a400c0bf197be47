"""Lists without a primary key: reconciliation says that it does not evaluate them."""

import json
from datetime import timedelta
from typing import Any

import duckdb
import msgspec
import pytest

from pipelines import reconciliation
from pipelines.reconciliation import RULES
from pipelines.settings.mapping import Mapping
from pipelines.warehouse import corrections, matching, meta, proofs
from pipelines.warehouse.frozen import Copies
from tests.warehouse.conftest import NOON, Warehouse
from tests.warehouse.kept import keep

USED = {"id": "u1", "partner": "P", "day": "2026-09-01", "currency": "EUR", "amount": "5.00"}
BILLED = {"id": "b1", "partner": "P", "day": "2026-09-02", "currency": "EUR", "amount": "5.00"}
GIVEN = Mapping.model_validate(
    {
        side: {"partner": "partner", "period": "day", "currency": "currency", "amount": "amount"}
        for side in ("usage", "billing")
    }
)
WHY = "{0} has no primary key: set key in [streams.{0}]"


def night(warehouse: Warehouse, stream: str, records: list[Any], key: str | None) -> None:
    manifest = warehouse.manifest(json.dumps(records), key=key)
    own = msgspec.structs.replace(manifest, stream=stream, scan=f"{manifest.scan}-{stream}")
    warehouse.fold(keep(warehouse, own))


def evaluated(warehouse: Warehouse) -> dict[str, str]:
    """Evaluate all rules; return why some were not."""
    with warehouse.work.writing() as database:
        proofs.tell(database, warehouse.ledger)
        as_of = max(fold.ended_at for fold in meta.held(database).values())
        corrections.tell(database, Copies(warehouse.archive), warehouse.ledger, as_of)
        found = matching.prepare(database, GIVEN, NOON + timedelta(days=1))
        matching.match(database, found)
        reconciliation.evaluate(database, found, RULES, warehouse.ledger)
        return dict(_rows(database, "SELECT rule, not_evaluated FROM reconciliation.rules"))


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    return database.execute(query).fetchall()


SUMMARY = """
SELECT verdict, used_amount::VARCHAR, billed_amount::VARCHAR, not_evaluated
FROM reconciliation.summary
"""


@pytest.mark.parametrize("side", ["usage", "billing"])
def test_a_list_without_a_key_is_not_evaluated(warehouse: Warehouse, side: str) -> None:
    keys = {each: None if each == side else "id" for each in ("usage", "billing")}
    # Without a key nobody knows whether the second is another record or the first that changed.
    twice = {"usage": [USED, {**USED, "day": "2026-09-03"}], "billing": [BILLED]}
    for stream, key in keys.items():
        night(warehouse, stream, twice[stream], key)

    said = evaluated(warehouse)

    names = [rule.name for rule in RULES if any(each.startswith(side) for each in rule.needs)]
    assert {said[name] for name in names} == {WHY.format(side)}
    ((verdict, used, billed, why),) = warehouse.query(SUMMARY)
    assert (verdict, [used, billed][side == "billing"]) == ("not evaluated", None)
    assert str(why).startswith(WHY.format(side))
    assert warehouse.query("FROM reconciliation.breaks") == []


def test_keyed_lists_are_evaluated(warehouse: Warehouse) -> None:
    """Also where one is empty: of that no key can be found."""
    night(warehouse, "usage", [USED], "id")
    night(warehouse, "billing", [BILLED], "id")
    night(warehouse, "partners", [], None)
    assert not [why for why in evaluated(warehouse).values() if why and "primary key" in why]
    assert warehouse.query(SUMMARY)[0][:3] == ("balanced", "5.00", "5.00")

"""Keys are pinned once; shapes are numbered and the newest counts."""

import pytest
from sqlalchemy import Engine, select

from pipelines.state import registry
from pipelines.state.registry import Pin, Registered
from pipelines.state.tables import KEYS, SCHEMAS
from tests.virtual import EPOCH

SHAPES = [
    {"kind": "object", "fields": [["b", {"kind": "null"}], ["a", {"kind": "text"}]]},
    {"kind": "object", "fields": [["b", {"kind": "number", "whole": 38, "scale": 0}], ["ü", {}]]},
]


@pytest.mark.parametrize("key", ["id", None])
def test_a_pin_belongs_to_a_connection_and_stream(ledger: Engine, key: str | None) -> None:
    assert registry.pin(ledger, "default", "usage") is None
    registry.set_pin(ledger, "default", "usage", Pin(key, "scan-1"), EPOCH)
    assert registry.pin(ledger, "default", "usage") == Pin(key, "scan-1")
    assert registry.pin(ledger, "default", "billing") is None
    assert registry.pin(ledger, "second", "usage") is None
    with ledger.connect() as connection:
        assert connection.execute(select(KEYS.c.pinned_at)).scalar() == EPOCH


def test_a_pin_is_never_moved(ledger: Engine) -> None:
    registry.set_pin(ledger, "default", "usage", Pin("id", "scan-1"), EPOCH)
    registry.set_pin(ledger, "default", "usage", Pin("usageId", "scan-2"), EPOCH)
    assert registry.pin(ledger, "default", "usage") == Pin("id", "scan-1")


def test_the_newest_shape_counts_and_the_older_stay(ledger: Engine) -> None:
    assert registry.registered(ledger, "usage") is None
    wider = [Registered(shape, {"usage": {"leaf": "ü"}}) for shape in SHAPES]
    for number, shape in enumerate(wider, start=1):
        registry.register(ledger, "usage", shape, f"manifest {number}", EPOCH)
        assert registry.registered(ledger, "usage") == shape
    registry.register(ledger, "billing", wider[0], "manifest 3", EPOCH)
    assert registry.registered(ledger, "usage") == wider[1]
    columns = (SCHEMAS.c.stream, SCHEMAS.c.number, SCHEMAS.c.shape, SCHEMAS.c.manifest)
    with ledger.connect() as connection:
        rows = connection.execute(select(*columns).order_by(SCHEMAS.c.manifest)).all()
    assert [tuple(row) for row in rows] == [
        ("usage", 1, SHAPES[0], "manifest 1"),
        ("usage", 2, SHAPES[1], "manifest 2"),
        ("billing", 1, SHAPES[0], "manifest 3"),
    ]

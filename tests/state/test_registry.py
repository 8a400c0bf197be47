"""Keys are pinned once."""

import pytest
from sqlalchemy import Engine, select

from pipelines.state import registry
from pipelines.state.registry import Pin
from pipelines.state.tables import KEYS
from tests.virtual import EPOCH


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

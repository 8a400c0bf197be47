"""Shapes are numbered, the newest counts, and a fold that fails leaves none behind."""

from typing import Any

from pipelines.warehouse import registry
from pipelines.warehouse.registry import Registered
from tests.virtual import EPOCH
from tests.warehouse.conftest import Warehouse

SHAPES: list[Any] = [
    {"kind": "object", "fields": [["b", {"kind": "null"}], ["a", {"kind": "text"}]]},
    {"kind": "object", "fields": [["b", {"kind": "number", "whole": 38, "scale": 0}], ["ü", {}]]},
]


def test_the_newest_shape_counts_and_the_older_stay(warehouse: Warehouse) -> None:
    wider = [Registered(shape, {"usage": {"leaf": "ü"}}) for shape in SHAPES]
    with warehouse.work.writing() as writer:
        assert registry.registered(writer, "usage") is None
        for number, shape in enumerate(wider, start=1):
            registry.register(writer, "usage", shape, f"manifest {number}", EPOCH)
            assert registry.registered(writer, "usage") == shape
        registry.register(writer, "billing", wider[0], "manifest 3", EPOCH)
        assert registry.registered(writer, "usage") == wider[1]
    columns = "stream, number, manifest, recorded_at"
    assert warehouse.query(f"SELECT {columns} FROM meta.registry ORDER BY manifest") == [
        ("usage", 1, "manifest 1", EPOCH),
        ("usage", 2, "manifest 2", EPOCH),
        ("billing", 1, "manifest 3", EPOCH),
    ]


def test_only_what_grew_wider_is_registered(warehouse: Warehouse) -> None:
    for rows in ('[{"id": 1}]', '[{"id": 2}]', '[{"id": 1, "a": 2}]'):
        warehouse.fold(warehouse.manifest(rows))
    found = warehouse.query("SELECT number, manifest FROM meta.registry ORDER BY number")
    assert [number for number, _ in found] == [1, 2]
    assert str(found[1][1]).endswith(".003.json")

"""Kinds of numbers: both sides of a comparison have one, so that DuckDB rounds nothing away."""

import duckdb
import pytest

from pipelines.warehouse.roles import Column, Roles

KINDS = [
    (("DECIMAL(18,4)", "BIGINT"), "DECIMAL(23, 4)"),
    (("DECIMAL(18,4)", "DECIMAL(9,2)"), "DECIMAL(18, 4)"),
    (("HUGEINT", "DECIMAL(18,4)"), "DECIMAL(38, 4)"),
    ((), "DECIMAL(18, 0)"),
]


@pytest.mark.parametrize(("types", "kind"), KINDS)
def test_both_sides_have_one_kind(types: tuple[str, ...], kind: str) -> None:
    names = ("usage.quantity", "billing.line_quantity")
    columns = {name: Column("t", "c", each) for name, each in zip(names, types, strict=False)}
    roles = Roles(columns, {}, {})
    assert {roles.kind(name) for name in names} == {kind}
    with duckdb.connect() as database:
        assert database.execute(f"SELECT 12::{kind}").fetchall()

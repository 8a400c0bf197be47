"""A list with an object whose names are data: rebuilt, erased and explained."""

import pytest

from pipelines.versions.build import build, rebuild
from tests.versions.homes import OpenHome, Reading, Record, Stores, read
from tests.versions.named import erase, files_with

NAME = "partner 7f3a of ours"
ROWS = "SELECT m.* FROM {}.usage__shares AS m ORDER BY ALL"


def records(names: int) -> list[Record]:
    shares = {f"partner {at:03}": at for at in range(names)}
    others = [{"id": f"u{at:03}", "shares": shares | {"rest": at}} for at in range(1, 20)]
    return [{"id": "u", "shares": {NAME: 7, "rest": 5}}, *others]


def publish_maps(stores: Stores) -> None:
    """Publish versions of a list whose object gets a name more each night."""
    stores.configure()
    for names in (100, 101, 102):
        read(stores, Reading(records(names), page_size=20))
        build(stores)


@pytest.mark.long
def test_a_map_is_rebuilt_and_erased_by_a_name(open_home: OpenHome) -> None:
    stores = open_home(publish_maps)
    found = {schema: stores.rows(ROWS.format(schema)) for schema in ("history", "current")}
    assert len(found["history"]) == 19 * (101 + 102 + 103) + 2
    codes = stores.rows("SELECT f.code FROM meta.load_findings AS f WHERE f.code LIKE 'names%'")
    assert codes == [("names_are_data",)]
    bare = stores.rows(
        "SELECT c.table_name, c.column_name FROM duckdb_columns() AS c "
        "WHERE c.table_name = 'usage__shares' AND coalesce(c.comment, '') = ''"
    )
    assert bare == []
    assert rebuild(stores).is_new
    assert found == {schema: stores.rows(ROWS.format(schema)) for schema in found}
    assert len(files_with(stores.home.root, NAME)) > 3
    assert erase(stores, NAME) > 3
    assert files_with(stores.home.root, NAME) == []
    assert stores.rows("SELECT count(DISTINCT m._parent_key) FROM current.usage__shares AS m") == [
        (19,)
    ]

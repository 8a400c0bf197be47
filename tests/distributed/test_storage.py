"""Dagster's storage with connections that last, on a real PostgreSQL.

Here: that an instance keeps its sessions, and outlives their end. Not here: what Dagster stores.
"""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from tests.distributed import places

YAML = "storage: {{custom: {{module: assets.storage, class: PooledStorage, config: {{{0}}}}}}}\n"


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    url = places.database()
    (tmp_path / "dagster.yaml").write_text(YAML.format(f"postgres_url: '{url}'"))
    with dg.DagsterInstance.from_config(str(tmp_path)) as made:
        yield made


def session(instance: dg.DagsterInstance) -> int:
    """Return the session of PostgreSQL in which an instance asks for runs."""
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def test_statements_share_one_session(instance: dg.DagsterInstance) -> None:
    before = session(instance)
    instance.add_dynamic_partitions("names", ["first"])
    assert instance.get_dynamic_partitions("names") == ["first"]
    assert instance.get_runs() == []
    assert session(instance) == before


def test_connections_within_connections_last_too(instance: dg.DagsterInstance) -> None:
    storage = instance.run_storage
    seen = list[set[int]]()
    for _ in range(2):
        with storage.connect() as outer, storage.connect() as inner:  # type: ignore[attr-defined]
            asked = "SELECT pg_backend_pid()"
            seen.append({each.exec_driver_sql(asked).scalar_one() for each in (outer, inner)})
    assert seen[0] == seen[1]
    assert len(seen[0]) == 2


def test_another_instance_of_the_process_has_the_same_session(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    before = session(instance)
    with dg.DagsterInstance.from_config(str(tmp_path)) as other:
        assert session(other) == before


def test_an_ended_session_is_replaced_without_a_word(instance: dg.DagsterInstance) -> None:
    instance.add_dynamic_partitions("names", ["first"])
    ended = session(instance)
    places.postgresql().ask(f"SELECT pg_terminate_backend({ended}, 5000)")
    assert instance.get_dynamic_partitions("names") == ["first"]
    assert session(instance) != ended

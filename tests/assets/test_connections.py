"""Several connections in Dagster: whose day a partition is, and that no secret is left anywhere.

The secrets are canaries: they are used in syncs that work and that fail, by the command line and in
Dagster, and then looked for in everything that any of it left behind.
"""

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import duckdb
import pytest
import zstandard
from typer.testing import CliRunner

from assets.definitions import defs
from assets.resources import Sync
from pipelines import run, settings
from pipelines.cli.app import app
from tests.assets.conftest import ON_DISK, TODAY
from tests.assets.test_chain import why
from tests.sandbox.running import AUDIENCE, Running, clients_file, started

SECRETS = {
    "ACME_SECRET": "canary-acme-5d0b",
    "BETA_SECRET": "canary-beta-77e1",
    "SHOP_KEY": "canary-shop-c40f",
}
WRONG = "canary-wrong-19aa"
CLIENTS = """
[[clients]]
id = "acme"
secret = "canary-acme-5d0b"
actor = "distributor"

[[clients]]
id = "beta"
secret = "canary-beta-77e1"
actor = "distributor"

[[keys]]
id = "shop"
key = "canary-shop-c40f"
organization = 0
login = "anna"
"""
PARTNER = """
[{name}]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "{name}"
secret = "{variable}"
"""
INVOICES = '[streams.invoices]\npath = "/v2/invoices"\nsurface = "merchant"\n'
Result = dg.ExecuteInProcessResult
Materialize = Callable[..., Result]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve both surfaces to clients and a key of their own."""
    clients = clients_file(tmp_path_factory.mktemp("clients"), CLIENTS)
    sizes = ("--partners=5", "--usage=50", "--billing=5")
    with started("--rate=1000", "--clients", str(clients), *sizes) as running:
        yield running


@pytest.fixture
def home(both: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with three connections."""
    for name in [name for name in os.environ if name.startswith("PARTNER_SYNC_")]:
        monkeypatch.delenv(name)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    text = f'[shop]\nsurface = "merchant"\nbase_url = "{both.url}"\nsecret = "SHOP_KEY"\n'
    for name in ("acme", "beta"):
        own = {"name": name, "variable": f"{name.upper()}_SECRET"}
        text += PARTNER.format(url=both.url, audience=AUDIENCE, **own)
    (config / "connections.toml").write_text(text)
    (config / "settings.toml").write_text(INVOICES)
    return tmp_path / "home"


@pytest.fixture
def materialize(home: Path, instance: dg.DagsterInstance) -> Materialize:
    """Return what materializes the whole chain today, from one connection to another."""
    instance.add_dynamic_partitions("connections", ["acme", "beta", "gone", "shop"])
    assert home.exists()

    def whole(first: str, last: str | None = None, *, refetch: bool = False) -> Result:
        tags = {
            "dagster/asset_partition_range_start": f"{first}|{TODAY}",
            "dagster/asset_partition_range_end": f"{last or first}|{TODAY}",
        }
        return dg.materialize(
            [asset for asset in defs.assets or () if isinstance(asset, dg.AssetsDefinition)],
            instance=instance,
            resources={"sync": Sync()},
            tags=tags,
            run_config={"ops": {"fetch": {"config": {"refetch": refetch}}}},
            raise_on_error=False,
        )

    return whole


def rows(home: Path) -> dict[str, int]:
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as reader:
        query = "SELECT _connection, count(*) FROM current.usage GROUP BY ALL"
        return dict(reader.execute(query).fetchall())


def test_a_partition_is_read_of_its_own_connection(materialize: Materialize, home: Path) -> None:
    assert materialize("beta").success
    assert rows(home) == {"beta": 50}


@pytest.mark.trial
def test_a_run_may_cover_several_connections(materialize: Materialize, home: Path) -> None:
    result = materialize("acme", "beta")
    assert result.success
    assert rows(home) == {"acme": 50, "beta": 50}
    (folded,) = [
        event.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key == dg.AssetKey(["current", "usage"])
    ][:1]
    assert folded.metadata["dagster/row_count"].value == 100


def test_streams_of_another_surface_are_left_out(materialize: Materialize, home: Path) -> None:
    result = materialize("shop")
    assert result.success
    assert all(each.passed for each in result.get_asset_check_evaluations())
    assert not (home / "archive" / "manifests").exists()


def test_an_unknown_connection_fails_in_plain_words(materialize: Materialize) -> None:
    result = materialize("gone")
    assert not result.success
    failure = result.failure_data_for_node("fetch")
    assert failure is not None
    assert failure.user_failure_data is not None
    words = failure.user_failure_data.description
    assert words == "no connection 'gone'; there are shop, acme, beta"


def left_behind(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file with its content; archived pages unpacked, tables as text, too."""
    for file in (each for each in folder.rglob("*") if each.is_file()):
        content = file.read_bytes()
        yield str(file), content
        if file.suffix == ".zst":
            yield f"{file} unpacked", zstandard.ZstdDecompressor().stream_reader(content).read()
        if file.suffix == ".duckdb":
            yield from tables(file)


def tables(file: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every table as text: in its file DuckDB compresses it."""
    with duckdb.connect(file, read_only=True) as reader:
        query = "SELECT format('{}.\"{}\"', schema_name, table_name) FROM duckdb_tables()"
        for (table,) in reader.execute(query).fetchall():
            rows = reader.execute(f"SELECT own::VARCHAR FROM {table} AS own").fetchall()
            yield f"{file}, table {table}", "".join(text for (text,) in rows).encode()


@pytest.mark.trial
@ON_DISK
def test_no_secret_is_left_anywhere(
    materialize: Materialize,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    told = []
    for wrong in (None, "ACME_SECRET", "SHOP_KEY"):
        with monkeypatch.context() as patched:
            if wrong:
                patched.setenv(wrong, WRONG)
            for verb in (("sync",),) if wrong else (("sync",), ("connections", "test")):
                result = CliRunner().invoke(app, verb)
                told += [result.output, repr(result.exception), str(result.exception)]
            with run.open(settings.load()) as session:
                report = run.check(session, session.settings.connection("acme"))
                told += [repr(session), repr(report), repr(session.settings.connections())]
            if wrong != "SHOP_KEY":
                run_result = materialize("acme", refetch=True)
                told += [str(each) for each in instance.all_logs(run_result.run_id)]
                told += [repr(instance.get_run_by_id(run_result.run_id)), repr(Sync())]
    assert "published" in told[0]
    assert any("no token: 401" in each for each in told)
    assert any("API key rejected" in each for each in told)
    found = dict(left_behind(tmp_path)) | {"told": "".join(told).encode()}
    found["log"] = caplog.text.encode()
    assert len(found) > 20
    for secret in (*SECRETS.values(), WRONG):
        assert [name for name, content in found.items() if secret.encode() in content] == []


@pytest.mark.trial
def test_a_failing_connection_is_told_by_its_partition(
    materialize: Materialize, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETA_SECRET", WRONG)
    result = materialize("acme", "beta")
    assert not result.success
    assert f"beta|{TODAY}: billing: no token: 401" in why(result)
    assert f"acme|{TODAY}" not in why(result)
    assert rows(home) == {"acme": 50}

"""What Dagster shows of an asset, before it was ever made and after a night of the nightly job."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from assets import catalog, checks, landing
from assets.definitions import defs
from assets.freshness import deadlines
from assets.intents import TAG
from assets.once import RUN_KEY_TAG
from pipelines.cli.sandbox import Service
from pipelines.settings import StreamSettings
from pipelines.streams import STREAMS
from pipelines.streams.base import configured
from tests.assets.conftest import ON_DISK, TODAY

NAMES = [stream.name for stream in STREAMS]
SCHEMAS = ("archive", "current", "history")
SPECS = [
    spec
    for each in defs.assets or ()
    if isinstance(each, dg.AssetsDefinition)
    for spec in each.specs
]
ARCHIVES = [dg.AssetKey(["archive", name]) for name in NAMES]
NIGHT = dg.MultiPartitionKey({"connection": "default", "date": str(TODAY)})


@dataclass(frozen=True)
class Night:
    """A night of the nightly job, and its reading asked for again: its instance, its home."""

    instance: dg.DagsterInstance
    results: tuple[dg.ExecuteInProcessResult, dg.ExecuteInProcessResult]
    home: Path

    def metadata(self, schema: str, name: str, run: int = 0) -> dict[str, Any]:
        """Return what a materialization says."""
        (found,) = [
            event.materialization.metadata
            for event in self.results[run].all_events
            if event.is_step_materialization and event.asset_key == dg.AssetKey([schema, name])
        ]
        return {label: each.value for label, each in found.items()}

    def said(self, run: int = 0) -> str:
        """Return all that the run logged, metadata and checks included."""
        return " ".join(map(str, self.instance.all_logs(self.results[run].run_id)))


@pytest.fixture(scope="module")
def night(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """Run the nightly job for today, and its first step once more."""
    home = tmp_path_factory.mktemp("night") / "home"
    job = defs.resolve_job_def("nightly_sync")
    with pytest.MonkeyPatch.context() as patch, dg.DagsterInstance.ephemeral() as instance:
        for name, value in {**service.environment, "PARTNER_SYNC_HOME": str(home)}.items():
            patch.setenv(name, value)
        instance.add_dynamic_partitions("connections", ["default"])
        first, second = (
            job.execute_in_process(
                instance=instance,
                partition_key=str(NIGHT),
                asset_selection=selection,
                raise_on_error=False,
            )
            for selection in (None, ARCHIVES)
        )
        assert first.success
        assert second.success
        yield Night(instance, (first, second), home)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.key.to_user_string())
def test_an_asset_introduces_itself(spec: dg.AssetSpec) -> None:
    assert spec.group_name == spec.key.path[0]
    assert spec.kinds
    assert list(spec.owners) == ["team:data"]
    assert spec.tags
    assert spec.code_version
    assert len(spec.description or "") > 40
    assert str(spec.metadata["dagster/uri"]).startswith("file:///")
    links = spec.metadata["dagster/code_references"].code_references
    labels = {each.label for each in links}
    assert "docs" in labels
    assert any(label.endswith(".py") for label in labels)
    assert all(Path(each.file_path).is_file() for each in links)


def test_a_stream_of_the_settings_is_an_asset_with_no_change_here() -> None:
    stream = configured("plans", StreamSettings(path="/v2/plans"))
    spec = catalog.of_stream("current", stream, {"duckdb"}, [dg.AssetKey(["archive", "plans"])])
    assert spec.key == dg.AssetKey(["current", "plans"])
    assert spec.metadata["dagster/table_name"] == "current.plans"
    assert [dep.asset_key.path for dep in spec.deps] == [["archive", "plans"]]


@pytest.mark.trial
def test_definitions_load_without_a_home_a_network_or_credentials(tmp_path: Path) -> None:
    home = tmp_path / "home"
    clean = {name: each for name, each in os.environ.items() if not name.startswith("PARTNER_SYNC")}
    code = """
import json, socket, sys
import duckdb
def refuse(*_args, **_kwargs):
    raise AssertionError("definitions opened something")
socket.socket.connect = duckdb.connect = refuse
from assets.definitions import defs
keys = [key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()]
print(json.dumps(sorted(keys)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**clean, "PARTNER_SYNC_HOME": str(home), "PARTNER_SYNC_STREAMS": json.dumps(PLANS)},
        capture_output=True,
        text=True,
        check=True,
    )
    keys = json.loads(done.stdout.splitlines()[-1])
    assert {f"{schema}/{name}" for schema in SCHEMAS for name in [*NAMES, "plans"]} < set(keys)
    assert not home.exists()


PLANS = {"plans": {"path": "/v2/plans"}}


def test_every_check_has_a_result_and_passes(night: Night) -> None:
    found = {
        (each.asset_key.to_user_string(), each.check_name): each.passed
        for each in night.results[0].get_asset_check_evaluations()
    }
    archived = (checks.READ, checks.PROVEN, checks.NO_REPEATS, checks.UNCHANGED)
    wanted = {(f"archive/{name}", each.name) for name in NAMES for each in archived}
    wanted |= {(f"current/{name}", each.name) for name in NAMES for each in landing.ALL}
    wanted |= {("published/warehouse", "fresh")}
    assert found == dict.fromkeys(wanted, True)


def test_no_check_blocks_and_each_says_what_to_do() -> None:
    archived = (checks.READ, checks.PROVEN, checks.NO_REPEATS, checks.UNCHANGED)
    for each in (*landing.ALL, *archived, checks.FRESH):
        spec = each.spec(dg.AssetKey(["current", "usage"]))
        assert spec.blocking is False
        assert each.means in (spec.description or "")
        failed = each.result(spec.asset_key, {"rows": 1}, passed=False)
        assert failed.metadata["what to do"].value == each.to_do
        assert failed.metadata["rows"].value == 1


def test_tables_show_columns_lineage_and_counts(night: Night) -> None:
    with duckdb.connect(night.home / "warehouse.duckdb", read_only=True) as reader:
        described = reader.execute("DESCRIBE current.usage").fetchall()
        total = reader.execute("SELECT count(*) FROM current.usage").fetchall()[0][0]
    shown = night.metadata("current", "usage")
    schema = shown["dagster/column_schema"]
    assert [(each.name, each.type) for each in schema.columns] == [each[:2] for each in described]
    assert all(each.description for each in schema.columns)
    lineage = night.metadata("current", "partners")["dagster/column_lineage"].deps_by_column
    (source,) = lineage["name"]
    assert (source.asset_key.path, source.column_name) == (["archive", "partners"], "$.name")
    assert "_page" not in lineage
    assert shown["dagster/row_count"] == total == 600
    assert shown["dagster/partition_row_count"] == 600
    assert "| period__start " in str(shown["columns"])
    past = night.metadata("history", "usage")
    names = {each.name for each in past["dagster/column_schema"].columns}
    assert {"valid_from", "valid_to", "why"} < names
    assert past["records added"] == 600


PLOTTED = {
    "archive": ("rows", "minutes", "pages", "requests", "429s", "seconds waited"),
    "current": ("rows", "rows missing", "rows read"),
    "history": ("records added", "records changed"),
}


@pytest.mark.parametrize("schema", PLOTTED)
def test_numbers_are_plotted_over_nights_under_one_label(night: Night, schema: str) -> None:
    shown = night.metadata(schema, "usage")
    for label in PLOTTED[schema]:
        assert isinstance(shown[label], int | float)


def test_the_published_file_shows_sums_rows_and_minutes(night: Night) -> None:
    shown = night.metadata("published", "warehouse")
    assert shown["rows usage"] == 600
    assert shown["rows"] == 600 + 20 + 60
    assert isinstance(shown["minutes"], float)
    assert int(str(shown["requests"])) > 3
    assert Path(str(shown["file"])).is_file()
    assert "current.usage" in str(shown["tables"])


def test_no_record_is_in_the_log(night: Night) -> None:
    with duckdb.connect(night.home / "warehouse.duckdb", read_only=True) as reader:
        query = "SELECT name FROM {0} UNION SELECT external_id FROM {0}"
        values = [
            str(each) for (each,) in reader.execute(query.format("current.partners")).fetchall()
        ]
    said = night.said() + night.said(1)
    wanted = [each for each in values if len(each) > 5]
    assert len(wanted) > 20
    assert [each for each in wanted if each in said] == []


def test_a_run_says_what_it_will_do_before_anything_is_sent(night: Night) -> None:
    plans = [night.metadata("archive", "usage", run)["plan"] for run in range(2)]
    assert plans[0] == "fetch, of unknown length"
    assert str(plans[1]).startswith(f"replay of default/usage/{TODAY}.001.json, 0 requests")
    tags = []
    for result in night.results:
        found = night.instance.get_run_by_id(result.run_id)
        assert found is not None
        tags.append(found.tags[TAG])
    assert tags[0].startswith("replay 0, fetch 3: ")
    assert tags[1] == "replay 3, fetch 0: 0 requests, 0.0 minutes"
    assert f"{NIGHT}: fetch of billing, partners, usage" in night.said()
    assert (
        f"{NIGHT}: replay of billing, partners, usage from the archive, 0 requests" in night.said(1)
    )


@ON_DISK
def test_the_check_is_asked_for_once_when_a_list_becomes_stale(
    night: Night, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert night.home.exists()
    context = dg.build_schedule_context(instance=instance)
    assert isinstance(deadlines(context), dg.SkipReason)
    monkeypatch.setenv("PARTNER_SYNC_STALE_AFTER", "0.000001")
    first = deadlines(context)
    assert isinstance(first, dg.RunRequest)
    assert str(first.run_key).startswith("stale since ")
    tags = {RUN_KEY_TAG: str(first.run_key)}
    instance.add_run(
        dg.DagsterRun(job_name="freshness", tags=tags, status=dg.DagsterRunStatus.SUCCESS)
    )
    second = deadlines(context)
    assert isinstance(second, dg.SkipReason)
    assert second.skip_message == f"{first.run_key}: the check has said so"

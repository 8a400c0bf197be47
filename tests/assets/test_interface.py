"""The interface watch in Dagster: what its checks say, and a chain whose streams are foreign."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from assets import interface
from assets.archive import key
from pipelines import run
from pipelines.settings import load
from pipelines.state.descriptions import Difference, SeenChange
from tests.api.test_description import LIMIT, OFFSET, listing
from tests.end_to_end.test_other_service import served

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def change(meaning: str) -> SeenChange:
    return SeenChange("default", "usage", "/v2/usage", "field a", "string", "", meaning, NOW)


CHANGES = [
    ([], True, [], []),
    (["safe", "opportunity"], True, [], ["safe", "opportunity"]),
    (["breaking", "safe"], False, ["breaking"], ["safe"]),
]


@pytest.mark.parametrize(("meanings", "passed", "breaking", "others"), CHANGES)
def test_only_what_breaks_fails_and_it_warns(
    meanings: list[str],
    passed: bool,  # noqa: FBT001
    breaking: list[str],
    others: list[str],
) -> None:
    result = interface.unchanged(key("usage"), [change(each) for each in meanings])
    assert result.passed is passed
    assert result.severity is dg.AssetCheckSeverity.WARN
    for name, expected in (("breaking", breaking), ("others", others)):
        shown = result.metadata[name].value
        lines = [f"{each}: /v2/usage field a: string -> nothing" for each in expected]
        assert shown == (" · ".join(lines) or "none")


def test_a_difference_fails_and_is_shown() -> None:
    difference = Difference("default", "usage", "a", "never came", "string", "", "m.json", NOW)
    assert interface.as_described(key("usage"), []).passed
    result = interface.as_described(key("usage"), [difference])
    assert not result.passed
    assert result.metadata["differences"].value == "a never came (described: string)"


PAGE = {"properties": {"data": {"type": "array"}, "pagination": {"type": "object"}}}
STREAMS = {"invoices": {"path": "/v2/invoices", "surface": "merchant"}}


@pytest.mark.trial
def test_a_description_that_changed_fails_a_check_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages become smaller after a first sync. A stream of the other surface is no hindrance."""
    limits = iter((500, 100))

    async def docs(_request: Request) -> JSONResponse:
        smaller = LIMIT | {"schema": {"maximum": next(limits)}}
        paths = {"/v2/usage": {"get": listing(smaller, OFFSET, schema=PAGE)}}
        return JSONResponse({"openapi": "3.1.0", "paths": paths})

    with served(Route("/docs/openapi.json", docs)) as service:
        environment = service.environment | {
            "PARTNER_SYNC_HOME": str(tmp_path / "home"),
            "PARTNER_SYNC_STREAMS": json.dumps(STREAMS),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with run.open(load()) as session:
            assert run.sync(session, run.orders(session)).exit_code == 0
        done = subprocess.run(
            [sys.executable, "-m", "tests.assets.night", str(tmp_path / "dagster")],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["success"]
    assert said["failed"] == ["archive/usage interface_unchanged"]

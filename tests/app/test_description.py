"""Page sizes: what the interface description states holds, from the first request on."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.app.description import DESCRIPTION, Bounds, bounds, sized
from pipelines.app.plan import check_connections
from pipelines.config.home import Home
from pipelines.config.settings import Stream
from pipelines.core.errors import ExitCode
from pipelines.metadata.tables import Scan
from tests.end_to_end.proxy import changed_answers
from tests.homes import make_home, opened, rows, sync_once
from tests.sandbox.running import SMALL, Running, started

REFERENCE = {"$ref": "#/components/parameters/size"}


def described(*parameters: Any, path: str = "/v2/usage", **item: Any) -> dict[str, Any]:
    components = {"parameters": {"size": limit(maximum=50)}}
    item |= {"get": {"parameters": list(parameters)}}
    return {"paths": {path: item}, "components": components}


def limit(**schema: Any) -> dict[str, Any]:
    return {"name": "limit", "in": "query", "schema": schema}


STATED: dict[str, tuple[dict[str, Any], Bounds]] = {
    "both": (described(limit(minimum=1, maximum=200)), Bounds(1, 200)),
    "a reference": (described(REFERENCE), Bounds(None, 50)),
    "an escaped reference": (
        described(path="/v2/plans")
        | {
            "paths": {
                "/v2/usage": {"$ref": "#/paths/~1v2~1all%20~01usage"},
                "/v2/all ~1usage": described(limit(maximum=40))["paths"]["/v2/usage"],
            }
        },
        Bounds(None, 40),
    ),
    "of the path": (described(parameters=[limit(maximum=70)]), Bounds(None, 70)),
    "combined": (
        described(limit(anyOf=[{"type": "integer", "maximum": 80.0}, {"type": "null"}])),
        Bounds(None, 80),
    ),
    "OpenAPI 2": (described({"name": "limit", "maximum": 90}), Bounds(None, 90)),
    "version in the server": (described(limit(maximum=60), path="/usage"), Bounds(None, 60)),
    "another list": (described(limit(maximum=60), path="/v2/billing"), Bounds()),
    "another parameter": (described({"name": "offset", "schema": {"maximum": 3}}), Bounds()),
    "texts and truths": (described(limit(minimum=True, maximum="200")), Bounds()),
    "negative": (described(limit(maximum=-5)), Bounds(None, 1)),
    "odd": (
        described(3, None, ["x"], {"name": ["limit"]}, {"name": "limit", "schema": 7}),
        Bounds(),
    ),
    "a circle": ({"paths": {"$ref": "#/paths"}}, Bounds()),
    "nothing": ({}, Bounds()),
    "no object": ({"paths": [1]}, Bounds()),
}


@pytest.mark.parametrize(("document", "expected"), STATED.values(), ids=STATED)
def test_what_a_description_states(document: dict[str, Any], expected: Bounds) -> None:
    assert bounds(document, "/v2/usage") == expected


@pytest.mark.parametrize(
    ("asked", "stated", "expected"),
    [
        (500, {"maximum": 200}, 200),
        (500, {}, 500),
        (1000, {}, 500),
        (1000, {"maximum": 2000}, 1000),
        (1000, {"maximum": 700}, 700),
        (10, {"minimum": 25, "maximum": 200}, 25),
        (10, {"minimum": 300, "maximum": 200}, 200),
    ],
)
def test_the_size_of_pages(asked: int, stated: dict[str, int], expected: int) -> None:
    stream = Stream(name="usage", path="/v2/usage", limit=asked)
    assert sized(described(limit(**stated)), stream).limit == expected


def test_lists_in_general_have_a_hundred_records(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "pipelines")
    assert sized({}, Stream(name="plans", path="/v2/plans")).limit == 100
    assert caplog.messages == []
    assert sized({}, Stream(name="plans", path="/v2/plans", limit=300)).limit == 100
    (text,) = caplog.messages
    assert text.startswith("plans: limit = 300 is not a page size that the service allows.")


def asked_limits(home: Home) -> dict[str, set[int]]:
    """Return the page sizes that a scan of each list asked for."""
    found: dict[str, set[int]] = {}
    with opened(home) as session, session.metadata.transaction() as db:
        for row in db.query(Scan).all():
            scan = session.archive.open_sealed(row)
            found[row.stream] = {each.limit for each in scan.exchanges()}
    return found


@pytest.mark.long
def test_a_lower_bound_is_kept_from_the_first_request_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ("--rate", "1000", "--page-limit", "usage=200", "--page-limit", "billing=1000")
    with started(*options, *SMALL) as service:
        home = make_home(tmp_path / "home", service)
        home.settings_file.write_text("[streams.billing]\nlimit = 1000\n")
        with opened(home) as session:
            assert all(row["passed"] for row in check_connections(session, None))
        assert sync_once(home).exit_code == ExitCode.DONE
        statuses = service.statistics()["requests"]
        assert {*statuses["/v2/usage"], *statuses["/v2/billing"]} == {"200"}
    assert asked_limits(home) == {"partners": {100}, "usage": {200}, "billing": {1000}}
    assert "description" not in caplog.text


@pytest.mark.long
def test_a_chain_of_halved_pages_is_proven(
    sandbox: Running, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")

    def refuse(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        if request.url.path == DESCRIPTION:
            return httpx.Response(404)
        if int(request.url.params.get("limit", 0)) > 300:
            return httpx.Response(422, content=json.dumps({"detail": "limit: at most 300"}))
        return answer

    with changed_answers(sandbox, refuse) as service:
        home = make_home(tmp_path / "home", service)
        (usage,) = sync_once(home, "usage").streams
        assert usage.state == "complete"
        assert rows(home, "SELECT count(*) FROM current.usage") == [(1500,)]
    assert asked_limits(home) == {"usage": {500, 250}}
    assert caplog.messages == []

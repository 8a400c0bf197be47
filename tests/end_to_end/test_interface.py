"""The interface watched over nights: what changed and what differs lands where people look."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.settings import Settings
from tests.api.test_description import LIMIT, OFFSET, listing
from tests.end_to_end.conftest import Point
from tests.end_to_end.test_other_service import served

PARTNER = {
    "type": "object",
    "required": ["partnerId", "name", "region"],
    "properties": {
        "partnerId": {"type": "string", "description": "Who it is."},
        "name": {"type": "integer"},
        "region": {"type": "string"},
    },
}
STATUS = {"name": "status", "in": "query", "schema": {"type": "string"}}


def paged(item: Any) -> dict[str, Any]:
    return {
        "properties": {"data": {"type": "array", "items": item}, "pagination": {"type": "object"}}
    }


@dataclass
class Docs:
    """What a service describes tonight; None: nothing."""

    paths: dict[str, Any] | None = field(
        default_factory=lambda: {
            "/v2/partners": {"get": listing(LIMIT, OFFSET, schema=paged(PARTNER))},
            "/v2/usage": {"get": listing(LIMIT | {"schema": {"maximum": 7}}, OFFSET)},
        }
    )

    async def answer(self, _request: Request) -> Response:
        if self.paths is None:
            return Response(status_code=500)
        return JSONResponse({"openapi": "3.0.3", "info": {}, "paths": self.paths})


@pytest.fixture
def docs() -> Docs:
    return Docs()


@pytest.fixture
def other(docs: Docs) -> Iterator[Service]:
    """Serve another service of this interface, with a description that can change."""
    with served(Route("/docs/openapi.json", docs.answer)) as service:
        yield service


@pytest.fixture
def settings(point: Point, other: Service) -> Settings:
    return point(other)


def night(settings: Settings) -> tuple[run.Outcome, list[str]]:
    """Sync; return what became of it, and what was told meanwhile."""
    told: list[str] = []
    with run.open(settings, run.Watch(waiting=told.append)) as session:
        return run.sync(session, run.orders(session)), told


def published(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(settings.place.link, read_only=True) as reader:
        return reader.execute(sql).fetchall()


def limits(settings: Settings) -> set[str]:
    """Return the page sizes that usage was asked with, ever."""
    with run.open(settings) as session, session.ledger.connect() as ledger:
        rows = ledger.exec_driver_sql("SELECT query FROM requests WHERE stream = 'usage'")
        return {row[0].split("&")[0] for row in rows}


CHANGES = "SELECT stream, what, before, after, meaning FROM meta.interface_changes ORDER BY ALL"
DIFFERENCES = (
    "SELECT field, what FROM meta.interface_differences WHERE stream = 'partners' ORDER BY ALL"
)


def test_what_changes_between_two_nights_is_told_and_lands(settings: Settings, docs: Docs) -> None:
    first, _ = night(settings)
    assert first.exit_code == 0
    assert published(settings, CHANGES) == []
    assert docs.paths is not None
    docs.paths["/v2/usage"]["get"] = listing(LIMIT | {"schema": {"maximum": 5}}, OFFSET, STATUS)
    docs.paths["/v2/plans"] = {"get": listing(LIMIT, OFFSET)}
    second, told = night(settings)

    assert second.exit_code == 0
    assert published(settings, CHANGES) == [
        ("usage", "largest limit", "7", "5", "breaking"),
        ("usage", "parameter status (query)", "", "optional", "opportunity"),
        (None, "list", "", "offered (surface not said)", "opportunity"),
    ]
    assert limits(settings) == {"limit=7", "limit=5"}
    assert any("breaking: /v2/usage largest limit: 7 -> 5" in words for words in told)
    third, told = night(settings)
    assert third.exit_code == 0
    assert len(published(settings, CHANGES)) == 3
    assert not any("/v2/usage" in words for words in told)


def test_records_are_held_to_their_description_both_ways(settings: Settings) -> None:
    outcome, _ = night(settings)
    assert outcome.exit_code == 0
    assert published(settings, DIFFERENCES) == [
        ("externalId", "is not described"),
        ("name", "is of another type"),
        ("region", "never came"),
    ]
    comment = "SELECT DISTINCT comment FROM duckdb_columns() WHERE column_name = 'partner_id'"
    assert published(settings, comment) == [("Who it is.",)]


def test_docs_that_fail_are_no_failure_and_the_documents_bounds_apply(
    settings: Settings, docs: Docs
) -> None:
    docs.paths = None
    outcome, told = night(settings)
    assert outcome.exit_code == 0
    assert limits(settings) == {"limit=500"}
    assert any("no interface description (/docs/: 404; " in words for words in told)
    docs.paths = {}
    assert night(settings)[0].exit_code == 0


def test_a_described_key_is_looked_at_first_and_a_limit_of_the_settings_holds(
    point: Point, other: Service, docs: Docs, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert docs.paths is not None
    item = {"properties": {"id": {"type": "integer"}}, "required": ["id"]}
    docs.paths["/v2/usage"]["get"] = listing(LIMIT, OFFSET, schema=paged(item))
    monkeypatch.setenv("PARTNER_SYNC_STREAMS", json.dumps({"usage": {"limit": 3}}))
    settings = point(other)
    assert night(settings)[0].exit_code == 0
    assert limits(settings) == {"limit=3"}

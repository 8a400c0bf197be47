"""The same sync against another service of this interface: other fields, nothing hard-coded."""

import base64
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.errors import PartnerSyncError
from pipelines.settings import load
from tests import landed
from tests.end_to_end.conftest import Point

USAGE = """
{"id": 18446744073709551617, "Tarif": "Grün", "menge": 1.50, "preis": "0.000000000000000001",
 "zeit": "2026-03-29T02:30:00.123456-03:30", "marken": ["a", "", null], "Ok": true, "leer": {}}
{"id": 7, "Tarif": "007", "menge": -3e2, "preis": "12345678901234567.89", "zeit": null,
 "marken": [], "stufen": [{"ab": 0, "teile": [{"x": 1}, {"x": 2}]}, {"ab": 10.25, "teile": []}]}
{"id": 8, "menge": 123456789012345678, "preis": "0.10", "zeit": "2026-01-01T00:00:00Z",
 "stufen": null, "gemischt": 5, "order": "select \\"; drop table"}
{"id": 9, "menge": null, "gemischt": "fünf", "zeit": "9999-12-31T23:59:59Z"}
""".strip()
BILLING = '{"no": "key here", "amt": 1}\n{"no": "key here", "amt": 1}\n{"no": "other", "amt": 2.5}'
PARTNERS = '{"partnerId": "5f0000000000000000000001", "name": "A", "externalId": "001"}'


def items(text: str) -> list[str]:
    """Split concatenated JSON objects, each kept as it is written."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text):
        _value, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


LISTS = {"partners": items(PARTNERS), "usage": items(USAGE), "billing": items(BILLING)}


async def page(request: Request) -> Response:
    """Answer in pages of at most two records, whatever is asked for."""
    every = LISTS[request.path_params["name"]]
    offset = int(request.query_params["offset"])
    part = every[offset : offset + 2]
    more = offset + 2 < len(every)
    pagination = {
        "limit": 2,
        "offset": offset,
        "has_more": more,
        "next_offset": offset + 2 if more else None,
        "prev_offset": max(0, offset - 2) if offset else None,
    }
    body = f'{{"data": [{", ".join(part)}], "pagination": {json.dumps(pagination)}}}'
    return Response(body, media_type="application/json")


async def token(request: Request) -> JSONResponse:
    """Give a token that only looks like one: the client must not need its claims."""
    asked: dict[str, Any] = await request.json()
    assert set(asked) == {"client_id", "client_secret", "audience", "grant_type"}
    part = base64.urlsafe_b64encode(b"{}").decode().rstrip("=")
    return JSONResponse({"access_token": f"{part}.{part}.x", "expires_in": 60})


async def whoami(_request: Request) -> JSONResponse:
    """Say nothing that tells one caller from another, as a token does that has no claims."""
    return JSONResponse({"now": "2026-11-21T02:00:00Z", "rechte": ["alle"]})


@contextmanager
def served(*more: Route) -> Iterator[Service]:
    """Run the other service on this machine, with more routes where they are given."""
    app = Starlette(
        routes=[
            *more,
            Route("/v2/whoami", whoami),
            Route("/v2/{name}", page),
            Route("/idp/oauth/token", token, methods=["POST"]),
        ]
    )
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            environment = {
                "PARTNER_SYNC_BASE_URL": url,
                "PARTNER_SYNC_AUTH_URL": f"{url}/idp",
                "PARTNER_SYNC_AUDIENCE": "other",
                "PARTNER_SYNC_CLIENT_ID": "me",
                "PARTNER_SYNC_CLIENT_SECRET": "mine",
                "PARTNER_SYNC_WINDOW": "0",
            }
            yield Service(url, environment)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def reader(point: Point) -> Iterator[duckdb.DuckDBPyConnection]:
    """Sync the other service; yield what it published."""
    with served() as service:
        settings = point(service)
        with run.open(settings) as session:
            outcome = run.sync(session, run.orders(session))
        assert [each.error for each in outcome.streams] == [None, None, None]
        with duckdb.connect(settings.place.link, read_only=True) as published:
            yield published


def test_its_fields_become_columns(reader: duckdb.DuckDBPyConnection) -> None:
    types = dict(
        reader.execute(
            "SELECT column_name, data_type FROM duckdb_columns() "
            "WHERE schema_name = 'current' AND table_name = 'usage'"
        ).fetchall()
    )
    assert types == {
        "_connection": "VARCHAR",
        "id": "DECIMAL(38,0)",
        "tarif": "VARCHAR",
        "menge": "DECIMAL(38,2)",
        "preis": "DECIMAL(38,18)",
        "zeit": "TIMESTAMP WITH TIME ZONE",
        "zeit__offset": "VARCHAR",
        "marken__count": "BIGINT",
        "ok": "BOOLEAN",
        "stufen__count": "BIGINT",
        "gemischt": "VARCHAR",
        "order": "VARCHAR",
        "_page": "VARCHAR",
        "_row": "INTEGER",
        "_run": "VARCHAR",
        "_digest": "BLOB",
        "first_seen": "TIMESTAMP WITH TIME ZONE",
        "changed_at": "TIMESTAMP WITH TIME ZONE",
        "missing_since": "TIMESTAMP WITH TIME ZONE",
    }


def test_its_numbers_are_exact(reader: duckdb.DuckDBPyConnection) -> None:
    found = reader.execute(
        "SELECT id::VARCHAR, menge::VARCHAR, preis::VARCHAR, gemischt "
        "FROM current.usage ORDER BY id"
    )
    assert found.fetchall() == [
        ("7", "-300.00", "12345678901234567.890000000000000000", None),
        ("8", "123456789012345678.00", "0.100000000000000000", "5"),
        ("9", None, None, '"fünf"'),
        ("18446744073709551617", "1.50", "0.000000000000000001", None),
    ]


def test_arrays_become_child_tables_in_every_depth(reader: duckdb.DuckDBPyConnection) -> None:
    marks = reader.execute("SELECT id, idx, value FROM current.usage__marken ORDER BY idx")
    assert [row[1:] for row in marks.fetchall()] == [(0, "a"), (1, ""), (2, None)]
    counts = reader.execute("SELECT id::INT, marken__count FROM current.usage WHERE id IN (7, 8)")
    assert sorted(counts.fetchall()) == [(7, 0), (8, None)]
    steps = reader.execute("SELECT id::INT, idx, ab FROM current.usage__stufen ORDER BY idx")
    assert [(key, idx, str(ab)) for key, idx, ab in steps.fetchall()] == [
        (7, 0, "0.00"),
        (7, 1, "10.25"),
    ]
    parts = reader.execute("SELECT id::INT, idx, idx_2, x FROM current.usage__stufen__teile")
    assert sorted(parts.fetchall()) == [(7, 0, 0, 1), (7, 0, 1, 2)]


def test_records_without_a_key_are_all_kept(reader: duckdb.DuckDBPyConnection) -> None:
    found = landed.rows(reader, "SELECT _key, no, amt FROM current.billing ORDER BY amt, _key")
    assert [(row["no"], str(row["amt"])) for row in found] == [
        ("key here", "1.0"),
        ("key here", "1.0"),
        ("other", "2.5"),
    ]
    assert found[0]["_key"].endswith(".1")
    assert found[1]["_key"] == found[0]["_key"][:-1] + "2"


def test_a_stream_that_breaks_leaves_the_others_published(
    point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LISTS, "billing", ['{"a": 1, "a": 2}'])
    with served() as service:
        settings = point(service)
        with run.open(settings) as session:
            outcome = run.sync(session, run.orders(session))

    errors = {each.stream: each.error for each in outcome.streams}
    assert errors["usage"] is errors["partners"] is None
    assert isinstance(errors["billing"], PartnerSyncError)
    assert "1 of 1 rows set aside" in str(errors["billing"])
    assert "a is there twice" in str(errors["billing"])
    assert outcome.exit_code == 3


def test_an_empty_answer_where_rows_were_is_not_published(
    point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as service:
        settings = point(service)
        with run.open(settings) as session:
            assert run.sync(session, run.orders(session)).exit_code == 0
            monkeypatch.setitem(LISTS, "usage", [])
            refused = run.sync(session, run.orders(session))
        monkeypatch.setenv("PARTNER_SYNC_STREAMS", '{"usage": {"may_be_empty": true}}')
        with run.open(load()) as session:
            accepted = run.sync(session, run.orders(session))

    errors = {each.stream: str(each.error) for each in refused.streams}
    assert refused.exit_code == 3
    assert "answered an empty list where 4 rows were" in errors["usage"]
    assert refused.version is not None
    assert refused.version.counts["current.usage"] == 4
    assert accepted.exit_code == 0
    assert accepted.version is not None
    with duckdb.connect(settings.place.link, read_only=True) as published:
        missing = "SELECT count(*) FROM current.usage WHERE missing_since IS NOT NULL"
        assert published.execute(missing).fetchall() == [(4,)]


def test_one_field_of_another_kind_stops_nobody(
    point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as service, run.open(point(service)) as session:
        assert run.sync(session, run.orders(session)).exit_code == 0
        other = '{"id": 7, "zeit": "bald", "marken": "keine"}'
        monkeypatch.setitem(LISTS, "usage", [LISTS["usage"][0], other, *LISTS["usage"][2:]])
        outcome = run.sync(session, run.orders(session))
        with session.work.writing() as writer:
            rows = writer.execute(
                "SELECT zeit, zeit__text, marken__count, marken__text "
                "FROM current.usage WHERE id = 7"
            ).fetchall()
            kept = writer.execute("SELECT count(*), count(zeit) FROM current.usage").fetchall()

    assert outcome.exit_code == 0
    assert rows == [(None, "bald", None, "keine")]
    assert kept == [(4, 3)]

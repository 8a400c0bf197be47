"""Finding the description over HTTP: on the sandbox, and on services that hide or break theirs."""

import asyncio
import gzip
import json
from dataclasses import replace

import pytest

from pipelines.api import client, interface
from pipelines.api.interface import REQUESTS, Found
from pipelines.clock import SYSTEM
from pipelines.settings import Connection, Secret, Settings
from pipelines.state.runs import Call
from tests.api.service import Reply, Service, serving
from tests.api.test_description import LIMIT, OFFSET, listing, written
from tests.sandbox.running import sandboxed

CONNECTION = Connection("default", "", "", "audience", "id", Secret("PARTNER_SYNC_CLIENT_SECRET"))
GOOD = Reply(body=written({"/v2/plans": {"get": listing(LIMIT, OFFSET)}}))
HTML = {"Content-Type": "text/html"}


def page(html: str) -> Reply:
    return Reply(body=html.encode(), headers=HTML)


def moved(location: str) -> Reply:
    return Reply(307, headers={"Location": location})


def look(connection: Connection, path: str | None = None) -> tuple[Found, list[Call]]:
    calls: list[Call] = []

    async def record(call: Call) -> None:
        calls.append(call)

    async def ask() -> Found:
        async with client.connect(connection, Settings(), SYSTEM, record) as service:
            return await interface.find(service, path)

    return asyncio.run(ask()), calls


def looked(docs: dict[str, Reply], path: str | None = None) -> tuple[Found, Service]:
    """Look on a service with these docs; return what was found, and what was asked for."""
    with serving() as service:
        service.docs = docs
        own = replace(CONNECTION, base_url=service.url, auth_url=service.url)
        return look(own, path)[0], service


def test_the_sandbox_describes_its_lists() -> None:
    with sandboxed() as service:
        found, calls = look(replace(CONNECTION, base_url=service.url, auth_url=service.url))
    assert found.description is not None
    lists = found.description.lists
    assert lists["/v2/usage"].largest == 500
    assert lists["/v2/billing"].largest == 100
    assert (lists["/v2/plans"].surface, lists["/v2/invoices"].surface) == ("partner", "merchant")
    assert lists["/v2/customers/{customerId}/notes"].needs == ("{customerId}",)
    assert "/v2/whoami" not in lists
    assert found.words == "interface description: /docs/openapi.json"
    assert [(call.path, call.status, call.waited) for call in calls] == [
        ("/docs/", 200, 0.0),
        ("/docs/openapi.json", 200, 0.0),
    ]


# What a service serves, what is set, and what is asked for until the description is found.
FOUND: dict[str, tuple[dict[str, Reply], str | None, list[str]]] = {
    "at the usual place": ({"/docs/openapi.json": GOOD}, None, ["/docs/", "/docs/openapi.json"]),
    "where it is set": ({"/spec": GOOD}, "/spec", ["/spec"]),
    "by a link": (
        {"/docs/": page('<a href="v2.json">'), "/docs/v2.json": GOOD},
        None,
        ["/docs/", "/docs/v2.json"],
    ),
    "by an inline script": (
        {"/docs/": page('<script>ui({url: "/x/y"})</script>'), "/x/y": GOOD},
        None,
        ["/docs/", "/x/y"],
    ),
    "by Swagger UI's own script": (
        {
            "/docs/": page('<script src="swagger-initializer.js"></script>'),
            "/docs/swagger-initializer.js": page('ui({ url: "spec.json" })'),
            "/docs/spec.json": GOOD,
        },
        None,
        ["/docs/", "/docs/swagger-initializer.js", "/docs/spec.json"],
    ),
    "under /docs/ itself": ({"/docs/": GOOD}, None, ["/docs/", "/docs/"]),
    "behind a redirect": (
        {
            "/docs/": moved("/docs/ui"),
            "/docs/ui": page('<a href="v2.json">'),
            "/docs/v2.json": GOOD,
        },
        None,
        ["/docs/", "/docs/ui", "/docs/v2.json"],
    ),
    "after a link that leads nowhere": (
        {"/docs/": page('<a href="old.json">'), "/docs/openapi.json": GOOD},
        None,
        ["/docs/", "/docs/old.json", "/docs/openapi.json"],
    ),
}


@pytest.mark.parametrize(("docs", "path", "asked"), FOUND.values(), ids=list(FOUND))
def test_a_description_is_found(docs: dict[str, Reply], path: str | None, asked: list[str]) -> None:
    found, service = looked(docs, path)
    assert found.description is not None
    assert found.description.lists["/v2/plans"].largest == 500
    assert [each.target for each in service.looked] == asked


BOMB = Reply(body=gzip.compress(b" " * 9 * 1024 * 1024), headers={"Content-Encoding": "gzip"})
ABSENT: dict[str, tuple[dict[str, Reply], str | None, str]] = {
    "nowhere": ({}, None, "/docs/: 404"),
    "not where it is set": ({"/docs/openapi.json": GOOD}, "/spec", "(/spec: 404)"),
    "HTML only": ({"/docs/": page("<p>Ask us.")}, None, "openapi.json: 404"),
    "YAML": ({"/docs/openapi.json": Reply(body=b"openapi: 3.1.0")}, None, "no JSON"),
    "cut": ({"/docs/openapi.json": replace(GOOD, body=GOOD.body[:-9])}, None, "no JSON"),
    "broken off": ({"/docs/openapi.json": replace(GOOD, length=10**6)}, None, "broke off"),
    "too large": ({"/docs/openapi.json": BOMB}, None, "larger than 8 MiB"),
    "failing": ({"/docs/": Reply(500), "/docs/openapi.json": Reply(503)}, None, "503"),
    "elsewhere": (
        {"/docs/openapi.json": moved("https://elsewhere.invalid/")},
        None,
        "another host",
    ),
    "in circles": ({"/docs/openapi.json": moved("/docs/openapi.json")}, None, "307"),
}


@pytest.mark.parametrize(("docs", "path", "words"), ABSENT.values(), ids=list(ABSENT))
def test_no_description_is_said_and_is_no_failure(
    docs: dict[str, Reply], path: str | None, words: str
) -> None:
    found, service = looked(docs, path)
    assert found.description is None
    assert words in found.words
    assert found.words.endswith("the bounds of the document apply")
    assert 0 < len(service.looked) <= REQUESTS


def test_another_host_is_never_asked_and_a_page_of_links_not_followed_for_ever() -> None:
    many = "".join(f'<a href="{number}.json">' for number in range(50))
    elsewhere = (
        '<a href="https://elsewhere.invalid/openapi.json"><a href="//elsewhere.invalid/a.json">'
    )
    found, service = looked({"/docs/": page(elsewhere + many)})
    assert found.description is None
    assert [each.target for each in service.looked] == [
        "/docs/",
        "/docs/0.json",
        "/docs/1.json",
        "/docs/2.json",
        "/docs/openapi.json",
    ]
    assert "elsewhere" not in found.words


def test_a_service_that_is_not_there_is_told_once() -> None:
    found, _ = look(
        replace(CONNECTION, base_url="http://127.0.0.1:9", auth_url="http://127.0.0.1:9")
    )
    assert found.description is None
    assert "no connection to 127.0.0.1:9" in found.words


@pytest.mark.parametrize("surface", ["partner", "merchant"])
def test_nothing_is_signed(surface: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", "canary8d21")
    with serving() as service:
        service.docs = {"/docs/openapi.json": GOOD}
        own = replace(CONNECTION, base_url=service.url, auth_url=service.url)
        found, calls = look(replace(own, surface=surface))  # type: ignore[arg-type]
    assert found.description is not None
    sent = json.dumps([each.headers for each in service.looked]).lower()
    assert "canary8d21" not in sent
    assert not any(name in sent for name in ('"authorization"', '"x-api-key"', '"cookie"'))
    assert {call.path for call in calls} == {"/docs/", "/docs/openapi.json"}  # and no token

"""Before a run: who we are, and which lists may be read, asked without touching the rest."""

import asyncio

import pytest

from pipelines.api import client, preflight
from pipelines.api.preflight import Report
from pipelines.errors import AccessDenied, Forbidden, Unavailable
from pipelines.settings import Connection, Secret, Settings
from pipelines.state.runs import Call
from pipelines.streams import STREAMS
from tests.api.service import Reply, Service, page, problem, serving
from tests.virtual import Haste

WHOAMI = Reply(200, b'{"actor": "distributor"}')


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", "made for the test")


async def ignore(_call: Call) -> None:
    """Record nothing."""


def asked(service: Service) -> Report:
    url, hidden = service.url, Secret("PARTNER_SYNC_CLIENT_SECRET")
    connection = Connection("default", url, url, "api", "me", hidden)

    async def main() -> Report:
        async with client.connect(connection, Settings(), Haste().clock, ignore) as ours:
            return await preflight.ask(ours, connection, STREAMS)

    return asyncio.run(main())


def test_every_list_is_asked_for_one_record() -> None:
    with serving(WHOAMI, page([{}]), page([]), page([{}])) as service:
        report = asked(service)
    assert [each.target for each in service.asked] == [
        "/v2/whoami",
        "/v2/billing?limit=1&offset=0",
        "/v2/partners?limit=1&offset=0",
        "/v2/usage?limit=1&offset=0",
    ]
    assert report.passed
    assert [each.words for each in report.routes] == [
        "actor unknown",
        "may be read",
        "may be read; it is empty",
        "may be read",
    ]


def test_a_list_that_is_closed_to_us_does_not_hide_the_others() -> None:
    with serving(WHOAMI, problem(403, "scope missing"), page([]), page([])) as service:
        report = asked(service)
    assert not report.passed
    assert [type(each.error) for each in report.routes] == [
        type(None),
        Forbidden,
        type(None),
        type(None),
    ]
    assert report.routes[1].words == "403 on /v2/billing: scope missing"


@pytest.mark.parametrize(
    ("reply", "error"), [(problem(401, "no"), AccessDenied), (problem(503, "no"), Unavailable)]
)
def test_who_is_refused_altogether_asks_no_further(reply: Reply, error: type[Exception]) -> None:
    with serving(reply) as service:
        (route,) = asked(service).routes
    assert isinstance(route.error, error)
    assert {each.target for each in service.asked} == {"/v2/whoami"}

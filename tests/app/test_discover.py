"""What the interface description shows; its changes; the proposed lines switch a list on."""

import json
import re
from pathlib import Path

import httpx
import pytest

from pipelines.app.checkup import run_checks
from pipelines.app.discover import discover
from pipelines.app.nightly import sync
from pipelines.app.plan import check_connections
from pipelines.app.results import LoggedProgress, ReadRequest
from pipelines.config.connections import add_connection
from pipelines.config.home import Home
from pipelines.core.errors import ConfigurationError, ExitCode, ServiceError
from pipelines.metadata.runs import Outcome
from pipelines.metadata.tables import ApiSpec
from tests.end_to_end.proxy import changed_answers
from tests.forked import run_forked
from tests.homes import make_home, opened, records, rows, sync_once
from tests.sandbox.running import API_KEY, Running

DESCRIPTION = "/docs/openapi.json"
PAYMENT_METHODS = '[streams.payment_methods]\npath = "/v2/payment-methods"\nsurface = "merchant"'


@pytest.fixture
def home(sandbox: Running, tmp_path: Path) -> Home:
    return make_home(tmp_path / "home", sandbox, skip=["billing"])


def test_the_proposed_lines_switch_a_list_on(
    sandbox: Running, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_API_KEY", API_KEY)
    add_connection(home.connections_file, "shop", sandbox.merchant_connection)
    with opened(home) as session:
        shop = {row["path"]: row for row in discover(session, "shop", DESCRIPTION)}
        found = {row["path"]: row for row in discover(session, "acme", DESCRIPTION)}
    states = {path: row["state"] for path, row in found.items()}
    assert states["/v2/partners"] == "read as partners"
    assert states["/v2/billing"] == "skipped as billing"
    assert states["/v2/customers"] == "needs a merchant connection"
    assert states["/v2/customers/{customerId}/notes"].startswith("cannot be read")
    assert not states.keys() & {"/v2/whoami", "/v2/settings", DESCRIPTION}
    not_read = [path for path, state in states.items() if state == "not read"]
    assert not_read == ["/v2/organizations", "/v2/plans"]
    assert [path for path, row in found.items() if row["lines"]] == not_read
    assert shop["/v2/payment-methods"]["lines"] == PAYMENT_METHODS
    assert shop["/v2/plans"]["lines"] == ""
    home.settings_file.write_text(shop["/v2/payment-methods"]["lines"] + "\n")
    for key, checked in ((API_KEY, ["credentials", "payment_methods"]), ("x", ["payment_methods"])):
        monkeypatch.setenv("SANDBOX_API_KEY", key)
        with opened(home) as session:
            found_lists = check_connections(session, ["shop"])
        assert [each["checked"] for each in found_lists] == checked
        assert {each["passed"] for each in found_lists} == {key == API_KEY}
    home.settings_file.write_text(found["/v2/plans"]["lines"] + "\n")
    sync_once(home, "plans")
    assert rows(home, "SELECT count(*) FROM current.plans") == [(len(records(sandbox, "plans")),)]


LONG = "of-which-a-stream-of-that-name-has-no-table"
ODD = ["9lives", LONG, "main", "a-b", "a/b", "plans-", "\U0001d400", "ü", "a b", "c/", "{id}/d"]
LEAST = [{"name": "limit", "schema": {"maximum": -5}}]  # no stream may have it, nor the greatest


def test_the_lines_of_an_odd_description_are_accepted(sandbox: Running, tmp_path: Path) -> None:
    def change(request: httpx.Request, answer: httpx.Response) -> httpx.Response:
        if request.url.path != DESCRIPTION:
            return answer
        text = re.sub(r'("maximum": ?)100\b', r"\g<1>1000", answer.text)
        document = json.loads(text)
        known, odd = document["paths"]["/v2/plans"]["get"], [3, None, "x", ["y"], {"z": 3}]
        for name, each in zip(ODD, [LEAST, *odd, *odd], strict=True):
            operation = {**known, "parameters": each, "security": each}
            document["paths"][f"/v2/{name}"] = {"get": operation}
        return httpx.Response(200, json=document)

    with changed_answers(sandbox, change) as service:
        home = make_home(tmp_path / "home", service)
        home.settings_file.write_text('[streams.plans]\npath = "/v2/other-plans"\n')
        with opened(home) as session:
            found = {row["path"]: row for row in discover(session, "acme", DESCRIPTION)}
    lines = [row["lines"] for row in found.values() if row["lines"]]
    home.settings_file.write_text("\n".join([home.settings_file.read_text(), *lines]))
    with opened(home) as session:
        streams = session.settings.streams
    paths = {each.path: name for name, each in streams.items()}
    assert [streams[paths[f"/v2/{name}"]].limit for name in ("9lives", "plans")] == [1, 500]
    assert paths.keys() >= {f"/v2/{name}" for name in ODD[:8]} | {"/v2/plans"}
    assert (paths["/v2/a-b"], paths["/v2/9lives"]) == ("a_b", "list_b0650fcd")
    for name in ODD[8:]:
        assert found[f"/v2/{name}"]["state"].startswith("cannot be read: its path ")


def test_a_description_that_is_not_there_is_named(home: Home) -> None:
    with opened(home) as session:
        with pytest.raises(ServiceError, match=r"/docs/other\.json"):
            discover(session, "acme", "/docs/other.json")
        for path in ("http://127.0.0.1:1/docs/a", "//host/docs/a", "/docs/../v2/a", "/v2/usage"):
            with pytest.raises(ConfigurationError, match="below /docs/"):
                discover(session, "acme", path)


def changes(home: Home) -> list[str]:
    """Return the findings about the description after a sync that builds nothing."""
    with opened(home) as session:
        request = ReadRequest("acme", ("partners",))
        sync(session, [request], LoggedProgress(), no_build=True)
        found = {each.check.code: each.findings for each in run_checks(session)}
    return [each.message for each in found["description_changed"]]


@pytest.mark.long
def test_a_change_is_a_finding_until_a_person_has_seen_it(
    sandbox: Running, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    assert changes(home) == []
    with opened(home) as session:
        assert discover(session, "acme", DESCRIPTION)
        with session.metadata.transaction() as db:
            row = db.get_one(ApiSpec, "acme")
            assert row.parts.pop("GET /v2/usage")
            row.parts = {**row.parts, "GET /v2/old": "1", "GET /v2/billing": "2"}
    (text,) = changes(home)
    assert "New: GET /v2/usage. Gone: GET /v2/old. Changed: GET /v2/billing." in text
    said = "`acme` was not compared with the one that `discover` showed. The service answered"
    for noted in ([text], []):  # a description that cannot be read has not changed
        sandbox.fault("redirect", DESCRIPTION)
        assert changes(home) == noted
        assert f"{said} {DESCRIPTION} with status 307" in caplog.text
        caplog.clear()
        sandbox.reset()
        with opened(home) as session:
            discover(session, "acme", DESCRIPTION)
    assert changes(home) == []


@pytest.mark.long
@pytest.mark.parametrize("key", ["mk-ü111", "mk\n111"])
def test_a_comparison_that_fails_reaches_no_list(
    key: str, sandbox: Running, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_API_KEY", API_KEY)
    add_connection(home.connections_file, "shop", sandbox.merchant_connection)
    home.settings_file.write_text(PAYMENT_METHODS)
    with opened(home) as session:
        discover(session, "shop", DESCRIPTION)
        monkeypatch.setenv("SANDBOX_API_KEY", key)
        result = sync(
            session, [ReadRequest("acme", ("partners",)), ReadRequest("shop")], LoggedProgress()
        )
    (failed,) = (each for each in result.streams if each.connection == "shop")
    assert (failed.state, failed.remedy) == (Outcome.FAILED, "Copy the key again.")
    assert "contains characters that are invalid in an HTTP header" in failed.message
    assert rows(home, "SELECT DISTINCT connection FROM meta.loads") == [("acme",)]


@pytest.mark.long
def test_a_full_disk_is_a_message_without_a_traceback(home: Home) -> None:
    with opened(home) as session:
        discover(session, "acme", DESCRIPTION)
    environment = {"PARTNER_SYNC_HOME": str(home.root)}
    code, text = run_forked(["sync"], environment, largest_file=100 * 512)
    assert code == ExitCode.NOTHING_PUBLISHED
    assert "Traceback" not in text
    error, remedy = text.splitlines()[-2:]
    assert error.startswith("Error: The metadata database ")
    assert remedy.startswith("Make room, correct the permissions")

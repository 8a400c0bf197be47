"""What the interface description shows, and that the proposed lines switch a list on."""

from pathlib import Path

import pytest

from pipelines.app.discover import discover
from pipelines.core.errors import ConfigurationError, ServiceError
from tests.homes import make_home, opened, records, rows, sync_once
from tests.sandbox.running import Running

DESCRIPTION = "/docs/openapi.json"


def test_the_proposed_lines_switch_a_list_on(sandbox: Running, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home", sandbox, skip=["billing"])
    with opened(home) as session:
        found = {row["path"]: row for row in discover(session, "acme", DESCRIPTION)}
    states = {path: row["state"] for path, row in found.items()}
    assert states["/v2/partners"] == "read as partners"
    assert states["/v2/billing"] == "skipped as billing"
    assert states["/v2/customers"] == "needs a merchant connection"
    assert states["/v2/customers/{customerId}/notes"].startswith("cannot be read")
    assert not states.keys() & {"/v2/whoami", "/v2/settings", DESCRIPTION}
    assert found["/v2/payment-methods"]["lines"] == (
        '[streams.payment_methods]\npath = "/v2/payment-methods"\nsurface = "merchant"'
    )
    not_read = [path for path, state in states.items() if state == "not read"]
    assert not_read == ["/v2/organizations", "/v2/plans"]
    home.settings_file.write_text(found["/v2/plans"]["lines"] + "\n")
    sync_once(home, "plans")
    assert rows(home, "SELECT count(*) FROM current.plans") == [(len(records(sandbox, "plans")),)]


def test_a_description_that_is_not_there_is_named(sandbox: Running, tmp_path: Path) -> None:
    with opened(make_home(tmp_path / "home", sandbox)) as session:
        with pytest.raises(ServiceError, match=r"/docs/other\.json"):
            discover(session, "acme", "/docs/other.json")
        for path in ("http://127.0.0.1:1/docs/a", "//host/docs/a", "/docs/../v2/a", "/v2/usage"):
            with pytest.raises(ConfigurationError, match="below /docs/"):
                discover(session, "acme", path)

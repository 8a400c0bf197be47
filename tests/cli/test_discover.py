"""The verb `discover`: what the interface has, what of it is read, and lines that settings take."""

import json
import re
from pathlib import Path

from pipelines import streams
from pipelines.settings import load
from tests.api.service import serving
from tests.cli.program import ran
from tests.sandbox.running import sandboxed

SET = {"plans": {"path": "/v2/plans"}, "invoices": {"path": "/v2/invoices"}}


def test_every_list_is_shown_and_the_lines_switch_the_others_on(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with sandboxed("--rate=1000") as service:
        environment = service.environment | {
            "PARTNER_SYNC_HOME": str(home),
            "PARTNER_SYNC_STREAMS": json.dumps(SET),
            "PARTNER_SYNC_CLIENT_SECRET": "",
            "COLUMNS": "250",
        }
        done = ran(environment, "discover")

    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if "/v2/" in line[:6]}
    assert len(lines) == 16
    assert re.search(r"partner +500 .*as usage$", lines["/v2/usage"].rstrip())
    assert lines["/v2/plans"].rstrip().endswith("as plans (settings)")
    assert "merchant surface: set that" in lines["/v2/invoices"]
    assert lines["/v2/gateways"].rstrip().endswith("available")
    assert "needs {customerId}" in lines["/v2/customers/{customerId}/notes"]
    offered = done.stdout.partition("what you need of:")[2]
    (home / "config" / "settings.toml").write_text(offered)
    every = {stream.path: stream.surface for stream in streams.known(load(home))}
    assert every["/v2/payment-methods"] == "merchant"
    assert every["/v2/organizations"] == "partner"
    assert len(every) == 3 + 9


def test_without_a_description_it_says_so(tmp_path: Path) -> None:
    with serving() as service:
        environment = {
            "PARTNER_SYNC_HOME": str(tmp_path / "home"),
            "PARTNER_SYNC_BASE_URL": service.url,
            "PARTNER_SYNC_AUTH_URL": service.url,
            "PARTNER_SYNC_AUDIENCE": "a",
            "PARTNER_SYNC_CLIENT_ID": "c",
        }
        done = ran(environment, "discover")
    assert done.returncode == 1
    assert "the bounds of the document apply" in " ".join(done.stdout.split())
    assert "as usage" in done.stdout
    assert ran({}, "discover").returncode == 2

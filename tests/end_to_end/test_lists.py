"""Every list is a stream: those that settings switch on are read, landed and published too."""

import json
from pathlib import Path

import duckdb
import pytest

from pipelines import run
from pipelines.cli.sandbox import Service
from pipelines.errors import ConfigurationError
from pipelines.run import Choice
from tests.end_to_end.conftest import Point
from tests.sandbox.running import sandboxed

KEY, SECRET = "merchant-key-0001", "partner-secret"
CLIENTS = f"""
[[clients]]
id = "us"
secret = "{SECRET}"
actor = "distributor"

[[keys]]
id = "shop"
key = "{KEY}"
login = "shop"
organization = 1
"""
CONNECTIONS = """
[us]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "us"
secret = "US_SECRET"

[shop]
surface = "merchant"
base_url = "{url}"
secret = "SHOP_KEY"
"""
STREAMS = {
    "plans": {"path": "/v2/plans"},
    "organizations": {"path": "/v2/organizations"},
    "gateways": {"path": "/v2/gateways", "surface": "merchant"},
    "invoices": {"path": "/v2/invoices", "surface": "merchant"},
}
KEYS = {"plans": "plan_id", "organizations": "organization_id", "gateways": "gateway_id"}
KEYS["invoices"] = "invoice_id"  # whose envelope has a total besides


def test_both_surfaces_lists_are_read_and_published_side_by_side(
    point: Point, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = tmp_path / "clients.toml"
    clients.write_text(CLIENTS)
    clients.chmod(0o600)
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    values = {"PARTNER_SYNC_STREAMS": json.dumps(STREAMS), "SHOP_KEY": KEY, "US_SECRET": SECRET}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    sizes = ("--partners=20", "--usage=30", "--billing=10")
    with sandboxed("--rate=1000", f"--clients={clients}", *sizes) as service:
        audience = service.environment["PARTNER_SYNC_AUDIENCE"]
        text = CONNECTIONS.format(url=service.url, audience=audience)
        (config / "connections.toml").write_text(text)
        settings = point(service)
        with run.open(settings) as session:
            orders = run.orders(session)
            outcome = run.sync(session, orders)

    assert [str(each.error) for each in outcome.streams if each.error] == []
    assert outcome.exit_code == 0
    read = {order.connection.name: {each.name for each in order.streams} for order in orders}
    assert read["shop"] == {"gateways", "invoices"}
    assert read["us"] == {"billing", "organizations", "partners", "plans", "usage"}
    with duckdb.connect(settings.place.link, read_only=True) as reader:
        for stream, column in KEYS.items():
            found = reader.execute(
                f"SELECT DISTINCT _connection, count(*) > 0, count(DISTINCT {column}) = count(*) "
                f"FROM current.{stream} GROUP BY ALL"
            ).fetchall()
            assert found == [("shop" if stream in read["shop"] else "us", True, True)]
        different = reader.execute("SELECT * FROM meta.interface_differences").fetchall()
    assert different == []


def test_a_list_of_the_other_surface_is_not_for_this_connection(
    point: Point, unlimited: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_STREAMS", json.dumps(STREAMS))
    with run.open(point(unlimited)) as session:
        assert {each.name for order in run.orders(session) for each in order.streams} == {
            "billing",
            "organizations",
            "partners",
            "plans",
            "usage",
        }
        with pytest.raises(ConfigurationError):
            run.orders(session, Choice(streams=("invoices",)))

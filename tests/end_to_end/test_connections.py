"""Several connections of one home: tables that hold them all, identities that do not mix.

Real parts: the sandbox with clients and keys of its own, connections.toml, environment variables.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest

from pipelines import run, settings
from pipelines.errors import AccessDenied, ConfigurationError, IdentityChanged
from pipelines.run import Choice, Outcome
from pipelines.state import identities
from tests.sandbox.merchants import KEYS, SECRETS
from tests.sandbox.running import AUDIENCE, CLIENTS, Running, clients_file, started

SIZES = ("--partners=20", "--usage=300", "--billing=30")
INVOICES = '[streams.invoices]\npath = "/v2/invoices"\nsurface = "merchant"\n'
TWIN = """
[[clients]]
id = "twin"
secret = "s-twin"
actor = "distributor"
"""
PARTNER = """
[{name}]
base_url = "{url}"
auth_url = "{url}"
audience = "{audience}"
client_id = "{client}"
secret = "{variable}"
"""
MERCHANT = """
[{name}]
surface = "merchant"
base_url = "{url}"
secret = "{variable}"
"""
Write = Callable[..., None]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve both surfaces, with several clients and keys."""
    clients = clients_file(tmp_path_factory.mktemp("clients"), CLIENTS + TWIN + KEYS)
    with started("--rate=1000", "--clients", str(clients), *SIZES) as running:
        yield running


@pytest.fixture
def write(service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return what writes connections.toml out of (name, client); a client `key …` is an API key."""
    for name in [name for name in os.environ if name.startswith("PARTNER_SYNC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text(INVOICES)

    def tables(*connections: tuple[str, str], more: str = "") -> None:
        text = ""
        for name, client in connections:
            table = MERCHANT if client.startswith("key ") else PARTNER
            secret = SECRETS.get(client.removeprefix("key "), f"s-{client}")
            variable = f"{name.upper()}_SECRET"
            monkeypatch.setenv(variable, secret)
            own = {"name": name, "variable": variable, "client": client}
            text += table.format(url=service.url, audience=AUDIENCE, **own)
        (config / "connections.toml").write_text(text + more)

    return tables


def synced(*connections: str) -> Outcome:
    with run.open(settings.load()) as session:
        return run.sync(session, run.orders(session, Choice(connections)))


def rows(tmp_path: Path, table: str) -> dict[str, int]:
    """Return how many rows of a table are whose."""
    with duckdb.connect(tmp_path / "home" / "warehouse.duckdb", read_only=True) as reader:
        query = f"SELECT _connection, count(*) FROM current.{table} GROUP BY ALL"
        return dict(reader.execute(query).fetchall())


def words(outcome: Outcome) -> set[str]:
    return {str(each.error) for each in outcome.streams}


def pages(tmp_path: Path) -> int:
    return len(list((tmp_path / "home" / "archive" / "pages").rglob("*.zst")))


def test_the_tables_hold_both_whether_synced_apart_or_together(
    write: Write, tmp_path: Path
) -> None:
    write(("acme", "whole"), ("beta", "twin"))
    assert synced("acme").exit_code == 0
    assert rows(tmp_path, "usage") == {"acme": 300}
    assert synced("beta").exit_code == 0
    assert rows(tmp_path, "usage") == {"acme": 300, "beta": 300}
    assert synced().exit_code == 0
    assert rows(tmp_path, "partners") == {"acme": 20, "beta": 20}


def test_a_merchants_key_reads_what_is_of_its_surface(
    write: Write, tmp_path: Path, service: Running
) -> None:
    write(("acme", "whole"), ("shop", "key admin"), ("mall", "key other"))
    outcome = synced()
    assert outcome.exit_code == 0
    assert {(each.connection, each.stream) for each in outcome.streams} == {
        *(("acme", name) for name in ("billing", "partners", "usage")),
        ("shop", "invoices"),
        ("mall", "invoices"),
    }
    with service.client(key=SECRETS["admin"]) as http:
        total = http.get("/v2/invoices").json()["total"]
    assert rows(tmp_path, "invoices")["shop"] == total
    assert set(rows(tmp_path, "usage")) == {"acme"}


def test_a_connection_that_became_somebody_else_lands_nothing_until_a_person_accepts(
    write: Write, tmp_path: Path
) -> None:
    write(("acme", "whole"), ("beta", "twin"))
    assert synced().exit_code == 0
    before = pages(tmp_path)

    write(("acme", "narrow"), ("beta", "twin"))
    outcome = synced("acme")

    assert outcome.exit_code == 1
    (said,) = words(outcome)
    assert said.startswith("connection acme has landed for 127.0.0.1: actor distributor, ")
    assert "subject whole (since 20" in said
    assert "subject narrow now. Nothing was read" in said
    assert said.endswith("partner-sync connections accept acme")
    assert {type(each.error) for each in outcome.streams} == {IdentityChanged}
    assert pages(tmp_path) == before
    assert synced("beta").exit_code == 0

    with run.open(settings.load()) as session:
        run.accept(session, session.settings.connection("acme"), "anna")
        pinned = identities.pinned(session.ledger, "acme")
    assert pinned is not None
    assert pinned.by == "anna"
    assert {type(each.error) for each in synced("acme").streams} != {IdentityChanged}


def test_paths_in_the_settings_let_a_client_be_rotated(write: Write) -> None:
    paths = 'whoami = ["actor", "audience"]\n'
    write(("acme", "whole"), more=paths)
    assert synced().exit_code == 0
    write(("acme", "narrow"), more=paths)
    assert not any(isinstance(each.error, IdentityChanged) for each in synced().streams)
    write(("acme", "reseller"), more=paths)
    assert {type(each.error) for each in synced().streams} == {IdentityChanged}


def test_what_was_refused_before_anything_landed_pins_nothing(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(("acme", "whole"))
    monkeypatch.setenv("ACME_SECRET", "wrong")
    refused = synced()
    assert {type(each.error) for each in refused.streams} == {AccessDenied}
    assert all(each.startswith("no token: 401") for each in words(refused))
    with run.open(settings.load()) as session:
        assert identities.pinned(session.ledger, "acme") is None
    write(("acme", "whole"))
    assert synced().exit_code == 0


def test_a_key_may_be_rotated_and_a_refused_one_is_told_once(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(("shop", "key admin"))
    assert synced().exit_code == 0
    monkeypatch.setenv("SHOP_SECRET", SECRETS["second"])
    assert synced().exit_code == 0
    before = pages(tmp_path)
    monkeypatch.setenv("SHOP_SECRET", "no-such-key")
    (said,) = words(synced())
    assert said.startswith("API key rejected: check that it is whole and was not revoked (401 on ")
    assert pages(tmp_path) == before


def test_a_list_that_is_closed_to_a_key_is_told_in_the_services_words(write: Write) -> None:
    write(("shop", "key nothing"))
    (said,) = words(synced())
    assert said.startswith("403 on /v2/invoices: ")


def test_a_secret_that_is_not_there_stops_its_own_connection_only(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write(("acme", "whole"), ("beta", "twin"))
    monkeypatch.delenv("BETA_SECRET")
    outcome = synced()
    assert outcome.exit_code == 3
    failed = {each.connection: type(each.error) for each in outcome.streams if each.error}
    assert failed == {"beta": ConfigurationError}
    assert rows(tmp_path, "usage") == {"acme": 300}

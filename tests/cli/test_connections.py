"""`partner-sync connections` and `check` over several connections, as a user types them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from pipelines.cli.app import app
from pipelines.errors import ConfigurationError
from tests.sandbox.merchants import KEYS, SECRETS
from tests.sandbox.running import AUDIENCE, CLIENTS, Running, clients_file, started

CANARY = "canary-0c3e"
Say = Callable[..., Result]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve both surfaces, with several clients and keys."""
    clients = clients_file(tmp_path_factory.mktemp("clients"), CLIENTS + KEYS)
    sizes = ("--partners=5", "--usage=50", "--billing=5")
    with started("--rate=1000", "--clients", str(clients), *sizes) as running:
        yield running


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Return what runs the program on a home of its own; `answers` are typed."""
    for name in [name for name in os.environ if name.startswith("PARTNER_SYNC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PARTNER_SYNC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "250")
    (tmp_path / "home" / "config").mkdir(parents=True)
    invoices = '[streams.invoices]\npath = "/v2/invoices"\nsurface = "merchant"\n'
    (tmp_path / "home" / "config" / "settings.toml").write_text(invoices)

    def run(*arguments: str, answers: str | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=answers)

    return run


def whole(url: str) -> tuple[str, ...]:
    """Return the options of a partner connection."""
    addresses = ("--base-url", url, "--auth-url", url)
    return (*addresses, "--audience", AUDIENCE, "--client-id", "whole", "--secret", "ACME_SECRET")


def test_two_connections_are_added_tested_listed_and_accepted(
    say: Say, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_SECRET", "s-whole")
    assert say("connections", "add", "acme", *whole(service.url)).exit_code == 0
    asked = say(
        "connections", "add", "shop", "--surface=merchant", answers=f"{service.url}\nSHOP_KEY\n"
    )
    assert "never the secret itself" in asked.stdout
    assert "connection shop is in connections.toml" in asked.stdout

    tested = say("connections", "test")
    assert tested.exit_code == 1
    assert "SHOP_KEY is not set" in tested.stdout
    assert (
        "127.0.0.1: actor distributor, audience partner-sync-sandbox, subject whole"
        in tested.stdout
    )
    monkeypatch.setenv("SHOP_KEY", SECRETS["admin"])
    assert say("connections", "test", "shop").exit_code == 0

    assert "nothing landed yet" in say("connections", "list").stdout
    assert say("sync").exit_code == 0
    assert say("connections", "accept", "acme", "--by", "anna").exit_code == 0
    monkeypatch.delenv("SHOP_KEY")
    (acme,) = [line for line in say("connections").stdout.splitlines() if "acme" in line]
    (shop,) = [line for line in say("connections").stdout.splitlines() if "shop" in line]
    assert acme.split()[:4] == ["acme", "partner", "127.0.0.1", "there"]
    assert shop.split()[:4] == ["shop", "merchant", "127.0.0.1", "missing"]
    assert acme.rstrip().endswith("published")


def test_check_tries_every_connection_and_the_clock(
    say: Say, service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_SECRET", "s-whole")
    monkeypatch.setenv("SHOP_KEY", SECRETS["admin"])
    say("connections", "add", "acme", *whole(service.url))
    shop = ("--surface=merchant", "--base-url", service.url, "--secret", "SHOP_KEY")
    say("connections", "add", "shop", *shop)

    checked = say("check")

    assert checked.exit_code == 0
    assert checked.stdout.count("may be read") >= 4
    assert "what connection shop may read" in checked.stdout
    assert checked.stdout.count("clocks agree well enough: the service is ") == 2
    alone = say("check", "--connection", "shop").stdout
    assert "/v2/invoices" in alone
    assert "/v2/usage" not in alone


def test_the_environments_connection_is_written_down_first(
    say: Say, service: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("BASE_URL", "AUTH_URL"):
        monkeypatch.setenv(f"PARTNER_SYNC_{name}", service.url)
    monkeypatch.setenv("PARTNER_SYNC_AUDIENCE", AUDIENCE)
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_ID", "whole")
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_SECRET", CANARY)
    said = say("connections", "add", "acme", *whole(service.url)).stdout
    assert "connection default is in connections.toml" in said
    text = (tmp_path / "home" / "config" / "connections.toml").read_text()
    assert 'secret = "PARTNER_SYNC_CLIENT_SECRET"' in text
    assert CANARY not in text
    names = [
        line.split()[0]
        for line in say("connections", "list").stdout.splitlines()[3:]
        if line.strip()
    ]
    assert names == ["default", "acme"]


REFUSED = [
    (("add", "Acme!"), "a connection's name is of small letters"),
    (("add", "acme", "--secret", CANARY), "must be the name of the environment variable"),
    (("test", "beta"), "no connection 'beta'; there are acme"),
    (("accept", "beta"), "no connection 'beta'; there are acme"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_will_not_do_is_refused_in_words(
    say: Say, service: Running, arguments: tuple[str, ...], words: str
) -> None:
    say("connections", "add", "acme", *whole(service.url))
    options = () if arguments[0] != "add" else whole(service.url)[:8]
    more = ("--secret", "ACME_SECRET") if arguments == ("add", "Acme!") else ()
    result = say("connections", *arguments, *options, *more)
    assert isinstance(result.exception, ConfigurationError)
    assert words in str(result.exception)
    assert CANARY not in str(result.exception) + result.output

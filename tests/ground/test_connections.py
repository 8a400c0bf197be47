"""config/connections.toml: what it may say, what is refused, and in what words."""

import os
from pathlib import Path

import pytest

from pipelines import settings
from pipelines.errors import ConfigurationError
from pipelines.settings import connections

PREFIX = "PARTNER_SYNC_"
CANARY = "canary8d21"
PARTNER = """
[acme]
base_url = "https://api.example.com/"
auth_url = "https://id.example.com"
audience = "the-api"
client_id = "us"
secret = "ACME_SECRET"
"""
MERCHANT = """
[shop-2]
surface = "merchant"
base_url = "https://api.example.com"
secret_file = "~/shop.key"
allowance = 2
budget_key = "shared"
ca_file = "~/ca.pem"
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and no setting of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "config").mkdir(parents=True)
    return tmp_path / "home"


def write(home: Path, text: str) -> Path:
    file = home / "config" / "connections.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_connections_of_both_surfaces(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, PARTNER + MERCHANT)
    monkeypatch.setenv("ACME_SECRET", CANARY)
    every = settings.load().connections()
    acme, shop = every["acme"], every["shop-2"]
    assert list(every) == ["acme", "shop-2"]
    assert (acme.name, acme.surface, acme.base_url) == (
        "acme",
        "partner",
        "https://api.example.com",
    )
    assert (acme.auth_url, acme.audience, acme.client_id) == (
        "https://id.example.com",
        "the-api",
        "us",
    )
    assert acme.secret.read() == CANARY
    assert (acme.budget_key, acme.allowance, acme.ca_file, acme.whoami) == (None, None, None, ())
    assert (shop.surface, shop.auth_url, shop.audience, shop.client_id) == ("merchant", "", "", "")
    assert shop.secret.file == tmp_path / "user" / "shop.key"
    assert (shop.budget_key, shop.allowance) == ("shared", 2)
    assert shop.ca_file == tmp_path / "user" / "ca.pem"
    assert CANARY not in repr(every)


def test_what_a_table_leaves_out_is_the_setting_of_that_name(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, PARTNER + MERCHANT)
    for name, value in (("ALLOWANCE", "4"), ("BUDGET_KEY", "all"), ("CA_FILE", "~/all.pem")):
        monkeypatch.setenv(PREFIX + name, value)
    every = settings.load().connections()
    acme, shop = every["acme"], every["shop-2"]
    everyones = tmp_path / "user" / "all.pem"
    assert (acme.allowance, acme.budget_key, acme.ca_file) == (4, "all", everyones)
    assert (shop.allowance, shop.budget_key) == (2, "shared")
    assert shop.ca_file == tmp_path / "user" / "ca.pem"


def test_the_file_replaces_the_connection_of_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BASE_URL", "AUTH_URL", "AUDIENCE", "CLIENT_ID"):
        monkeypatch.setenv(PREFIX + name, "https://api.example.com")
    assert list(settings.load().connections()) == ["default"]
    write(home, PARTNER)
    assert list(settings.load().connections()) == ["acme"]


def test_a_connection_that_is_not_there(home: Path) -> None:
    write(home, PARTNER + MERCHANT)
    with pytest.raises(ConfigurationError, match=r"^no connection 'acm'; there are acme, shop-2$"):
        settings.load().connection("acm")
    assert settings.load().connection("acme").name == "acme"


NEEDED = "must be given"
NAMED = "must be the name of the environment variable that holds the secret"
OF_PARTNERS = "is of the partner surface; a merchant connection has an API key only"
FULL = "must be a full path: this file is read from any folder"
FIELDS = [
    (PARTNER.replace('audience = "the-api"', ""), "acme, audience", NEEDED),
    (PARTNER.replace('base_url = "https://api.example.com/"', ""), "acme, base_url", NEEDED),
    (PARTNER.replace('secret = "ACME_SECRET"', ""), "acme, secret", NEEDED),
    (PARTNER.replace("ACME_SECRET", CANARY), "acme, secret", NAMED),
    (PARTNER.replace("ACME_SECRET", CANARY.upper()), "acme, secret", NAMED),
    (PARTNER.replace("ACME_SECRET", "PARTNER_SYNC_ACME"), "acme, secret", "must not begin with"),
    (PARTNER.replace("https://api", f"http://{CANARY}"), "acme, base_url", "must be https"),
    (
        PARTNER.replace("https://id", f"https://u:{CANARY}@id"),
        "acme, auth_url",
        "no user, password",
    ),
    (PARTNER.replace('"us"', '" "'), "acme, client_id", "must be a text that can be printed"),
    (PARTNER.replace('"us"', '"\\u001b"'), "acme, client_id", "must be a text that can be printed"),
    (PARTNER.replace('"us"', "7"), "acme, client_id", "valid string"),
    (f'{PARTNER}client_secret = "{CANARY}"', "acme, client_secret", "Secrets are never written"),
    (f'{PARTNER}key = "{CANARY}"', "acme, key", "Secrets are never written"),
    (f'{PARTNER}surface = "{CANARY}"', "acme, surface", "'partner' or 'merchant'"),
    (f"{PARTNER}allowance = 0", "acme, allowance", "greater than or equal to 1"),
    (f"{PARTNER}allowance = true", "acme, allowance", "valid integer"),
    (f'{PARTNER}budget_key = ""', "acme, budget_key", "must be a text that can be printed"),
    (f'{PARTNER}secret_file = "{CANARY}"', "acme, secret_file", FULL),
    (f'{PARTNER}ca_file = "{CANARY}"', "acme, ca_file", FULL),
    (f'{PARTNER}ca_file = "~{CANARY}/x"', "acme, ca_file", "folder of that user is not known"),
    (f"{PARTNER}whoami = []", "acme, whoami", "at least 1 item"),
    (f'{PARTNER}whoami = ["a..{CANARY}"]', "acme, whoami", "should match pattern"),
    (f'{MERCHANT}audience = "{CANARY}"', "shop-2, audience", OF_PARTNERS),
    (f'{MERCHANT}whoami = ["{CANARY}"]', "shop-2, whoami", OF_PARTNERS),
]


@pytest.mark.parametrize(("text", "where", "words"), FIELDS)
def test_a_wrong_field_is_named_and_never_shown(
    home: Path, text: str, where: str, words: str
) -> None:
    file = write(home, text)
    with pytest.raises(ConfigurationError) as caught:
        settings.load().connections()
    said = str(caught.value)
    assert said.startswith(f"{file}: connection {where}: ")
    assert words in said
    assert CANARY not in said.lower()
    assert "\n" not in said


def test_all_that_is_wrong_with_a_connection_is_named_at_once(home: Path) -> None:
    write(home, "[acme]\nsurface = 'x'\nallowance = 0\n")
    with pytest.raises(ConfigurationError, match=r"acme, surface: .*base_url: .*allowance: "):
        settings.load().connections()


NAMES = "a connection's name is of small letters, digits, - and _"
FILES = [
    (b"", "names no connection"),
    (b"[acme", "Expected ']'"),
    (b"\xff\xfe", "'utf-8' codec can't decode"),
    (f'secret = "{CANARY}"'.encode(), "secret must be a table: [secret]"),
    (b"[[acme]]\n", "acme must be a table: [acme]"),
    (b"[Acme]\n", NAMES),
    (b"['a|b']\n", NAMES),
    (b"['a/b']\n", NAMES),
    (b"['..']\n", NAMES),
    (b"['-a']\n", NAMES),
    (b"['']\n", NAMES),
    (b"[" + b"a" * 64 + b"]\n", NAMES),
]


@pytest.mark.parametrize(("content", "words"), FILES)
def test_a_wrong_file_is_told_in_words(home: Path, content: bytes, words: str) -> None:
    file = home / "config" / "connections.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        settings.load().connections()
    assert str(caught.value).startswith(str(file))
    assert words in str(caught.value)
    assert CANARY not in str(caught.value)


def test_an_appended_table_leaves_the_rest_as_it_is(home: Path) -> None:
    file = write(home, "# ours\n" + PARTNER.rstrip())
    fields = {"surface": "merchant", "base_url": "https://bücher.example", "secret": "SHOP_KEY"}
    connections.append(file, "shop", fields)
    assert file.read_text().startswith("# ours\n" + PARTNER.rstrip() + "\n\n[shop]\n")
    shop = settings.load().connections()["shop"]
    assert (shop.surface, shop.base_url) == ("merchant", "https://bücher.example")
    assert shop.secret.variable == "SHOP_KEY"


def test_the_first_table_makes_the_file(home: Path) -> None:
    file = home / "config" / "connections.toml"
    fields = {"surface": "merchant", "base_url": "https://api.example.com", "secret": "SHOP_KEY"}
    connections.append(file, "shop", fields)
    assert list(settings.load().connections()) == ["shop"]


@pytest.mark.parametrize(
    ("name", "secret", "words"),
    [
        ("acme", "ACME_SECRET", "there is a connection acme already"),
        ("Shop", "ACME_SECRET", NAMES),
        ("shop", CANARY, NAMED),
    ],
)
def test_a_table_that_will_not_do_is_not_written(
    home: Path, name: str, secret: str, words: str
) -> None:
    file = write(home, PARTNER)
    fields = {"surface": "merchant", "base_url": "https://api.example.com", "secret": secret}
    with pytest.raises(ConfigurationError) as caught:
        connections.append(file, name, fields)
    assert words in str(caught.value)
    assert CANARY not in str(caught.value)
    assert file.read_text() == PARTNER

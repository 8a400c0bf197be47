from pathlib import Path

import pytest

from pipelines.cli.setup import commented_settings
from pipelines.config.connections import add_connection, read_connections
from pipelines.config.home import Home
from pipelines.config.settings import load_settings
from pipelines.core.errors import ConfigurationError

PARTNER = {
    "base_url": "https://api.example.com/",
    "auth_url": "https://login.example.com",
    "audience": "api",
    "client_id": "acme",
    "secret": "ACME_SECRET",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


def write_settings(home: Home, text: str) -> None:
    home.settings_file.write_text(text, encoding="utf-8")


def test_the_environment_wins_over_the_file_over_defaults(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(home, 'keep_versions = 5\nschedule = "0 3 * * *"\n')
    monkeypatch.setenv("PARTNER_SYNC_KEEP_VERSIONS", "7")
    settings = load_settings(home)
    assert (settings.keep_versions, settings.schedule) == (7, "0 3 * * *")
    assert settings.sync_max_minutes == 120


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("keep_versoins = 5", "keep_versoins"),
        ("keep_versions = 0", "keep_versions"),
        ('time_zone = "Mars/Base"', "time_zone"),
        ('[streams.invoices]\nsurface = "merchant"', "invoices"),
        ('[streams.Usage]\npath = "/v2/x"', "Usage"),
        ('[streams.meta]\npath = "/v2/x"', "meta"),
        ('[streams.usage]\npath = "/v1/usage"', "streams.usage.path"),
        ("not toml", "settings.toml"),
    ],
)
def test_wrong_settings_are_named(home: Home, text: str, named: str) -> None:
    write_settings(home, text)
    with pytest.raises(ConfigurationError, match=named):
        load_settings(home)


def test_unknown_variables_are_rejected(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTNER_SYNC_SCHEDUL", "0 2 * * *")
    with pytest.raises(ConfigurationError, match="PARTNER_SYNC_SCHEDUL"):
        load_settings(home)


def test_streams_can_be_changed_and_added(home: Home) -> None:
    write_settings(
        home,
        '[streams.usage]\nkey = "usageId"\n'
        '[streams.invoices]\npath = "/v2/invoices"\nsurface = "merchant"\n',
    )
    streams = load_settings(home).all_streams()
    assert (streams["usage"].key, streams["usage"].limit) == ("usageId", 500)
    assert (streams["invoices"].surface, streams["invoices"].limit) == ("merchant", 100)


def test_the_written_settings_are_valid_with_every_default(home: Home) -> None:
    text = commented_settings()
    write_settings(home, text)
    defaults = load_settings(home)
    switched_on = [
        line.removeprefix("# ")
        for line in text.splitlines()
        if " = " in line and "metadata_url" not in line and "key" not in line
    ]
    write_settings(home, "\n".join(switched_on))
    assert load_settings(home) == defaults


def test_connections_are_appended_and_read(home: Home) -> None:
    file = home.connections_file
    file.write_text("# a comment that stays\n")
    add_connection(file, "acme", PARTNER)
    merchant = {"surface": "merchant", "base_url": "http://127.0.0.1:8010", "secret": "SHOP_KEY"}
    add_connection(file, "shop", merchant | {"skip": ["gateways"]})
    found = read_connections(file)
    assert list(found) == ["acme", "shop"]
    assert found["acme"].base_url == "https://api.example.com"
    assert found["shop"].skip == ("gateways",)
    assert file.read_text().startswith("# a comment that stays\n")


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"base_url": "http://api.example.com"}, "base_url: must be https"),
        ({"base_url": "https://user:pw@api.example.com"}, "no user, password"),
        ({"secret": "hunter2"}, "must be the name of the environment variable"),
        ({"secret": "PARTNER_SYNC_SECRET"}, "these are settings"),
        ({"client_secret": "x"}, "client_secret: no such field"),
        ({"client_id": None}, "client_id: must be given"),
        ({"surface": "merchant"}, "API key only"),
        ({"max_requests_per_window": 0}, "max_requests_per_window"),
    ],
)
def test_wrong_connections_are_named_and_nothing_is_written(
    home: Home, changed: dict[str, object], named: str
) -> None:
    fields = {k: v for k, v in (PARTNER | changed).items() if v is not None}
    with pytest.raises(ConfigurationError, match=named) as caught:
        add_connection(home.connections_file, "acme", fields)
    assert "hunter2" not in str(caught.value)
    assert not home.connections_file.exists()


def test_a_connection_is_added_once(home: Home) -> None:
    add_connection(home.connections_file, "acme", PARTNER)
    with pytest.raises(ConfigurationError, match="already"):
        add_connection(home.connections_file, "acme", PARTNER)


def test_secrets_come_from_the_variable_or_a_private_file(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "secret"
    file.write_text("from-file\n")
    file.chmod(0o644)
    fields = PARTNER | {"secret_file": str(file)}
    connection = add_connection(home.connections_file, "acme", fields)
    with pytest.raises(ConfigurationError, match="Other users can read"):
        connection.read_secret()
    file.chmod(0o600)
    assert connection.read_secret() == "from-file"
    monkeypatch.setenv("ACME_SECRET", "from-variable")
    assert connection.read_secret() == "from-variable"
    assert "from-file" not in repr(connection)
    assert "from-variable" not in repr(connection)


def test_a_home_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        Home(tmp_path / "none").require()
    assert "partner-sync init" in caught.value.remedy


def test_folders_of_credentials_and_evidence_are_private(home: Home) -> None:
    modes = {
        folder.name: folder.stat().st_mode & 0o777
        for folder in (home.archive, home.locks, home.settings_file.parent, home.versions)
    }
    assert modes == {"archive": 0o700, "locks": 0o700, "config": 0o700, "versions": 0o755}

import asyncio
import traceback
from pathlib import Path

import pytest

from pipelines.app.connect import commented_settings
from pipelines.config.connections import Connection, add_connection
from pipelines.config.home import Home
from pipelines.config.settings import Settings, load_settings
from pipelines.core.errors import ConfigurationError, StorageFailed

PARTNER = {
    "base_url": "https://api.example.com/",
    "auth_url": "https://login.example.com",
    "audience": "api",
    "client_id": "acme",
    "secret": "ACME_SECRET",
}
MERCHANT = {"surface": "merchant", "base_url": "http://127.0.0.1:8010", "secret": "SHOP_KEY"}
SETTINGS = """
keep_versions = 5
schedule = "0 3 * * *"
[streams.usage]
key = "usageId"
[streams.invoices]
path = "/v2/invoices"
surface = "merchant"
"""
WRONG_SETTINGS = {
    "[streams.usage]\nlimit = 10001": "streams.usage.limit: .*10000",
    "keep_days = 40000": "keep_days: .*36500",
    "keep_versoins = 5": "keep_versoins: no such field",
    "keep_versions = 0": "keep_versions",
    'time_zone = "Mars/Base"': "time_zone: must be a time zone such as",
    'start_date = "2025-02-31"': "start_date",
    'memory_limit = "128"': "memory_limit: must be 64MB or more",
    'memory_limit = "63.9MB"': "memory_limit: must be 64MB or more",
    'memory_limit = "62499 KiB"': "memory_limit: must be 64MB or more",
    "streams = 3": "streams: must be a table",
    "[streams]\nusage = 3": "streams.usage: must be a table",
    '[streams.invoices]\nsurface = "merchant"': "streams.invoices.path: must be given",
    '[streams.Usage]\npath = "/v2/x"': "Usage.*small letters",
    '[streams.meta]\npath = "/v2/x"': "meta.*not the name of a schema",
    f'[streams.{"a" * 41}]\npath = "/v2/x"': "aaa.*at most 40",
    '[streams.usage]\npath = "/v1/usage"': "streams.usage.path: must be a path such as",
    "[streams.usage]\npage = 5": "streams.usage.page: no such field",
    "not toml": "settings.toml is not valid TOML",
    "PARTNER_SYNC_SCHEDUL": "PARTNER_SYNC_SCHEDUL: no such field",  # of the environment
    "PARTNER_SYNC_NOTFY=": "PARTNER_SYNC_NOTFY: no such field",
    "PARTNER_SYNC_STREAMS": "streams: must be a table",
}
WRONG_SCHEDULES = (
    *("0 2 * *", "0 2 * * * *", "@daily", "60 2 * * *", "0 24 * * *", "0 2 0 * *", "0 2 32 * *"),
    *("0 2 * 13 *", "0 2 * * 8", "0 2 * * sunday", "0 2 * mon *", "*/0 2 * * *", "1,,2 2 * * *"),
    *("0 2 * * mon,", "-1 2 * * *", "5-*/2 2 * * *"),
)
WRONG_SETTINGS |= {
    f'schedule = "{text}"': "schedule: must be minute, hour, day, month and weekday"
    for text in WRONG_SCHEDULES
}
WRONG_SETTINGS |= {
    f'schedule = "0 2 {text}"': "schedule: must be a day that exists in its months"
    for text in ("31 2 *", "30,31 feb *", "30-31 02 mon", "31 4 *", "31 Apr,6,09,nov *")
}
WRONG_CONNECTIONS: list[tuple[dict[str, object], str]] = [
    ({"base_url": "http://api.example.com"}, "base_url: must be https"),
    ({"base_url": "ftp://api.example.com"}, "base_url: must be an address"),
    ({"base_url": "https://user:pw@api.example.com"}, "no user, password"),
    ({"base_url": "https://api.example.com/#v2"}, "no user, password, query or fragment"),
    ({"base_url": "https://api.example.com:99999"}, "base_url: must be an address"),
    ({"secret": "hunter2"}, "must be the name of the environment variable"),
    ({"secret": "PARTNER_SYNC_SECRET"}, "these are settings"),
    (
        {"secret": None},
        r"secret \(name of a variable\), secret_file .* or secret_command .*",
    ),
    ({"secret_command": "print 'hunter2"}, "secret_command: must be a command with its words"),
    ({"secret_command": " "}, "secret_command: must be a command with its words"),
    ({"secret_file": "/hunter2", "secret_command": "hunter2"}, "only one of both"),
    ({"secret_file": "hunter2"}, "secret_file: must be a full path"),
    ({"client_secret": "x"}, "client_secret: no such field"),
    ({"client_id": None, "audience": None}, "audience, client_id: must be given"),
    ({"audience": "a\nb"}, "audience: must be printable"),
    ({"surface": "merchant"}, "API key only"),
    ({"max_requests_per_window": 0}, "max_requests_per_window"),
    ({"skip": "billing"}, r'acme\.skip: must be a list, such as \["billing"\]'),
]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home").prepare()


def test_the_environment_wins_over_the_file_over_defaults(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.settings_file.write_text(SETTINGS)
    given = {"KEEP_VERSIONS": "7", "USE_PROXY": "true", "SCHEDULE": "", "MEMORY_LIMIT": "62500 kiB"}
    for name, text in given.items():
        monkeypatch.setenv(f"PARTNER_SYNC_{name}", text)
    settings = load_settings(home)
    assert (settings.keep_versions, settings.schedule) == (7, "0 3 * * *")
    assert settings.memory_limit == "62500 kiB"
    assert (settings.sync_max_minutes, settings.use_proxy) == (120, True)
    streams = settings.streams
    assert list(streams) == ["partners", "usage", "billing", "invoices"]
    assert (streams["usage"].key, streams["usage"].limit) == ("usageId", 500)
    assert (streams["invoices"].surface, streams["invoices"].limit) == ("merchant", 100)


@pytest.mark.parametrize(("text", "named"), WRONG_SETTINGS.items())
def test_wrong_settings_are_named(
    home: Home, text: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text.startswith("PARTNER_SYNC_"):
        monkeypatch.setenv(text.rstrip("="), "" if text.endswith("=") else "0 2 * * *")
    else:
        home.settings_file.write_text(text)
    with pytest.raises(ConfigurationError, match=named):
        load_settings(home)


def test_each_field_of_a_schedule_is_a_list_of_values_ranges_and_steps(home: Home) -> None:
    for schedule in ("59 23 31 12 7", "*/5,7 00 1-5/2 jan-MAR,6 Mon-fri", "5/10 22-3 * 1 fri-mon"):
        home.settings_file.write_text(f'schedule = "{schedule}"')
        assert load_settings(home).schedule == schedule


def test_a_key_may_be_a_list_of_fields(home: Home) -> None:
    for given, key in (('["source", "id"]', '["source","id"]'), ('["id"]', "id"), ('"id"', "id")):
        home.settings_file.write_text(f"[streams.usage]\nkey = {given}\n")
        assert load_settings(home).streams["usage"].key == key
    for wrong in ("[]", "[1]"):
        home.settings_file.write_text(f"[streams.usage]\nkey = {wrong}\n")
        with pytest.raises(ConfigurationError, match=r"streams\.usage\.key: must be the name"):
            load_settings(home)


def test_the_written_settings_are_valid_with_every_default(home: Home) -> None:
    text = commented_settings()
    home.settings_file.write_text(text)
    defaults = load_settings(home)
    empty = {
        "metadata_url",
        "memory_limit",
        "files",
        "files_endpoint",
        "readers",
    }  # whose defaults no file can name
    switched_on = [
        line.removeprefix("# ")
        for line in text.splitlines()
        if " = " in line and not any(each in line for each in (*empty, "key"))
    ]
    home.settings_file.write_text("\n".join(switched_on))
    assert load_settings(home) == defaults
    named = {line.partition(" = ")[0] for line in switched_on} | empty
    assert named == Settings.model_fields.keys() - {"home", "streams"}


def test_connections_are_appended_once_and_read(home: Home) -> None:
    file = home.connections_file
    file.write_text("# a comment that stays\n")
    add_connection(file, "acme", PARTNER)
    add_connection(file, "shop", MERCHANT | {"skip": ["usage"]})
    with pytest.raises(ConfigurationError, match="already"):
        add_connection(file, "acme", PARTNER)
    with pytest.raises(StorageFailed, match="cannot be written"):
        add_connection(file.with_name("missing") / file.name, "acme", PARTNER)
    found = load_settings(home).connections()
    assert list(found) == ["acme", "shop"]
    assert found["acme"].base_url == "https://api.example.com"
    assert found["shop"].skip == ("usage",)
    assert file.read_text().startswith("# a comment that stays\n")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_connection_skips_known_streams_only(home: Home) -> None:
    add_connection(home.connections_file, "acme", PARTNER | {"skip": ["biling"]})
    with pytest.raises(ConfigurationError, match="skips an unknown stream: `biling`"):
        load_settings(home).connections()


@pytest.mark.parametrize(("changed", "named"), WRONG_CONNECTIONS)
def test_wrong_connections_are_named_and_nothing_is_written(
    home: Home, changed: dict[str, object], named: str
) -> None:
    fields = {k: v for k, v in (PARTNER | changed).items() if v is not None}
    with pytest.raises(ConfigurationError, match=named) as caught:
        add_connection(home.connections_file, "acme", fields)
    assert "hunter2" not in str(caught.value)
    assert not home.connections_file.exists()


def test_secrets_come_from_the_variable_or_a_private_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home.root / "secret"
    file.write_text("from-file\n")
    connection = add_connection(home.connections_file, "acme", PARTNER | {"secret_file": str(file)})
    file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="other users can read it"):
        connection.read_secret()
    file.chmod(0o600)
    assert connection.read_secret() == "from-file"
    monkeypatch.setenv("ACME_SECRET", "from-variable")
    assert connection.read_secret() == "from-variable"
    assert "from-" not in repr(connection)


def printing(home: Home, script: str) -> Connection:
    """Return a connection whose secret a script of the shell prints."""
    file = home.root / "print secret"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o700)
    fields = {**PARTNER, "secret": None, "secret_command": f"'{file}' acme hunter2"}
    del fields["secret"]
    return add_connection(home.connections_file, "acme", fields)


def test_a_secret_comes_from_a_command_that_is_run_once(home: Home) -> None:
    count = home.root / "count"
    connection = printing(home, f'echo "$*" >> "{count}"; echo oops hunter2 >&2; echo " case-1 "')
    again = load_settings(home).connection("acme")
    secrets = [connection.read_secret(), again.read_secret()]
    secrets.append(asyncio.run(again.read_secret_beside_others()))
    assert secrets == ["case-1"] * 3
    assert count.read_text() == "acme hunter2\n"
    assert "hunter2" not in repr(connection)
    assert "case-1" not in repr(connection)
    assert connection.secret_place == "secret_command"
    assert "prints contains a space" not in connection.doubt_about_secret()


def test_a_variable_goes_before_a_command(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {**PARTNER, "secret_command": "/bin/echo from-command"}
    connection = add_connection(home.connections_file, "acme", fields)
    assert connection.read_secret() == "from-command"
    monkeypatch.setenv("ACME_SECRET", "from-variable")
    assert connection.read_secret() == "from-variable"


FAILING = {
    "echo case-1; exit 7": "ended with exit code 7",
    "echo case-1; kill -9 $$": "ended by signal 9",
    "echo case-1; exec sleep 60": "did not end within 1 seconds",
    "exit 0": "printed nothing",
    r"printf 'case-1\351'": "did not print UTF-8 text",
    "echo case-1; head -c 70000 /dev/zero": "printed more than 65,536 bytes",
}


@pytest.mark.parametrize(("script", "why"), FAILING.items())
def test_a_command_that_prints_no_secret_is_explained_without_its_output(
    script: str, why: str, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.config.secret_command.TIME_LIMIT", 1.0)
    connection = printing(home, f"echo case-1 >&2; {script}")
    with pytest.raises(ConfigurationError, match=why) as caught:
        connection.read_secret()
    assert "Run the command yourself" in caught.value.remedy
    shown = "".join(traceback.format_exception(caught.value))
    assert "case-1" not in shown
    assert "hunter2" not in shown
    home.root.joinpath("print secret").unlink()
    with pytest.raises(ConfigurationError, match="cannot be started: No such file"):
        connection.read_secret()


SECRETS = {
    "newline": b"case-secret\n",
    "CRLF": b"case-secret\r\n",
    "byte order mark": b"\xef\xbb\xbfcase-secret\r\n",
    "UTF-16, as PowerShell 5 writes it": "\ufeffcase-secret\r\n".encode("utf-16-le"),
    "spaces": b"\t case-secret\xe2\x80\x8b ",
}


@pytest.mark.parametrize("content", SECRETS.values(), ids=SECRETS)
def test_what_editors_put_around_a_secret_is_removed(
    content: bytes, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home.root / "secret"
    file.write_bytes(content)
    file.chmod(0o600)
    connection = add_connection(home.connections_file, "acme", PARTNER | {"secret_file": str(file)})
    assert connection.read_secret() == "case-secret"
    if not content.startswith(b"\xff"):
        monkeypatch.setenv("ACME_SECRET", content.decode())
        assert connection.read_secret() == "case-secret"
    monkeypatch.setenv("ACME_SECRET", " \n")  # as if it were not set
    assert connection.read_secret() == "case-secret"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_configuration_may_be_saved_by_any_editor(encoding: str, end: str, home: Home) -> None:
    add_connection(home.connections_file, "acme", PARTNER)
    for file, text in (
        (home.connections_file, home.connections_file.read_text(encoding="utf-8")),
        (home.settings_file, "keep_versions = 7\n# Größe\n"),
    ):
        file.write_bytes(text.replace("\n", end).encode(encoding))
    settings = load_settings(home)
    assert settings.keep_versions == 7
    assert settings.connection("acme").client_id == PARTNER["client_id"]
    add_connection(home.connections_file, "second", PARTNER)
    assert set(settings.connections()) == {"acme", "second"}


def test_variables_that_are_no_text_are_named(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = add_connection(home.connections_file, "acme", PARTNER)
    monkeypatch.setenv("ACME_SECRET", "case\udce9secret")
    with pytest.raises(ConfigurationError, match="ACME_SECRET is not UTF-8 text"):
        connection.read_secret()
    monkeypatch.setenv("PARTNER_SYNC_SCHEDULE", "0 2 * * *\udce9")
    with pytest.raises(ConfigurationError, match="PARTNER_SYNC_SCHEDULE is not UTF-8 text"):
        load_settings(home)
    monkeypatch.setenv("PARTNER_SYNC_HOME", "/home\udce9")
    with pytest.raises(ConfigurationError, match="not text in the encoding of this locale"):
        Home.from_environment()


def test_folders_are_private_where_they_should_and_a_home_has_to_exist(home: Home) -> None:
    folders = (home.archive, home.locks, home.settings_file.parent, home.versions)
    modes = [folder.stat().st_mode & 0o777 for folder in folders]
    assert modes == [0o700, 0o700, 0o700, 0o755]
    with pytest.raises(ConfigurationError, match="does not exist") as caught:
        load_settings(Home(home.root / "none"))
    assert "partner-sync init" in caught.value.remedy

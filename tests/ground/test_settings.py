"""Settings: where each comes from, which is refused, and in what words."""

import json
import os
import re
from datetime import date
from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from pipelines import settings
from pipelines.errors import ConfigurationError
from pipelines.settings import Address, Settings
from pipelines.settings.values import LOOPBACK

PREFIX = "PARTNER_SYNC_"
REQUIRED = ("BASE_URL", "AUTH_URL", "AUDIENCE", "CLIENT_ID")
CANARY = "canary8d21"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and no setting of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv(PREFIX + "HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(home: Path, text: str) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "settings.toml").write_text(text, encoding="utf-8")


def test_every_setting_has_a_default_but_the_connection(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = settings.load()
    assert (loaded.rate, loaded.window, loaded.keep_versions) == (5, 1.0, 3)
    assert (loaded.schedule, loaded.time_zone) == ("0 2 * * *", "UTC")
    assert loaded.start_date == date(2025, 1, 1)
    assert {getattr(loaded, name.lower()) for name in REQUIRED} == {None}
    assert loaded.place.root == home
    monkeypatch.delenv(PREFIX + "HOME")
    assert settings.load().place.root == tmp_path / "user" / ".partner-sync"


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


# In the environment, in the file, and to how many minutes the count of a list is limited.
MINUTES = [
    (None, None, None),
    ("20", None, 20),
    (None, "30", 30),
    ("20", "30", 20),
    ("", None, None),
]


@pytest.mark.parametrize(("variable", "file", "minutes"), MINUTES)
def test_the_minutes_of_a_count_are_limited_only_where_set(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    file: str | None,
    minutes: int | None,
) -> None:
    if variable is not None:
        monkeypatch.setenv(PREFIX + "SYNC_MAX_MINUTES", variable)
    if file is not None:
        write(home, f"sync_max_minutes = {file}\n")
    assert settings.load().sync_max_minutes == minutes


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "long"])
def test_a_count_of_no_time_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(PREFIX + "SYNC_MAX_MINUTES", value)
    with pytest.raises(ConfigurationError, match="PARTNER_SYNC_SYNC_MAX_MINUTES: Input should"):
        settings.load()


# What says the rate: the caller, the environment, settings.toml; and who is believed.
PRECEDENCE = [
    ((None, None, None), 5),
    ((None, None, 2), 2),
    ((None, 3, 2), 3),
    ((None, 3, None), 3),
    ((4, 3, 2), 4),
    ((4, None, 2), 4),
]


@pytest.mark.parametrize(("said", "rate"), PRECEDENCE)
def test_precedence(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: tuple[int | None, ...], rate: int
) -> None:
    caller, variable, file = said
    if variable is not None:
        monkeypatch.setenv(PREFIX + "RATE", str(variable))
    if file is not None:
        write(home, f"rate = {file}\n")
    loaded = Settings() if caller is None else Settings(rate=caller)
    assert loaded.rate == rate


def test_settings_toml_is_that_of_the_home_that_was_chosen(home: Path, tmp_path: Path) -> None:
    write(home, "rate = 2\n")
    write(tmp_path / "other", "rate = 3\n[streams.usage]\nkey = 'sequence'\n")
    assert settings.load().rate == 2
    other = settings.load(tmp_path / "other")
    assert (other.rate, other.streams["usage"].key) == (3, "sequence")
    assert other.place.root == tmp_path / "other"


def test_a_relative_home_is_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert settings.load(Path("here")).place.root == tmp_path / "here"


def test_a_tilde_is_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "CLIENT_SECRET_FILE", "CA_FILE"):
        monkeypatch.setenv(PREFIX + name, "~/kept")
    loaded = settings.load()
    kept = tmp_path / "user" / "kept"
    assert [loaded.place.root, loaded.client_secret_file, loaded.ca_file] == [kept] * 3


@pytest.mark.parametrize("name", ["HOME", "RATE", "BASE_URL", "STREAMS", "START_DATE"])
def test_an_empty_variable_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.delenv(PREFIX + "HOME")
    default = settings.load()
    monkeypatch.setenv(PREFIX + name, "")
    assert settings.load() == default
    assert default.place.root == tmp_path / "user" / ".partner-sync"


def test_streams_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "STREAMS", json.dumps({"usage": {"key": "sequence"}}))
    assert settings.load().streams["usage"].key == "sequence"


HTTPS = "must be https: http is for a service on this machine only"
SHAPE = "must be an address such as https://api.example.com"
PLAIN = "must be host, port and path only: no user, password, query or fragment"
BAD = [
    ("BASE_URL", f"http://{CANARY}.example", HTTPS),
    ("BASE_URL", f"http://127.0.0.1.{CANARY}.example", HTTPS),
    ("AUTH_URL", f"https://user:{CANARY}@host", PLAIN),
    ("AUTH_URL", f"https://us\u2100er:{CANARY}@host", PLAIN),
    ("AUTH_URL", f"https://host/?{CANARY}", PLAIN),
    ("AUTH_URL", "https://host?", PLAIN),
    ("AUTH_URL", f"https://host/#{CANARY}", PLAIN),
    ("BASE_URL", f"ftp://{CANARY}", SHAPE),
    ("BASE_URL", f"{CANARY}.example", SHAPE),
    ("BASE_URL", "https://", SHAPE),
    ("BASE_URL", f"https://{CANARY}:99999", SHAPE),
    ("BASE_URL", f"https://{CANARY}:port", SHAPE),
    ("BASE_URL", f"https://[{CANARY}]", SHAPE),
    ("BASE_URL", f"https://{CANARY} host", SHAPE),
    ("BASE_URL", f"https://{CANARY}\nhost", SHAPE),
    ("RATE", CANARY, "valid integer"),
    ("RATE", "0", "greater than or equal to 1"),
    ("ALLOWANCE", "0", "greater than or equal to 1"),
    ("WINDOW", "-1", "greater than or equal to 0"),
    ("WINDOW", "nan", "finite"),
    ("WINDOW", "inf", "finite"),
    ("KEEP_VERSIONS", "0", "greater than or equal to 1"),
    ("START_DATE", CANARY, "valid date"),
    ("START_DATE", "2025-02-30", "date"),
    ("MEMORY_LIMIT", CANARY, "should match pattern"),
    ("TIME_ZONE", CANARY, "must be a time zone such as"),
    ("TIME_ZONE", f"/etc/{CANARY}", "must be a time zone such as"),
    ("CA_FILE", f"~{CANARY}/x", "folder of that user is not known"),
    ("HOME", f"~{CANARY}/x", "folder of that user is not known"),
    ("STREAMS", f"{{{CANARY}", "must be JSON"),
    ("STREAMS", f'"{CANARY}"', "valid"),
    ("STREAMS", f'{{"usage": {{"kex": "{CANARY}"}}}}', "not permitted"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_a_wrong_value_is_named_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(ConfigurationError) as caught:
        settings.load()
    said = str(caught.value)
    assert said.startswith(PREFIX + name)
    assert words in said
    assert CANARY not in said
    assert "\n" not in said


def test_all_that_is_wrong_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "RATE", "x")
    monkeypatch.setenv(PREFIX + "BASE_URL", "x")
    with pytest.raises(ConfigurationError, match=r"_BASE_URL: .*; PARTNER_SYNC_RATE: "):
        settings.load()


TOML = [
    ("rate = ", "PARTNER_SYNC_HOME, config/settings.toml: Invalid value"),
    ('rate = "\x00"', "PARTNER_SYNC_HOME, config/settings.toml: "),
    ("rat = 5", "PARTNER_SYNC_RAT: Extra inputs are not permitted"),
    (f'client_secret = "{CANARY}"', "PARTNER_SYNC_CLIENT_SECRET: Extra inputs are not permitted"),
    (f'[streams]\nusage = "{CANARY}"', "PARTNER_SYNC_STREAMS.USAGE: "),
]


@pytest.mark.parametrize(("text", "words"), TOML)
def test_a_wrong_settings_toml_is_told_in_words(home: Path, text: str, words: str) -> None:
    write(home, text)
    with pytest.raises(ConfigurationError) as caught:
        settings.load()
    assert str(caught.value).startswith(words)
    assert CANARY not in str(caught.value)


def test_a_settings_toml_that_is_no_text(home: Path) -> None:
    write(home, "")
    (home / "config" / "settings.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"config/settings\.toml: 'utf-8' codec"):
        settings.load()


ADDRESSES = {
    "https://api.example.com": "https://api.example.com",
    "https://api.example.com/": "https://api.example.com",
    "https://api.example.com:8443/gate/": "https://api.example.com:8443/gate",
    "HTTPS://API.example.com": "HTTPS://API.example.com",
    "https://bücher.example": "https://bücher.example",
    "https://10.0.0.1": "https://10.0.0.1",
    "http://127.0.0.1:8000": "http://127.0.0.1:8000",
    "http://localhost:8000/": "http://localhost:8000",
    "http://[::1]:8000": "http://[::1]:8000",
}


@pytest.mark.parametrize(("text", "address"), ADDRESSES.items())
def test_addresses(monkeypatch: pytest.MonkeyPatch, text: str, address: str) -> None:
    monkeypatch.setenv(PREFIX + "BASE_URL", text)
    assert settings.load().base_url == address


@given(
    st.text()
    | st.from_regex(r"https?://[a-z0-9.:@\[\]/%?# \\-]{0,20}", fullmatch=True)
    | st.from_regex(r"http://(127\.0\.0\.1|localhost)[:@/\\#?a-z0-9.]{0,12}", fullmatch=True)
)
def test_what_is_accepted_the_client_can_ask(text: str) -> None:
    try:
        address = TypeAdapter(Address).validate_python(text)
    except ValidationError:
        return
    service = httpx.MockTransport(lambda _request: httpx.Response(200))
    with httpx.Client(base_url=address, transport=service) as client:
        url = client.get("/v2/usage").request.url
    assert url.path.endswith("/v2/usage")
    assert (url.query, url.fragment, url.userinfo) == (b"", "", b"")
    assert url.scheme == "https" or url.host in LOOPBACK


@pytest.mark.parametrize("missing", [REQUIRED, REQUIRED[1:2], REQUIRED[::3]])
def test_what_is_missing_is_listed(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...]
) -> None:
    for name in REQUIRED:
        if name not in missing:
            monkeypatch.setenv(PREFIX + name, "https://api.example.com")
    with pytest.raises(ConfigurationError) as caught:
        settings.load().connection()
    assert re.findall(r"PARTNER_SYNC_\w+", str(caught.value)) == [PREFIX + each for each in missing]


def test_the_connection_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in REQUIRED:
        monkeypatch.setenv(PREFIX + name, f"https://{name.replace('_', '-').lower()}.example")
    monkeypatch.setenv(PREFIX + "CLIENT_SECRET", CANARY)
    connection = settings.load().connection()
    assert connection.name == "default"
    assert connection.base_url == "https://base-url.example"
    assert connection.auth_url == "https://auth-url.example"
    assert connection.client_id == "https://client-id.example"
    assert connection.secret.read() == CANARY
    assert CANARY not in repr(connection) + repr(settings.load())

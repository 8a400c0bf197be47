"""Webhook and mail, told for real: what arrives, what a refusal says, and no secret anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import ConfigurationError, NotTold
from pipelines.run.message import trial
from pipelines.run.targets import targets
from pipelines.settings import load
from sandbox.tls import Certificates, certificates
from tests.alerts.conftest import NOON
from tests.alerts.receiving import hook, post

PASSWORD = "canary-password-91f"
MAIL = {"sender": "sync@example.com", "to": ["ops@example.com", "night@example.com"]}
SIGNED = {"user": "sync", "password": "MAIL_PASSWORD"}


@pytest.fixture(scope="module")
def secure() -> Iterator[Certificates]:
    with certificates() as made:
        yield made


def tell(monkeypatch: pytest.MonkeyPatch, **tables: Any) -> list[str]:
    """Send a trial to the targets that are set; return what the log was told."""
    for name, table in tables.items():
        monkeypatch.setenv(f"PARTNER_SYNC_{name.upper()}", json.dumps(table))
    said: list[str] = []
    own = load()
    assert PASSWORD not in repr(own)
    for target in targets(own, said.append):
        assert PASSWORD not in repr(target)
        target.send(trial(NOON))
    return said


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_is_encrypted_signed_in_and_whole(
    environment: None, monkeypatch: pytest.MonkeyPatch, secure: Certificates, security: str
) -> None:
    del environment
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with post(secure.context, at_once=security == "tls") as server:
        server.login = ("sync", PASSWORD)
        where = {"host": "127.0.0.1", "port": server.port, "security": security}
        tell(monkeypatch, mail=MAIL | SIGNED | where | {"ca_file": str(secure.authority)})
        assert server.encrypted
    (letter,) = server.letters
    assert server.recipients == MAIL["to"]
    assert letter["Subject"] == "[partner-sync] trial"
    assert letter["Date"] == "Sat, 21 Nov 2026 12:00:00 +0000"
    assert letter.get_content().startswith("This is a trial: nothing is the matter.")
    assert PASSWORD not in letter.as_string()


def test_mail_to_this_machine_needs_no_password_and_names_who_is_refused(
    environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del environment
    with post() as server:
        server.refuses = "night@"
        where = {"host": "127.0.0.1", "port": server.port, "security": "none"}
        said = tell(monkeypatch, mail=MAIL | where)
    assert len(server.letters) == 1
    assert said[1:] == ["127.0.0.1 takes no mail for night@example.com: the others were told"]


def test_what_fails_is_said_without_the_secret(
    environment: None, monkeypatch: pytest.MonkeyPatch, secure: Certificates
) -> None:
    del environment
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    with post(secure.context) as server:
        server.login = ("sync", "another")
        where = {"host": "127.0.0.1", "port": server.port}
        mail = MAIL | SIGNED | where
        with pytest.raises(NotTold, match=r"certificate of 127.0.0.1:.* not trusted") as untrusted:
            tell(monkeypatch, mail=mail)
        with pytest.raises(NotTold, match=r"answered 535 \(SMTPAuthenticationError\)") as refused:
            tell(monkeypatch, mail=mail | {"ca_file": str(secure.authority)})
        monkeypatch.setenv("MAIL_PASSWORD", f"{PASSWORD}é")
        with pytest.raises(NotTold, match="UnicodeEncodeError") as unspeakable:
            tell(monkeypatch, mail=mail | {"ca_file": str(secure.authority)})
    with pytest.raises(NotTold, match="Connection refused"):
        tell(monkeypatch, mail=mail)
    monkeypatch.delenv("MAIL_PASSWORD")
    with pytest.raises(ConfigurationError, match="MAIL_PASSWORD is not set"):
        tell(monkeypatch, mail=mail)
    assert [PASSWORD in str(each.value) for each in (untrusted, refused, unspeakable)] == [
        False
    ] * 3
    assert server.letters == []


def test_the_url_of_a_webhook_is_in_no_log_and_no_words(
    environment: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    del environment
    caplog.set_level("DEBUG")
    with hook() as receiver:
        file = tmp_path / "hook"
        file.write_text(receiver.url)
        file.chmod(0o600)
        said = tell(monkeypatch, webhook={"url_file": str(file)})
        assert receiver.paths == ["/hook/canary-url-5c1"]
        receiver.status = 404
        with pytest.raises(NotTold, match="it answered 404"):
            tell(monkeypatch, webhook={"url_file": str(file)})
    with pytest.raises(NotTold, match="no answer") as gone:
        tell(monkeypatch, webhook={"url_file": str(file)})
    assert receiver.bodies[0]["trial"] is True
    assert "canary-url" not in f"{said} {gone.value} {caplog.text}"


WRONG = [
    ("WEBHOOK", {}, "needs url"),
    ("WEBHOOK", {"url": "https://canary.example"}, "must be the name of the environment variable"),
    ("MAIL", MAIL, "MAIL.HOST: Field required"),
    ("MAIL", MAIL | {"host": "mail.example.com", "security": "none"}, "none is for this machine"),
    ("MAIL", MAIL | {"host": "mail.example.com", "user": "canary"}, "user needs password"),
    ("MAIL", MAIL | {"host": "mail.example.com", "to": ["canary, x@y"]}, "MAIL.TO.0"),
    ("MAIL", MAIL | {"host": "m", "secret": "canary"}, "MAIL.SECRET: Extra inputs"),
    ("STALE_AFTER", 0, "greater than 0"),
]


@pytest.mark.parametrize(("name", "value", "words"), WRONG)
def test_a_wrong_setting_is_named_and_not_quoted(
    environment: None, monkeypatch: pytest.MonkeyPatch, name: str, value: object, words: str
) -> None:
    del environment
    monkeypatch.setenv(f"PARTNER_SYNC_{name}", json.dumps(value))
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


def test_targets_are_read_from_settings_toml(environment: None, tmp_path: Path) -> None:
    del environment
    config = tmp_path / "home" / "config"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text(
        '[webhook]\nurl = "OPS_HOOK"\n\n[mail]\nhost = "mail.example.com"\nuser = "sync"\n'
        'password = "MAIL_PASSWORD"\nsender = "sync@example.com"\nto = ["ops@example.com"]\n'
    )
    own = load()
    assert [each.name for each in targets(own, print)] == ["log", "webhook", "mail"]
    assert own.mail is not None
    assert (own.mail.security, own.mail.door) == ("starttls", 587)

"""People are told of a finding once, again after a day, and when it has cleared."""

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from pipelines.app.checkup import run_checks
from pipelines.app.notify import notify_findings, notify_summary, send_test
from pipelines.app.session import AppSession
from pipelines.core.finding import Finding, Severity
from pipelines.finance.report import read_figures_of_books
from pipelines.metadata.findings import record_findings
from pipelines.metadata.tables import Notification
from tests.checks.channel import SECRET, Channel
from tests.reconcile.books import FIRST, bill, line, partners, publish, used
from tests.versions.homes import MovedClock, Stores

HOUR = timedelta(hours=1)


@pytest.fixture
def channel() -> Channel:
    return Channel()


@pytest.fixture
def session(stores: Stores, channel: Channel, monkeypatch: pytest.MonkeyPatch) -> AppSession:
    monkeypatch.setenv("OPS_HOOK", channel.url)
    stores.configure()
    settings = {"notify": ("OPS_HOOK",), "notify_summary": ("OPS_HOOK",)}
    return replace(stores, settings=stores.settings.model_copy(update=settings))


def finding(
    code: str, severity: Severity = Severity.WARNING, message: str = "It is late."
) -> Finding:
    return Finding(code, severity, "acme", "usage", "", message, "partner-sync sync")


def tell(session: AppSession, channel: Channel, *codes: str, hours: int = 0) -> list[str]:
    """Let some hours pass, record findings, notify people; return what they are told of them."""
    cast(MovedClock, session.clock).now += hours * HOUR
    found = [*map(finding, codes), finding("note", Severity.INFO)]
    return [line.split(":")[0] for line in notified(session, channel, found)]


def notified(session: AppSession, channel: Channel, found: list[Finding]) -> list[str]:
    with session.metadata.transaction() as db:
        record_findings(db, found, session.clock.utc_now())
    notify_findings(session)
    return lines(channel)


def lines(channel: Channel) -> list[str]:
    """Return what was received since the last call."""
    received, channel.received = channel.received, []
    return [line for text in received for line in text.splitlines()]


def test_people_are_told_once_again_after_a_day_and_when_it_clears(
    session: AppSession, channel: Channel
) -> None:
    assert tell(session, channel, "a") == ["new"]
    assert tell(session, channel, "a", hours=23) == []
    assert tell(session, channel, "a", "b", hours=1) == ["still", "new"]
    assert tell(session, channel, "b", hours=1) == ["cleared"]
    assert tell(session, channel, "a", "b", hours=1) == ["new"]


def test_a_title_counts_what_is_new_has_cleared_and_is_open(
    session: AppSession, channel: Channel
) -> None:
    late, failed = finding("late"), finding("failed", Severity.ERROR)
    for found in ([late], [late, failed, finding("note", Severity.INFO)], [late], []):
        notified(session, channel, found)
    titles = ("1 new, 1 open", "1 new, 2 open", "1 cleared, 1 open", "1 cleared, 0 open")
    kinds = ("warning", "failure", "warning", "success")
    expected = [f"partner-sync: {title} findings" for title in titles]
    assert channel.heads == list(zip(expected, kinds, strict=True))


def test_a_channel_that_fails_is_a_finding_and_gets_the_message_later(
    session: AppSession, channel: Channel
) -> None:
    channel.accepts = False
    tell(session, channel, "a")
    found = {each.check.code: each.findings for each in run_checks(session) if each.findings}
    (failed,) = found["notification_failed"]
    assert "The service behind OPS_HOOK did not accept the message" in failed.message
    assert failed.remedy == "partner-sync notify test"
    removed = replace(
        session, settings=session.settings.model_copy(update={"notify": (), "notify_summary": ()})
    )
    assert not any(each.findings for each in run_checks(removed) if "notif" in each.check.code)
    channel.accepts = True
    assert tell(session, channel, "a") == ["new"]
    assert not any(each.findings for each in run_checks(session) if "notif" in each.check.code)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "The environment variable OPS_HOOK is not set."),
        ("nonsense", "The environment variable OPS_HOOK holds no URL that Apprise knows."),
        (None, ""),
    ],
)
def test_a_test_says_what_each_channel_did(
    session: AppSession, monkeypatch: pytest.MonkeyPatch, url: str | None, message: str
) -> None:
    if url is not None:
        monkeypatch.setenv("OPS_HOOK", url)
    assert send_test(session) == [{"channel": "OPS_HOOK", "sent": not message, "message": message}]


def test_a_message_shows_no_secret_and_no_control_character(
    session: AppSession, channel: Channel
) -> None:
    send_test(session)
    (text,) = lines(channel)
    assert text.startswith("This is a test.")
    found = [finding(f"c{n}", message=f"\x1b[31m {n} {SECRET} {channel.url}") for n in range(30)]
    received = notified(session, channel, found)
    assert len(received) == 21
    assert received[-1] == "and 10 more"
    assert "\x1b" not in "".join(received)
    assert channel.url not in "".join(received)
    with session.metadata.transaction() as db:
        assert not any(channel.url in row.text for row in db.query(Notification))


@pytest.mark.long
def test_finance_gets_a_summary_with_exact_amounts(
    session: AppSession, stores: Stores, channel: Channel
) -> None:
    publish(stores, mapping="", usage=[used("u")])
    notify_summary(session, read_figures_of_books(session))
    assert "Nothing is mapped" in lines(channel)[0]
    dollars = used("v", "1234567.891", currency="USD")
    bare = used("w", currency=None)
    publish(stores, partners=partners([FIRST]), usage=[used("u"), dollars, bare])
    publish(stores, billing=[bill("b", line("u", "6.00"))])
    notify_summary(session, read_figures_of_books(session))
    euros, others, unknown = lines(channel)
    assert euros.startswith("EUR: used 5.000, billed 6.000, credit notes 0.000, difference +1.000")
    assert "difference -1,234,567.891" in others
    assert unknown.startswith("No currency: used 5.000")

"""Lists, versions, findings, decisions and identities."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from pipelines.core.completeness import ListMemory
from pipelines.core.errors import ConfigurationError
from pipelines.core.finding import Finding, Severity
from pipelines.metadata.decisions import add_decision, list_decisions
from pipelines.metadata.engine import Metadata
from pipelines.metadata.findings import Scope, open_findings, record_findings
from pipelines.metadata.identities import accept_identity, pin_identity, pinned_identity
from pipelines.metadata.lists import memory_of, remember
from pipelines.metadata.tables import Decision, Identity
from pipelines.metadata.versions import (
    VersionFiles,
    delete_version,
    list_versions,
    next_number,
    publish_version,
    reconcile_versions,
    start_version,
)
from tests.metadata.rows import NOW, minutes


def finding(
    code: str, stream: str = "usage", severity: Severity = Severity.WARNING, subject: str = ""
) -> Finding:
    return Finding(
        code=code,
        severity=severity,
        connection="acme",
        stream=stream,
        subject=subject,
        message=f"{code} happened",
        remedy="",
    )


def decision(kind: str, subject: str, reason: str = "reason") -> Decision:
    return Decision(decided_at=NOW, person="Ada", kind=kind, subject=subject, reason=reason)


def identity(actor: str, **values: str) -> Identity:
    return Identity(
        connection="acme", base_url="https://x", actor=actor, identity=values, pinned_at=NOW
    )


def codes(session: Session) -> list[str]:
    return [row.code for row in open_findings(session)]


def states(session: Session) -> dict[int, str]:
    return {row.number: row.status for row in list_versions(session)}


def test_a_list_remembers_what_its_last_scan_said(session: Session) -> None:
    assert memory_of(session, "acme", "usage") == ListMemory()
    for memory in (
        ListMemory(key="id", key_decided=True, length=7),
        ListMemory(key=None, key_decided=True, length=None, stable_order=False),
    ):
        remember(session, "acme", "usage", memory, "scan")
        session.expire_all()
        assert memory_of(session, "acme", "usage") == memory
    assert memory_of(session, "acme", "billing") == ListMemory()


def test_times_keep_their_zone_and_microseconds(metadata: Metadata) -> None:
    india = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    with metadata.transaction() as session:
        start_version(session, 1, None, india)
    with metadata.transaction() as session:
        (row,) = list_versions(session)
    assert row.created_at == NOW
    assert row.created_at.tzinfo is UTC


def test_a_time_without_a_zone_is_refused(session: Session) -> None:
    with pytest.raises(StatementError, match="without a time zone"):
        start_version(session, 1, None, datetime(2026, 10, 1))  # noqa: DTZ001 - the fault


def test_a_version_number_is_used_once(session: Session) -> None:
    assert next_number(session) == 1
    assert next_number(session, {1, 7}) == 8
    row = start_version(session, 9, 7, NOW)
    assert (row.status, row.file) == ("building", "versions/v00000009.duckdb")
    delete_version(session, 9)
    assert next_number(session, {7}) == 10


def test_rows_follow_the_files(session: Session) -> None:
    for number in range(1, 7):
        start_version(session, number, None, NOW)
    for number in (1, 2, 3):
        publish_version(session, number, None, NOW)
    delete_version(session, 3)
    # 1 was deleted by hand, 3 is not deleted yet; 4 was killed while it was built, 5 before the
    # symlink was moved, 6 before its row was updated; of 8 there is no row.
    assert reconcile_versions(session, VersionFiles({2, 3, 5, 6, 8}, 6), minutes(1)) == [3, 5]
    expected = ["deleted", "published", "deleted", "deleted", "deleted", "published", "published"]
    assert list(states(session).values()) == expected
    assert list(states(session)) == [1, 2, 3, 4, 5, 6, 8]
    assert list_versions(session)[5].published_at == minutes(1)
    assert reconcile_versions(session, VersionFiles({2, 6, 8}, 6), minutes(2)) == []
    assert next_number(session) == 9


def test_a_finding_is_new_once_and_clears_when_it_is_not_found_again(session: Session) -> None:
    changes = record_findings(session, Scope(), [finding("a"), finding("b")], NOW)
    assert [row.code for row in changes.new] == ["a", "b"]
    changes = record_findings(session, Scope(), [finding("a")], minutes(1))
    assert (changes.new, [row.code for row in changes.cleared]) == ([], ["b"])
    (row,) = open_findings(session)
    assert (row.code, row.first_seen, row.last_seen) == ("a", NOW, minutes(1))
    changes = record_findings(session, Scope(), [finding("b")], minutes(2))
    assert [row.code for row in changes.new] == ["b"]
    assert [row.code for row in changes.cleared] == ["a"]
    assert changes.new[0].first_seen == minutes(2)


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (Scope(), []),
        (Scope(codes={"a"}), ["b", "c"]),
        (Scope(connection="other"), ["a", "b", "c"]),
        (Scope(connection="acme", stream="billing"), ["a", "b"]),
        (Scope(codes={"a", "c"}, stream="usage"), ["b", "c"]),
    ],
)
def test_only_findings_of_the_scope_clear(session: Session, scope: Scope, left: list[str]) -> None:
    found = [finding("a"), finding("b"), finding("c", "billing")]
    record_findings(session, Scope(), found, NOW)
    record_findings(session, scope, [], minutes(1))
    assert codes(session) == left


def test_findings_are_listed_by_severity_and_age(session: Session) -> None:
    record_findings(
        session, Scope(), [finding("old"), finding("info", severity=Severity.INFO)], NOW
    )
    error = finding("error", severity=Severity.ERROR, subject="column")
    found = [finding("new"), error, error]
    record_findings(session, Scope(codes=()), found, minutes(1))
    assert codes(session) == ["error", "old", "new", "info"]
    assert open_findings(session, "other") == []


def test_decisions_are_numbered_and_listed(session: Session) -> None:
    for kind, subject in (("approve", "scan"), ("rollback", "7"), ("approve", "other")):
        add_decision(session, decision(kind, subject))
    assert [each.number for each in list_decisions(session)] == [1, 2, 3]
    assert [each.subject for each in list_decisions(session, "approve")] == ["scan", "other"]
    assert [each.number for each in list_decisions(session, "approve", "other")] == [3]


def test_a_decision_needs_a_reason(session: Session) -> None:
    with pytest.raises(ConfigurationError, match="needs a reason") as caught:
        add_decision(session, decision("approve", "scan", " "))
    assert "--reason" in caught.value.remedy
    assert list_decisions(session) == []


def test_an_identity_is_pinned_until_another_is_accepted(session: Session) -> None:
    assert pinned_identity(session, "acme") is None
    assert pin_identity(session, identity("partner", id="1")).identity == {"id": "1"}
    assert pin_identity(session, identity("partner", id="2")).identity == {"id": "1"}
    accept_identity(session, identity("distributor", id="2"))
    session.expire_all()
    pinned = pinned_identity(session, "acme")
    assert pinned is not None
    assert (pinned.actor, pinned.identity) == ("distributor", {"id": "2"})

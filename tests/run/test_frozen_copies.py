"""Frozen copies in a home that is kept: verified, retained, erased from, and begun by a kill.

Not here: what is frozen and what is refused (test_closing).
"""

from datetime import UTC, datetime

from pipelines import run
from pipelines.run import Act, Sought
from tests.run.conftest import Begun
from tests.run.months import (
    COPY,
    MORE,
    SIGNED,
    closed,
    contents,
    ended,
    faults,
    home,
    night,
    rows,
    stands,
)


def test_what_a_kill_left_of_a_copy_is_made_anew(month: Begun) -> None:
    root = month(ended)
    for name in ("001", "abc.making"):
        (root / COPY).with_name(name).mkdir(parents=True)
        ((root / COPY).with_name(name) / "used.parquet").write_bytes(b"half")
    with home(root) as session:
        run.close_month(session, SIGNED)
        assert faults(session) == []
    assert [each.name for each in (root / COPY).parent.iterdir()] == ["001"]


def test_verify_finds_what_is_not_as_it_was_signed_off(month: Begun) -> None:
    root = month(closed)
    file = root / COPY / "used.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes() + b" ")
    with home(root) as session:
        (fault,) = faults(session)
        assert "archive/closes/2026-01/001: used.parquet was changed since" in fault
        (root / COPY / "manifest.json").unlink()
        (fault,) = faults(session)
        assert "manifest.json is missing" in fault
        night(session, 36, MORE)
        assert stands(session)[1].startswith("not compared: `partner-sync verify` says")


def test_retention_keeps_the_pages_of_a_closed_month(month: Begun) -> None:
    with home(month(closed)) as session:
        for number in (36, 37):
            night(session, number, {**MORE, "u-2": f"{number}.00 EUR"})
        run.retain(session, 1, "ann")
        assert faults(session) == []
        assert stands(session)[0] == "OUTDATED"


def test_an_erasure_on_record_is_accepted_and_said(month: Begun) -> None:
    root = month(closed)
    before = contents(root / COPY)
    act = Act("ann", datetime(2026, 3, 1, tzinfo=UTC), "request 7")
    with home(root) as session:
        night(session, 36, MORE)
        done = run.erase(session, Sought("partner-1"), act, lambda _done, _every: None)
        said = "usage: 1 record erased since sign-off; billing: 1 record erased since sign-off"
        assert stands(session) == ("CLOSED", said, None)
        assert faults(session) == []
        assert {each["partner"] for each in rows(session, "FROM reconciliation.corrections")} == {
            "[erased]"
        }
    assert "archive/closes/2026-01/001/used.parquet" in done.left
    assert any("frozen copy of a closed month" in line for line in done.words)
    assert contents(root / COPY) == before

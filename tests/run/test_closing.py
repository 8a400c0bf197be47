"""Closing a month: what is frozen, what is refused, and that later changes never touch the copy."""

import json
import stat
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from hashlib import sha256

import pytest
from pyarrow import parquet

from pipelines import run
from pipelines.errors import ConfigurationError
from pipelines.run import Session
from pipelines.state import closes
from pipelines.state.proof import Grade
from pipelines.warehouse import published
from pipelines.warehouse.frozen import Copies
from tests.run.conftest import Begun
from tests.run.months import (
    COPY,
    FEBRUARY,
    JANUARY,
    MARCH,
    MORE,
    SIGNED,
    USED,
    closed,
    contents,
    ended,
    faults,
    home,
    night,
    posted,
    rows,
    stands,
    told,
)

SHOWN = """
SELECT state, preparer, reviewer, note, records, changed, said FROM reconciliation.closes
"""


def test_a_frozen_copy_has_every_record_and_the_hash_of_all_that_it_is_made_of(
    month: Begun,
) -> None:
    root = month(closed)
    manifest = json.loads((root / COPY / "manifest.json").read_bytes())
    mapping = (root / "config" / "mapping.toml").read_bytes()
    with home(root) as session:
        close = closes.closed(session.ledger)[JANUARY]
        pinned = set(Copies(session.archive).pinned())
        pages = [page for page in manifest["pages"] if session.archive.has(page)]
        assert faults(session) == []

    files = contents(root / COPY)
    assert close.sha256 == files.pop("manifest.json")
    assert {name: part["sha256"] for name, part in manifest["files"].items()} == files
    assert {"used.parquet", "billed.parquet", "breaks.parquet", "mapping.toml"} <= files.keys()
    assert (manifest["mapping"], manifest["version"]) == (sha256(mapping).hexdigest(), 1)
    assert (manifest["preparer"], manifest["reviewer"]) == ("ann", "bob")
    assert (len(pages), pinned) == (2, set(pages))
    assert {stat.S_IMODE(file.stat().st_mode) for file in (root / COPY).iterdir()} == {0o400}
    used = parquet.read_table(root / COPY / "used.parquet").to_pylist()
    worth = {each["id"]: (each["amount"], each["currency"]) for each in used}
    assert worth == {
        "u-1": (Decimal("10.00"), "EUR"),
        "u-2": (Decimal("2.60"), "EUR"),
        "u-3": (Decimal(700), "JPY"),
    }
    assert close.records == 5


def test_a_closed_month_says_so_and_stays_as_signed_off(month: Begun) -> None:
    with home(month(closed)) as session:
        with published.opened(session.settings.place) as file:
            (shown,) = file.database.execute(SHOWN).fetchall()
        assert shown == ("CLOSED", "ann", "bob", "as agreed", 5, 0, "as it was signed off")
        night(session, 36, {**USED, "u-8": "3.00 EUR"} | {"u-9": "5.00 EUR"})
        assert stands(session)[1] == "1 record new since sign-off, net +3.00 EUR"


def test_a_restatement_turns_it_outdated_and_is_posted_once(month: Begun) -> None:
    root = month(closed)
    before = contents(root / COPY)
    with home(root) as session:
        night(session, 36, MORE)
        words = "1 record restated since sign-off, net +12.40 EUR"
        assert stands(session) == ("OUTDATED", words, "+12.40 EUR")
        first = ("usage", "u-1", "restated", Decimal("12.40"), FEBRUARY)
        assert posted(session) == [first]
        night(session, 37, {**MORE, "u-3": "699 JPY", "u-2": "2.60001 EUR"})
        words = "3 records restated since sign-off, net +12.40001 EUR, -1 JPY"
        assert stands(session)[1] == words
        later = ("usage", "u-2", "restated", Decimal("0.00001"), FEBRUARY)
        yen = ("usage", "u-3", "restated", Decimal(-1), FEBRUARY)
        assert posted(session) == [first, later, yen]
        night(session, 38, USED)
        assert stands(session) == ("CLOSED", "as it was signed off", None)
        back = [(side, which, "back", -worth, to) for side, which, _, worth, to in posted(session)]
        assert posted(session)[3:] == back[:3]
        assert faults(session) == []
    assert contents(root / COPY) == before


def test_the_pack_says_it_too(month: Begun) -> None:
    with home(month(closed)) as session:
        night(session, 36, MORE)
        assert run.publish_folded(session)
        (line,) = rows(session, "FROM reports.reconciliation_pack WHERE section = 'close'")
        words = "1 record restated since sign-off, net +12.40 EUR"
        assert (line["what"], line["verdict"], line["says"]) == ("close 1", "OUTDATED", words)
        (change,) = rows(session, "FROM reconciliation.restatements")
        assert (change["id"], change["difference"]) == ("u-1", Decimal("12.40"))
        assert change["after_close"]


def test_both_sides_are_said_apart(month: Begun) -> None:
    with home(month(closed)) as session:
        night(session, 36, MORE, {"b-1": "12.60 EUR", "b-2": "0.40 USD", "b-3": "690 JPY"})
        said = (
            "usage: 1 record restated since sign-off, net +12.40 EUR; "
            "billing: 1 record restated, 1 new since sign-off, net -10 JPY, +0.40 USD"
        )
        nets = "usage +12.40 EUR; billing -10 JPY, +0.40 USD"
        assert stands(session) == ("OUTDATED", said, nets)


def test_a_change_goes_to_the_month_that_is_open_then(month: Begun) -> None:
    with home(month(closed)) as session:
        night(session, 36, MORE)
        night(session, 70, MORE)
        run.publish_folded(session)
        run.close_month(session, replace(SIGNED, month=FEBRUARY))
        february = session.settings.place.archive / "closes" / "2026-02" / "001"
        taken = parquet.read_table(february / "corrections.parquet").to_pylist()
        night(session, 71, {**MORE, "u-1": "22.00 EUR"})
        assert [each["difference"] for each in taken] == [Decimal("12.40")]
        assert [each[3:] for each in posted(session)] == [
            (Decimal("12.40"), FEBRUARY),
            (Decimal("-0.40"), MARCH),
        ]
        assert stands(session)[2] == "+12.00 EUR"
        assert stands(session, FEBRUARY)[0] == "CLOSED"


def test_a_month_is_opened_again_on_purpose_and_closed_anew(month: Begun) -> None:
    root = month(closed)
    before = contents(root / COPY)
    with home(root) as session:
        night(session, 36, MORE)
        opened = replace(SIGNED, preparer="cid", reviewer="", note="a bill came late")
        run.reopen_month(session, opened)
        told(session)
        said = "opened again by cid at 2026-03-20 00:00 UTC: a bill came late"
        assert stands(session) == ("REOPENED", said, None)
        assert posted(session) == []
        run.publish_folded(session)
        run.close_month(session, SIGNED)
        told(session)
        states = rows(session, "SELECT number, state FROM reconciliation.closes ORDER BY number")
        wanted = [(1, "REOPENED"), (2, "CLOSED")]
        assert [(each["number"], each["state"]) for each in states] == wanted
        listed = run.closed_months(session)
        assert [(each.close.number, each.state) for each in listed] == wanted
        assert faults(session) == []
    assert contents(root / COPY) == before


def test_another_mapping_afterwards_changes_nothing_of_a_closed_month(month: Begun) -> None:
    with home(month(closed)) as session:
        (session.settings.place.config / "mapping.toml").unlink()
        assert run.publish_folded(session)
        assert stands(session)[0] == "CLOSED"


def read_with(grade: Grade) -> Callable[[Session], None]:
    """Return what reads and publishes the lists once more, with another grade."""

    def read(session: Session) -> None:
        night(session, 36, USED, grade=grade)
        assert run.publish_folded(session)

    return read


def test_a_month_is_closed_on_lists_that_were_counted(month: Begun) -> None:
    with home(month(ended)) as session:
        read_with(Grade.COMPLETE_BY_COUNT)(session)
        assert run.close_month(session, SIGNED).close.records == 5


def unmapped(session: Session) -> None:
    (session.settings.place.config / "mapping.toml").unlink()


def mapped_since(session: Session) -> None:
    with (session.settings.place.config / "mapping.toml").open("a") as file:
        file.write("[tolerance]\nline_minor = 1\n")


def nothing(_session: Session) -> None:
    """Do nothing first."""


def once_closed(session: Session) -> None:
    run.close_month(session, SIGNED)


LATE = datetime(2026, 3, 20, tzinfo=UTC)
REFUSED: list[tuple[Callable[[Session], None], run.Signing, datetime, str]] = [
    (unmapped, SIGNED, LATE, "there is no mapping.toml"),
    (mapped_since, SIGNED, LATE, "do not have what was mapped"),
    (nothing, replace(SIGNED, reviewer=" Ann"), LATE, "signed off by two"),
    (nothing, replace(SIGNED, reviewer=""), LATE, "--preparer and --reviewer"),
    (nothing, SIGNED, datetime(2026, 2, 1, 23, tzinfo=UTC), "not over before 2026-02-02 00:00"),
    (
        nothing,
        replace(SIGNED, month=FEBRUARY),
        LATE,
        "events of default was read last at 2026-02-05",
    ),
    (nothing, replace(SIGNED, month=date(2025, 3, 1)), LATE, "there is no record of 2025-03"),
    (read_with(Grade.PARTIAL), SIGNED, LATE, "events of default: events: PARTIAL. 4 distinct rows"),
    # Of a release before 0.2: rows that moved may be lacking.
    (read_with(Grade.COMPLETE_FOR_UNMOVED), SIGNED, LATE, "of default: COMPLETE FOR UNMOVED"),
    (once_closed, SIGNED, LATE, "close 2026-01 --reopen --by"),
]


@pytest.mark.parametrize(("before", "signing", "now", "why"), REFUSED)
def test_what_forbids_it_is_said_and_nothing_is_written(
    month: Begun,
    before: Callable[[Session], None],
    signing: run.Signing,
    now: datetime,
    why: str,
) -> None:
    with home(month(ended), now) as session:
        before(session)
        known = closes.every(session.ledger)
        with pytest.raises(ConfigurationError, match=why):
            run.close_month(session, signing)
        assert closes.every(session.ledger) == known
        copies = session.settings.place.archive / "closes"
        assert len([*copies.glob("*/*")]) == len(known)

"""What the screen says of a sync: causes once, rows set aside, an interruption in words."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines.cli import screen
from pipelines.errors import ContractBroken, PartnerSyncError
from pipelines.run import Outcome, StreamOutcome
from pipelines.settings import Home, Settings
from pipelines.state.journal import ManifestRow
from pipelines.state.proof import Grade, Proof
from pipelines.state.runs import Effort
from pipelines.state.versions import Version
from pipelines.warehouse.meta import Fold
from pipelines.warehouse.scan import Progress

HOME = Home(Path("warehouse"))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASIDE = Fold(
    1, "r", "a", "usage", "m", NOON.date(), "COMPLETE", NOON, 600, 0, 0, 2, 598, 0, 0, 0, 0, 0, NOON
)
VERSION = Version(1, "r", "warehouse.v00000001.duckdb", {}, {}, NOON)
NO_WAY = ContractBroken("no way there")


def outcome(connection: str, stream: str, told: Fold | PartnerSyncError) -> StreamOutcome:
    fold, error = (told, None) if isinstance(told, Fold) else (None, told)
    return StreamOutcome(connection, stream, None, fold, Effort(), error)


OUTCOMES = [
    ([("a", "usage", NO_WAY), ("a", "billing", NO_WAY)], "usage, billing: no way there\n"),
    (
        [("a", "usage", NO_WAY), ("b", "usage", NO_WAY)],
        "connection a, usage: no way there\nconnection b, usage: no way there\n",
    ),
    ([("a", "usage", ContractBroken("usage: NOT PROVEN"))], "usage: NOT PROVEN\n"),
    (
        [("a", "usage", ASIDE)],
        (
            "usage: 2 of 600 rows set aside, which no table can hold; why, in the published file: "
            "SELECT _key, reason FROM quarantine.usage\n"
        ),
    ),
]


@pytest.mark.parametrize(("streams", "said"), OUTCOMES)
def test_what_happened_is_said_once_and_where(
    streams: list[tuple[str, str, Fold | PartnerSyncError]],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen.closing(Outcome(tuple(outcome(*each) for each in streams), None), HOME)

    stderr = capsys.readouterr().err
    assert (
        stderr == said + "nothing new was published; the rows that analysts open are as they were\n"
    )


PROOF = Proof(Grade.COMPLETE, 5940, 14, 0, 1, 0, "id", False, NOON, NOON)


def read(stream: str, proof: Proof) -> StreamOutcome:
    """Return the outcome of a stream that was read."""
    row = ManifestRow("a", stream, NOON.date(), 1, "s", "f", 14, proof.rows, proof, NOON)
    return StreamOutcome("a", stream, row, None, Effort(), None)


def test_repeated_rows_have_a_column_where_there_are_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen.closing(Outcome((read("usage", PROOF),), None), HOME)
    assert "repeated" not in capsys.readouterr().out
    repeating = read("usage", replace(PROOF, repeats=60))
    screen.closing(Outcome((repeating, read("billing", PROOF)), None), HOME)
    said = " ".join(capsys.readouterr().out.split())
    assert "repeated rows" in said
    assert "60 rows repeated under the same key; each key is loaded once." in said


def test_a_partial_list_shows_both_numbers_and_a_list_without_a_key_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    partial = replace(PROOF, grade=Grade.PARTIAL, rows=5987, places=6000, counted_at=NOON, key=None)
    outcome = Outcome((read("usage", partial),), None)
    screen.closing(outcome, HOME)
    said = " ".join(capsys.readouterr().out.split())
    assert "5,987 distinct rows seen; the list had 6,000 places at 12:00:00 UTC." in said
    assert "No primary key found: " in said
    assert replace(outcome, version=VERSION).exit_code == 3
    counted = read("usage", replace(partial, grade=Grade.COMPLETE_BY_COUNT, rows=6000))
    assert Outcome((counted,), VERSION).exit_code == 0


def interrupted(home: Path) -> None:
    with screen.watching(Settings(home=home)) as watch:
        watch.waiting("usage: somebody reads it")
        raise KeyboardInterrupt


def test_an_interruption_says_what_it_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path)

    stderr = capsys.readouterr().err
    assert "… usage: somebody reads it\n" in stderr
    assert "interrupted: what analysts open is as it was" in stderr


def test_at_the_end_a_list_was_read_or_it_was_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTNER_SYNC_BASE_URL", "https://api.example.com")
    monkeypatch.setenv("PARTNER_SYNC_AUTH_URL", "https://api.example.com")
    monkeypatch.setenv("PARTNER_SYNC_AUDIENCE", "a")
    monkeypatch.setenv("PARTNER_SYNC_CLIENT_ID", "c")
    with screen.watching(Settings(home=tmp_path)) as watch:
        watch.progress(Progress("default", "usage", 1, 500, done=False))
        watch.progress(Progress("default", "billing", 1, 20, done=True))

    told = {line.split()[1]: line.split()[0] for line in capsys.readouterr().err.splitlines()[:2]}
    assert told == {"usage": "✗", "billing": "✓"}

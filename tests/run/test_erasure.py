"""Erasing a partner: nothing of it is found in any file of the home, and all else is as it was."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipelines import run
from pipelines.clock import SYSTEM
from pipelines.errors import ConfigurationError
from pipelines.run import Act, Session, Sought
from pipelines.run.erasure import Erased
from pipelines.run.replay import again
from pipelines.settings import Settings
from pipelines.state import redactions, versions
from pipelines.warehouse import published, traces
from pipelines.warehouse.meta import Fold
from tests.run.conftest import Begun
from tests.run.kept_nights import everything, home, night
from tests.run.nights import Nights

GONE, STAYS = "partner-000017", "partner-000018"
ACT = Act("ann", datetime(2026, 11, 21, tzinfo=UTC), "request 7")


def silent(_done: int, _every: int) -> None:
    """Hear nothing."""


def nights(session: Session, *, without: str = "") -> None:
    for number in range(1, 4):
        some = [GONE, STAYS, f"partner-{number:06}"]
        night(session, number, [each for each in some if each != without])


def without(session: Session) -> None:
    nights(session, without=GONE)


def erased(session: Session) -> Erased:
    return run.erase(session, Sought(GONE), ACT, silent)


def test_nothing_of_it_is_found_in_any_file(begun: Begun) -> None:
    root = begun(nights)
    with home(root) as session:
        (root / "exports" / "v1.csv").mkdir(parents=True)
        (root / "exports" / "v1.csv" / "partners.csv").write_text(f"id\n{GONE}\n")
        (root / "exports" / "csv").symlink_to("v1.csv")
        (root / "exports" / "other.csv").write_text(f"id\n{STAYS}\n")
        (root / "reports").mkdir()
        (root / "reports" / "report-v00000001.html").write_text("the partner's name and its bills")
        assert len(list(traces.files(root, GONE))) > 5

        done = erased(session)

    assert (done.left, list(traces.files(root, GONE))) == ((), [])
    assert list(traces.files(root, STAYS))
    assert done.records == 6  # in three nights the partner itself and its usage
    assert done.exports == ("v1.csv",)
    assert done.reports == ("report-v00000001.html",)
    assert not list((root / "reports").iterdir())
    assert sorted(each.name for each in (root / "exports").iterdir()) == ["other.csv"]
    assert [file.name for file in (root / "published").iterdir()] == ["warehouse.v00000004.duckdb"]
    assert "6 records were erased from 6 archived pages" in done.words[0]
    assert "not erased: copies that analysts made" in done.words[-1]


def test_all_else_is_as_if_it_had_never_been_there(begun: Begun) -> None:
    """But for where the other records stand in their pages."""
    with home(begun(without)) as session:
        expected = _content(session)
    with home(begun(nights)) as session:
        erased(session)
        assert _content(session) == expected
        with published.opened(session.settings.place) as analysts:
            ids = analysts.database.execute("SELECT id FROM current.offices ORDER BY id")
            assert (GONE,) not in ids.fetchall()


def _content(session: Session) -> dict[str, set[tuple[object, ...]]]:
    with session.work.writing() as writer:
        where = ("history.offices", "history.offices__tags", "history.events")
        without = "EXCLUDE (_page, _row, _run, _digest)"
        return {
            table: set(
                writer.execute(
                    f"SELECT * {'' if '__' in table else without} FROM {table} "
                ).fetchall()
            )
            for table in where
        }


def test_it_is_erased_from_pages_that_are_not_loaded(begun: Begun) -> None:
    def counted(session: Session) -> None:
        for number in range(1, 3):
            night(session, number, [STAYS], [STAYS, GONE])

    root = begun(counted)
    with home(root) as session:
        assert list(traces.files(root, GONE))
        done = erased(session)
        assert (done.records, done.pages) == (2, 2)
        assert (done.left, list(traces.files(root, GONE))) == ((), [])
        assert run.verify(session, lambda _news: None).faults == ()


def test_a_verification_accepts_it_and_says_so(begun: Begun) -> None:
    with home(begun(nights)) as session:
        erased(session)
        report = run.verify(session, lambda _news: None)
        acts = {(each.by, each.reason) for each in redactions.every(session.ledger)}

    assert report.faults == ()
    assert acts == {("ann", "request 7")}
    assert "6 records were erased from their pages on 2026-11-21 by ann (request 7)" in report.words


def test_erasing_it_again_finds_nothing_and_nights_go_on(begun: Begun) -> None:
    with home(begun(nights)) as session:
        erased(session)
        assert erased(session).records == 0
        night(session, 4, [STAYS])
        newest = versions.latest(session.ledger)
        assert newest is not None
        assert newest.version >= 5
        assert run.verify(session, lambda _news: None).faults == ()


def test_a_base_snapshot_loses_it_too(begun: Begun) -> None:
    """Of nights whose pages are gone, and with all that was made of them since."""
    root = begun(nights)
    with home(begun(without)) as session:
        expected = _content(session)
    with home(root) as session:
        run.retain(session, 1, "ann")
        assert traces.says(next((root / "archive" / "base").iterdir()), GONE)

        done = erased(session)

        assert (done.left, list(traces.files(root, GONE))) == ((), [])
        assert _content(session) == expected
        assert run.verify(session, lambda _news: None).faults == ()
        night(session, 4, [STAYS])
        assert [file.name for file in (root / "archive" / "base").iterdir()] == [
            "base.000002.duckdb"
        ]


@pytest.mark.parametrize(
    ("sought", "act", "words"),
    [
        (Sought("7"), ACT, "stands in everything"),
        (Sought(GONE), Act("ann", SYSTEM.now(), f"{GONE} asked"), "the reason names"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    tmp_path: Path, sought: Sought, act: Act, words: str
) -> None:
    with home(tmp_path / "home") as session:
        night(session, 1, [GONE])
        before = everything(session)
        with pytest.raises(ConfigurationError, match=words):
            run.erase(session, sought, act, silent)
        assert everything(session) == before


def test_it_is_erased_though_of_the_fewer_rows_left_too_many_were_gone(tmp_path: Path) -> None:
    """Two of twenty may be gone in a night, of nineteen only one; the night stays folded."""
    address = "http://127.0.0.1:9"
    own = Settings(
        home=tmp_path / "home", base_url=address, auth_url=address, audience="a", client_id="c"
    )
    with run.open(own) as session:
        lived = Nights(session)
        rows = [json.dumps({"id": f"partner-{row:06}"}) for row in range(20)]
        lived.read(f"[{', '.join(rows)}]")
        lived.read(f"[{', '.join(rows[2:])}]")
        assert isinstance(lived.fold(), Fold)

        assert erased(session).left == ()

        again(session)
        with session.work.writing() as writer:
            counts = "SELECT count(*), count(missing_since) FROM current.usage"
            assert writer.execute(counts).fetchall() == [(19, 2)]


def test_what_killed_runs_left_is_searched_too(begun: Begun) -> None:
    root = begun(nights)
    with home(root) as session:
        page = next((root / "archive" / "pages").rglob("*.zst")).read_bytes()
        (root / "archive" / "pages" / ".0123.part").write_bytes(page)
        (root / "archive" / "base").mkdir()
        moved = root / "work" / "moved-away-by-a-person.duckdb"
        left = ("work/rebuild.duckdb", "work/base.part.duckdb", "archive/base/base.000001.duckdb")
        for file in (*(root / name for name in left), moved):
            file.write_text(GONE)

        done = erased(session)

    assert done.left == ("work/moved-away-by-a-person.duckdb",)
    assert list(traces.files(root, GONE)) == [moved]
    assert not list((root / "archive").rglob("*.part"))

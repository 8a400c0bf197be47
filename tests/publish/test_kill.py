from contextlib import closing
from pathlib import Path
from subprocess import run
from sys import executable

import pytest

from pipelines.publish.build import build
from tests.publish.homes import Reading, Stores, read, usage

BEFORE = sorted(f"u{number}" for number in range(1, 11))
AFTER = sorted([*BEFORE, "u11"])
HISTORY = "SELECT _key, amount, _valid_from, _valid_to FROM history.usage ORDER BY ALL"


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_build_that_is_killed_at_any_durable_step_is_done_by_the_next_one(
    published: Stores, capsys: pytest.CaptureFixture[str], every: int
) -> None:
    read(published, Reading(usage(*range(1, 12), amount="2.20")))
    published.metadata.close()
    home = published.settings.home
    found = run(
        [executable, "-m", "tests.publish.killed", str(home), str(every)],
        capture_output=True,
        text=True,
        check=True,
    )
    tried = range(every, int(found.stdout) + 1, every)
    with capsys.disabled():
        print(f" {len(tried) - 1} kills", end="")  # noqa: T201 - their number is a result
    assert tried.stop > 11
    expected = None
    for k in tried:
        killed = Stores.open(Path(f"{home}-{k}"))
        assert killed.keys() in (BEFORE, AFTER)  # what analysts see after the kill
        build(killed)
        with closing(killed.warehouse.open()) as db:
            history = db.execute(HISTORY).fetchall()
            loads = db.execute("SELECT count(*) FROM meta.loads").fetchall()
        expected = expected or history
        assert (history, loads) == (expected, [(2,)])
        assert sorted(row[0] for row in history if row[3] is None) == AFTER
        _require_tidy(killed)
        killed.metadata.close()


def _require_tidy(stores: Stores) -> None:
    files = sorted(file.name for file in stores.settings.places.versions.iterdir())
    statuses = stores.versions()
    rows = sorted(number for number, status in statuses.items() if status == "published")
    assert files == [f"v{number:08}.duckdb" for number in rows]
    assert set(statuses.values()) <= {"published", "deleted"}

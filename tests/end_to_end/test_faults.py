"""Every fault of the sandbox alone, and what a run comes to: right and complete, or a clear error.

Which faults there are the sandbox itself is asked, so that a new one is tried without a word here.
"""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pipelines.clock import SYSTEM, Clock
from pipelines.errors import Postponed
from sandbox.faults.catalogue import CATALOGUE
from tests.end_to_end import stand as stands
from tests.end_to_end.stand import Stand, Trouble
from tests.virtual import Haste

pytestmark = pytest.mark.trial


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stands.standing(tmp_path_factory.mktemp("stand")) as standing:
        yield standing


# Where the wire breaks now and then, a second try helps: also on every third request.
OFTEN = [(name, 1) for name in CATALOGUE]
NOW_AND_THEN = [(name, 3) for name, kind in CATALOGUE.items() if kind.stage in {"wire", "arrival"}]
# Lies about where a list ends, which the chain sees through.
NOW_AND_THEN += [(name, 3) for name in ("empty-page", "false-end", "jump", "no-next-offset")]


@pytest.mark.parametrize(("name", "every"), OFTEN + NOW_AND_THEN)
def test_a_fault_ends_in_all_that_is_true_or_in_an_error(
    stand: Stand, tmp_path: Path, name: str, every: int
) -> None:
    found = next(each for each in stand.catalogue if each.name == name)
    outcome = stand.befall([Trouble(name, every, found.stage)], tmp_path / "home")
    assert outcome.exit_code == 0 or every == 1


def test_of_a_key_twice_in_an_answer_the_record_that_is_there_stays(
    stand: Stand, tmp_path: Path
) -> None:
    """The others are set aside; where they are more than 2 % of the keys, the list is held."""
    outcome = stand.befall([Trouble("key-twice", stage="page")], tmp_path / "home")
    folds = {each.stream: each.fold for each in outcome.streams if each.fold}
    errors = {each.stream: str(each.error) for each in outcome.streams if each.error}
    assert set(folds) == {"partners"}
    assert folds["partners"].conflicts == folds["partners"].quarantined == 1
    assert "billing" in errors
    home = tmp_path / "home"
    assert stands.records(home, "partners") == stands.records(stand.home, "partners")
    assert stands.published(home).aside == {"partners": 1, "billing": 0}


def test_no_request_is_sent_before_a_retry_after_is_over(tmp_path: Path) -> None:
    """By the system's clock and the sandbox's own, it takes the seconds that it takes.

    One stream: what is under way when another's 429 is sent counts as early, and is nobody's fault.
    """
    with stands.standing(tmp_path, "--rate=1000", *stands.SMALL[1:]) as stand:
        for name, after in (("storm-seconds", 0), ("storm-date", 1)):
            stand.control("POST", "/faults", {"name": name, "after": after, "times": 1, "value": 1})
        outcome = stands.synced(stand.home, SYSTEM, "billing")
        counted = stand.control("GET", "/statistics")
    assert outcome.exit_code == 0
    assert counted["early_retries"] == 0
    assert sum(answers.get("429", 0) for answers in counted["requests"].values()) == 2


def test_an_hour_is_not_waited_and_nobody_sends_before_it_is_over(
    stand: Stand, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(stand.home, home, symlinks=True)
    stand.control("POST", "/reset")
    storm = {"name": "storm-seconds", "path": "/v2/billing", "after": 1, "times": 1, "value": 3600}
    stand.control("POST", "/faults", storm)
    told = stands.synced(home, Haste().clock, "billing")
    asked = stand.control("GET", "/statistics")["requests"]["/v2/billing"]
    early = stands.synced(home, Haste().clock, "billing")
    asked_early = stand.control("GET", "/statistics")["requests"]["/v2/billing"]
    hour = timedelta(hours=1, seconds=1)
    later = Clock(
        lambda: SYSTEM.now() + hour, lambda: SYSTEM.monotonic() + hour.total_seconds(), SYSTEM.sleep
    )
    over = stands.synced(home, later, "billing")

    for outcome in (told, early):
        assert [type(each.error) for each in outcome.streams] == [Postponed]
        assert "; run ends resumable at " in str(outcome.streams[0].error)
        assert outcome.exit_code == 1
    assert asked == asked_early == {"200": 1, "429": 1}
    assert over.exit_code == 0
    assert stands.published(home).of("billing") == stand.good.of("billing")

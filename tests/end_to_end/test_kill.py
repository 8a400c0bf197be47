"""A sync killed with -9 half-way ends, with the next run, as if it was never killed.

A few times; `make kills` tries each at 50 random moments.
"""

import pytest

from tests.end_to_end import killed_folds, killed_keeping
from tests.end_to_end.killing import kills

pytestmark = pytest.mark.trial


def test_a_killed_sync_is_read_on_and_ends_with_the_same_tables() -> None:
    (killed,) = kills(1, seed=5)
    assert killed.same
    assert killed.again == frozenset()


def test_a_killed_fold_or_publication_leaves_one_whole_night() -> None:
    *killed, last = killed_folds.kills(4, seed=7)
    assert [each for each in killed if not each.whole] == []
    assert (last.night, last.whole) == (killed_folds.NIGHTS, True)


@pytest.mark.parametrize("verb", killed_keeping.VERBS)
def test_a_killed_replay_retention_or_erasure_is_finished_by_the_next(verb: str) -> None:
    killed = list(killed_keeping.kills(verb, 3, seed=11))
    assert len(killed) == 3
    assert [each for each in killed if each.harm] == []

"""A sync killed with -9 half-way ends, with the next run, as if it was never killed.

Once; `make kills` tries it at 50 random moments.
"""

import pytest

from tests.end_to_end.killing import kills

pytestmark = pytest.mark.trial


def test_a_killed_sync_is_read_on_and_ends_with_the_same_tables() -> None:
    (killed,) = kills(1, seed=5)
    assert killed.same
    assert killed.again == frozenset()

"""A sync killed with -9 at a random moment ends, with the next run, as if it was never killed.

A few; `make kills` tries 50.
"""

from tests.end_to_end.killing import kills


def test_a_killed_sync_is_read_on_and_ends_with_the_same_tables() -> None:
    found = list(kills(3, seed=7))
    assert [each.same for each in found] == [True] * 3
    assert [each.again for each in found] == [frozenset()] * 3
    assert any(each.linked for each in found)

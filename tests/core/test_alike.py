"""The same message about many lists is said once; different ones stay apart."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.core.alike import About, said_once

NAMES = st.sampled_from(["a", "acme", "acme-2", "b", "north", "usage"])
TEXTS = st.sampled_from(["`{c}` is late.", "usage of {c}: 3 rows", "It failed.", "a is a letter"])


def told(*abouts: About) -> list[tuple[str, str]]:
    return [(places, about.message) for places, about in said_once(abouts)]


def failed(connection: str, stream: str, text: str = "The secret of `{}` is wrong.") -> About:
    return About(connection, stream, text.format(connection), f"partner-sync check -c {connection}")


def test_one_cause_of_many_lists_is_one_message() -> None:
    message = "The secret of `north` is wrong."
    lists = [failed("north", stream) for stream in ("usage", "billing")]
    assert told(*lists) == [("north: usage, billing (as for north/usage)", message)]
    assert told(lists[0]) == [("north/usage", message)]
    names = ("south", "east", "west", "n-e", "s-e", "s-w")
    others = [failed(name, stream) for name in names for stream in ("usage", "billing")]
    places = "7 connections, north, south, east, west, n-e and 2 more: usage, billing"
    assert told(*lists, *others) == [(f"{places} (as for north/usage)", message)]
    assert told(About("", "", "Full.", ""), About("", "", "Full.", "")) == [("", "Full.")]
    late = [About("a", "usage", "Late.", ""), About("b", "bills", "Late.", "")]
    assert told(*late) == [("a/usage, b/bills", "Late.")]  # not b/usage


def test_messages_that_differ_in_more_than_names_stay_apart() -> None:
    one, two = (failed("a", "usage", f"{count} rows of a") for count in (1, 2))
    other = failed("b", "usage", "1 rows of b")
    assert told(one, two, other) == [
        ("a, b: usage (as for a/usage)", "1 rows of a"),
        ("a/usage", "2 rows of a"),
    ]
    assert len(told(failed("a", "", "a cat"), failed("b", "", "a cat"))) == 2  # another sentence
    assert len(told(failed("1", "", "1 of 9 rows"), failed("2", "", "2 of 9 rows"))) == 2


@given(st.lists(st.builds(lambda c, s, t: About(c, s, t.format(c=c), ""), NAMES, NAMES, TEXTS)))
def test_every_message_has_one_that_says_it(abouts: list[About]) -> None:
    said = said_once(abouts)
    assert len(said) == len({each.without_names() for each in abouts})
    for each in abouts:
        (_places,) = [places for places, one in said if one.without_names() == each.without_names()]

"""The interface watch in Dagster: what its checks say, and a chain whose streams are foreign."""

from datetime import UTC, datetime

import dagster as dg
import pytest

from assets import interface
from assets.archive import key
from pipelines.state.descriptions import Difference, SeenChange

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def change(meaning: str) -> SeenChange:
    return SeenChange("default", "usage", "/v2/usage", "field a", "string", "", meaning, NOW)


CHANGES = [
    ([], True, [], []),
    (["safe", "opportunity"], True, [], ["safe", "opportunity"]),
    (["breaking", "safe"], False, ["breaking"], ["safe"]),
]


@pytest.mark.parametrize(("meanings", "passed", "breaking", "others"), CHANGES)
def test_only_what_breaks_fails_and_it_warns(
    meanings: list[str],
    passed: bool,  # noqa: FBT001
    breaking: list[str],
    others: list[str],
) -> None:
    result = interface.unchanged(key("usage"), [change(each) for each in meanings])
    assert result.passed is passed
    assert result.severity is dg.AssetCheckSeverity.WARN
    for name, expected in (("breaking", breaking), ("others", others)):
        shown = result.metadata[name].value
        assert shown == [f"{each}: /v2/usage field a: string -> nothing" for each in expected]


def test_a_difference_fails_and_is_shown() -> None:
    difference = Difference("default", "usage", "a", "never came", "string", "", "m.json", NOW)
    assert interface.as_described(key("usage"), []).passed
    result = interface.as_described(key("usage"), [difference])
    assert not result.passed
    assert result.metadata["differences"].value == ["a never came (described: string)"]

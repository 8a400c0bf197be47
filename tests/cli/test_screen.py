"""What is printed at the end: of several connections, each list says whose it is."""

from pathlib import Path

import pytest

from pipelines.cli import screen
from pipelines.errors import Forbidden
from pipelines.run import Outcome, StreamOutcome
from pipelines.state.runs import Effort


@pytest.mark.parametrize(
    ("connections", "names"), [(["a"], ["usage"]), (["a", "b"], ["a/usage", "b/usage"])]
)
def test_of_several_connections_each_list_says_whose_it_is(
    connections: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    error = Forbidden("403 on /v2/usage: scope missing")
    streams = [StreamOutcome(each, "usage", None, None, Effort(), error) for each in connections]
    screen.closing(Outcome(tuple(streams), None), Path("link"))
    said = capsys.readouterr().err.splitlines()
    assert said[:-1] == [f"{name} {error}" for name in names]

"""The sandbox's page lists what can be done to it: options, routes, faults, planted errors."""

import re
from pathlib import Path

import pytest

from sandbox.data.plant import COUNTS
from sandbox.faults.catalogue import CATALOGUE
from tests.sandbox.running import started

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
OPTIONS = ["--tls", "--fault", "--change", "--order", "--plant", "--no-control"]
FAULTS = PAGE.partition("## Faults")[2].partition("## Planted")[0]
ROWS = dict(re.findall(r"\| `([a-z0-9-]+)` \| (.+?) \|", FAULTS))


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_fault_is_described_in_its_own_words(name: str) -> None:
    assert ROWS[name].startswith(CATALOGUE[name].meaning)


def test_no_fault_is_described_that_there_is_not() -> None:
    assert set(ROWS) == set(CATALOGUE)


@pytest.mark.parametrize("name", [*COUNTS, *OPTIONS])
def test_planted_errors_and_options_are_named(name: str) -> None:
    assert f"`{name}" in PAGE


def test_every_control_route_is_there() -> None:
    paths = set(re.findall(r"`(?:GET`, `)?[A-Z]+ (/[a-z/A-Z]+)`", PAGE))
    with started("--usage", "1") as running:
        statuses = {path: running.control("OPTIONS", path).status_code for path in paths}
    assert len(paths) == 12
    assert set(statuses.values()) == {405}, statuses

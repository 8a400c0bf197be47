"""docs/sandbox.md lists what a tester can do: options, routes, faults, planted errors."""

import re
from pathlib import Path

import pytest

from sandbox.data.plant import COUNTS
from sandbox.faults.catalogue import CATALOGUE
from tests.sandbox.running import Running

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text(encoding="utf-8")
OPTIONS = [
    "--tls",
    "--fault",
    "--change",
    "--order",
    "--plant",
    "--awkward",
    "--field-names",
    "--no-control",
]
FAULTS = PAGE.partition("## Faults")[2].partition("## Planted")[0]
ROWS = dict(re.findall(r"\| `([a-z0-9-]+)` \| (.+?) \|", FAULTS))


def test_every_fault_is_described_in_its_own_words_and_no_other() -> None:
    assert set(ROWS) == set(CATALOGUE)
    for name, kind in CATALOGUE.items():
        assert ROWS[name].startswith(kind.meaning)


@pytest.mark.parametrize("name", [*COUNTS, *OPTIONS])
def test_planted_errors_and_options_are_named(name: str) -> None:
    assert f"`{name}" in PAGE


def test_every_control_route_exists(sandbox: Running) -> None:
    paths = set(re.findall(r"`(?:GET`, `)?[A-Z]+ (/[a-z/A-Z]+)`", PAGE))
    statuses = {path: sandbox.control("OPTIONS", path).status_code for path in paths}
    assert len(paths) == 12
    assert set(statuses.values()) == {405}, statuses

"""Docs that list something list all of it: settings, verbs, floors, targets, exit codes."""

from pathlib import Path

import pytest
from typer.main import get_command

from pipelines import cli
from pipelines.cli.app import app
from pipelines.settings import PREFIX, Settings
from pipelines.streams import STREAMS

ROOT = Path(__file__).parents[2]
DOCS = {file.name: file.read_text() for file in (ROOT / "docs").glob("*.md")}
EVERYTHING = " ".join(DOCS.values()) + (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "pipelines").glob("*/*.py"))


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_in_docs(name: str) -> None:
    assert f"`{PREFIX}{name.upper()}`" in DOCS["settings.md"]


def test_every_verb_is_in_docs() -> None:
    verbs = list(getattr(get_command(app), "commands"))  # noqa: B009 click is typer's own now
    assert sorted(verbs) == ["check", "demo", "sandbox", "sync", "version"]
    assert cli.__doc__
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert not [verb for verb in verbs if verb not in EVERYTHING + changes]


def test_every_link_of_the_chain_is_in_the_architecture() -> None:
    links = [file for file in PAGES if file.parent.name == "warehouse" and file.stem[0] != "_"]
    shown = DOCS["architecture.md"]
    missing = [file.stem for file in links if f"warehouse/{file.name}" not in shown]
    assert missing == ["database", "frames"]  # no links of the chain: what it stands on


def test_every_stream_is_documented_for_its_reader() -> None:
    assert [stream.name for stream in STREAMS] == ["billing", "partners", "usage"]
    assert all(stream.description.endswith(".") for stream in STREAMS)

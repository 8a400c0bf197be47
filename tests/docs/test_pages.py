"""Docs that list something list all of it: settings, verbs, floors, targets, exit codes."""

import importlib
import re
from pathlib import Path

import pytest
from typer.main import get_command

from pipelines.cli import app as program
from pipelines.cli.app import app
from pipelines.reconciliation import RULES, Rule
from pipelines.reports import REPORTS, Report
from pipelines.settings import PREFIX, Settings
from pipelines.streams import STREAMS
from pipelines.streams.base import Stream

ROOT = Path(__file__).parents[2]
DOCS = {file.name: file.read_text() for file in (ROOT / "docs").glob("*.md")}
EVERYTHING = " ".join(DOCS.values()) + (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "pipelines").glob("*/*.py"))


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_is_in_docs(name: str) -> None:
    assert f"`{PREFIX}{name.upper()}`" in DOCS["settings.md"]


def test_every_verb_is_in_docs() -> None:
    verbs = list(getattr(get_command(app), "commands"))  # noqa: B009 click is typer's own now
    assert len(verbs) >= 5
    assert [verb for verb in verbs if f"`partner-sync {verb}" not in EVERYTHING] == []


def test_every_link_of_the_chain_is_in_the_architecture() -> None:
    links = [file for file in PAGES if file.parent.name == "warehouse" and file.stem[0] != "_"]
    shown = DOCS["architecture.md"]
    missing = [file.stem for file in links if f"warehouse/{file.name}" not in shown]
    assert missing == ["database", "frames", "meta"]  # no links of the chain: what it stands on


def test_every_picture_is_on_a_page_and_small() -> None:
    shown = re.findall(r"!\[[^]]+\]\((screenshots/[^)]+)\)", "".join(DOCS.values()))
    files = {f"screenshots/{file.name}": file for file in (ROOT / "docs/screenshots").iterdir()}
    assert sorted(shown) == sorted(files)
    assert [name for name, file in files.items() if file.stat().st_size > 200_000] == []


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.name)
def test_every_stream_says_what_it_is(stream: Stream) -> None:
    assert stream.path in stream_charter(stream)
    assert stream.description.endswith(".")


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_every_report_and_its_question_are_in_docs(report: Report) -> None:
    (row,) = [line for line in DOCS["reports.md"].splitlines() if f"`{report.table}`" in line]
    assert row.endswith(f"| {report.question} |")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_is_in_docs(rule: Rule) -> None:
    (row,) = [line for line in DOCS["reconciliation.md"].splitlines() if f"`{rule.name}`" in line]
    assert rule.severity is None or row.endswith(f"| {rule.severity} |")


def stream_charter(stream: Stream) -> str:
    """Return the charter of the file that declares a stream."""
    return importlib.import_module(f"pipelines.streams.{stream.name}").__doc__ or ""


def test_every_exit_code_has_its_heading_in_the_runbook() -> None:
    charter = (program.__doc__ or "").split("\n\n")[1].replace("\n", " ")
    told = re.findall(r"(?:^|; )(\d+) ", charter)
    assert told == ["0", "1", "2", "3", "130"]
    headings = re.findall(r"^### Exit code (\d+): \S", DOCS["runbook.md"], re.MULTILINE)
    assert headings == told

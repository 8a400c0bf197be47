"""Docs that repeat the code are compared with it; links between pages are followed."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from pipelines.checks.catalogue import CHECKS
from pipelines.config.connections import Connection
from pipelines.config.settings import Settings, Stream
from pipelines.config.values import PREFIX
from pipelines.load.findings import TEXTS
from sandbox import clients, keys

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
HEADERS = sorted([*ROOT.glob("pipelines/**/__init__.py"), *ROOT.glob("assets/**/__init__.py")])
# `redate_runs` and `redate_scans` in `pipelines/metadata/runs.py`
IN_FILE = re.compile(r"((?:`[\w.]+`(?:, | and )?)+) in `([\w/]+\.(?:py|sql))`")
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def line(name: str, field: dict[str, Any]) -> str:
    """Return the line of docs/settings.md for a setting."""
    default = field.get("default", "required")
    text = default if isinstance(default, str) else json.dumps(default)
    is_empty = default in (None, {}, [])
    shown = text if text == "required" else "" if is_empty else f"`{text}`"
    return f"| `{name}` | {shown} | {field['description']} |"


@pytest.mark.parametrize("model", [Settings, Connection, Stream])
def test_the_settings_page_has_every_setting(model: type) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    fields = TypeAdapter(model).json_schema(mode="serialization")["properties"]
    lines = [line(name, field) for name, field in fields.items() if "description" in field]
    assert len(lines) > 5
    assert [each for each in lines if each not in page.splitlines()] == []
    assert f"`{PREFIX}KEEP_VERSIONS`" in page


def test_the_page_of_findings_has_every_code() -> None:
    page = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    codes = {check.code for check in CHECKS} | TEXTS.keys()
    assert {code for code in codes if f"| `{code}` |" not in page} == set()


def test_the_sandbox_page_has_every_field_of_a_clients_file() -> None:
    page = (ROOT / "docs" / "sandbox.md").read_text(encoding="utf-8")
    for kind, fields in (("clients", clients.FIELDS), ("keys", keys.FIELDS)):
        table = page.partition(f"| `[[{kind}]]` |")[2].partition("\n\n")[0]
        first_column = " ".join(re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE))
        assert set(re.findall(r"`(\w+)`", first_column)) == fields


def test_the_tests_that_the_page_of_failures_names_exist() -> None:
    page = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/\S+\.py)::(\w+)` \|$", page, re.MULTILINE)
    sections = page.partition("## Situations")[2].split("\n### ")[1:]
    rows = sum(len(re.findall(r"^\| ", each, re.MULTILINE)) - 1 for each in sections)
    assert len(named) == rows > 50
    missing = [f"{file}::{name}" for file, name in named if name not in functions(ROOT / file)]
    assert missing == []


def functions(file: Path) -> set[str]:
    """Return the names of the functions of a file, which is not imported."""
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name for each in tree.body if isinstance(each, kinds)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages(page: Path) -> None:
    targets = [found[1] for found in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_map_of_the_code_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:pipelines|assets)/[\w/]+\.(?:py|sql))`", text)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_what_the_map_of_the_code_names_is_in_its_file() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = []
    for found in IN_FILE.finditer(text):
        named += [
            (name, found[2]) for name in re.findall(r"[\w.]+", found[1].replace(" and ", " "))
        ]
    assert len(named) > 50
    assert [each for each in named if not is_defined(*each)] == []


def is_defined(name: str, file: str) -> bool:
    """Return whether a file of a name, wherever it is, defines a function, class or column."""
    last = name.rpartition(".")[2]
    definition = re.compile(rf"(def|class|AS) {last}\b|^ *{last}\b.* = ", re.MULTILINE)
    for folder in ("pipelines", "assets"):
        for found in (ROOT / folder).rglob(Path(file).name):
            is_meant = found.as_posix().endswith(f"/{file}")
            if is_meant and definition.search(found.read_text(encoding="utf-8")):
                return True
    return False


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.parent.name)
def test_a_package_names_modules_that_it_has(header: Path) -> None:
    named = re.findall(r"`(\w+\.py)`", ast.get_docstring(ast.parse(header.read_text())) or "")
    assert [name for name in named if not (header.parent / name).is_file()] == []

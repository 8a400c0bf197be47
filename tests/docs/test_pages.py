"""Docs that repeat the code are compared with it; links between pages are followed."""

import re
from pathlib import Path

import pytest
from pydantic.fields import FieldInfo

from pipelines.config.connections import Connection
from pipelines.config.settings import Settings
from pipelines.config.streams import StreamSettings
from pipelines.config.values import PREFIX

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def described(fields: dict[str, FieldInfo], prefix: str = "") -> list[str]:
    """Return the line of docs/settings.md for each setting."""
    return [
        f"| `{prefix}{name}` | {shown(field)} | {field.description} |"
        for name, field in fields.items()
        if field.description
    ]


def shown(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    empty = field.default is None or field.default in ((), {})
    is_flag = isinstance(field.default, bool)
    return "" if empty else f"`{str(field.default).lower() if is_flag else field.default}`"


@pytest.mark.parametrize("model", [Settings, Connection, StreamSettings])
def test_the_settings_page_has_every_setting(
    model: type[Settings | Connection | StreamSettings],
) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in described(model.model_fields) if line not in page] == []


def test_the_settings_page_names_the_variable() -> None:
    assert f"`{PREFIX}KEEP_VERSIONS`" in (ROOT / "docs" / "settings.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages(page: Path) -> None:
    targets = [found[1] for found in LINK.finditer(page.read_text(encoding="utf-8"))]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_map_of_the_code_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:pipelines|assets)/[\w/]+\.py)`", text)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []

"""Shelves: each file one member, found by listing."""

import importlib
import itertools
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines import shelf

NUMBERS = itertools.count()


@dataclass(frozen=True)
class Tool:
    name: str


class Package:
    """A package on disk with the files that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"shelf_of_a_test_{next(NUMBERS)}"
        self.folder = folder / self.name
        self.folder.mkdir()
        self.add("__init__")
        self.add("base", f"from {__name__} import Tool\n")

    def add(self, module: str, text: str = "") -> None:
        (self.folder / f"{module}.py").write_text(text)

    def tool(self, module: str, *names: str) -> None:
        """Add a file that declares some tools."""
        lines = [f"from {__name__} import Tool"]
        lines += [f"TOOL_{number} = Tool({name!r})" for number, name in enumerate(names)]
        self.add(module, "\n".join(lines) + "\n")

    def members(self) -> list[str]:
        importlib.invalidate_caches()
        return [tool.name for tool in shelf.members(self.name, [str(self.folder)], Tool)]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    monkeypatch.syspath_prepend(tmp_path)
    return Package(tmp_path)


def test_members_are_found_in_the_order_of_their_files(package: Package) -> None:
    for module in ("saw", "axe", "drill"):
        package.tool(module, f"the {module}")
    (package.folder / "notes.txt").write_text("no member")
    assert package.members() == ["the axe", "the drill", "the saw"]


def test_a_new_member_is_one_new_file(package: Package) -> None:
    package.tool("axe", "axe")
    assert package.members() == ["axe"]
    package.tool("saw", "saw")
    assert package.members() == ["axe", "saw"]


def test_an_empty_shelf(package: Package) -> None:
    assert package.members() == []


@pytest.mark.parametrize(("names", "count"), [((), 0), (("saw", "axe"), 2)])
def test_a_file_declares_exactly_one(package: Package, names: tuple[str, ...], count: int) -> None:
    package.tool("axe", "axe")
    package.tool("odd", *names)
    with pytest.raises(TypeError, match=rf"{package.name}\.odd declares {count} Tool, not one"):
        package.members()


def test_a_broken_file_keeps_its_own_error(package: Package) -> None:
    package.add("odd", "1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        package.members()

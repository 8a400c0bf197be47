"""The house's limits, on the worst file and not on the median (docs/architecture.md)."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipelines", "assets", "sandbox", "benchmarks")
FILE_LINES, FUNCTION_LINES, PARAMETERS, NESTING, MOCK_LINES = 300, 40, 5, 3, 5
VAGUE = {"utils", "helpers", "common", "manager", "processor", "misc", "base_utils"}
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.Match)
# What draws takes a second to load, measured (docs/decisions.md); only `report` waits for it.
DEFERRED = {"pipelines/run/reporting.py"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def tracked(*folders: str) -> list[Path]:
    """Return the Python files below the folders."""
    return [file for folder in folders for file in sorted((ROOT / folder).rglob("*.py"))]


def named(files: list[Path]) -> list[str]:
    return [str(file.relative_to(ROOT)) for file in files]


OURS, TESTS = named(tracked(*PACKAGES)), named(tracked("tests"))


def functions(file: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse((ROOT / file).read_text())):
        if isinstance(node, FUNCTIONS):
            yield node


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a body, its docstring apart."""
    first = function.body[1] if ast.get_docstring(function) and function.body[1:] else None
    start = (first or function.body[0]).lineno
    return (function.end_lineno or start) - start + 1


def depth(node: ast.AST) -> int:
    """Return how deep blocks are nested; `elif` and comprehensions are no depth."""
    inner = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (*FUNCTIONS, ast.Lambda)):
            continue
        chained = isinstance(node, ast.If) and node.orelse == [child]
        inner = max(inner, depth(child) + (isinstance(child, BLOCKS) and not chained))
    return inner


@pytest.mark.parametrize("file", OURS + TESTS)
def test_a_file_opens_with_its_charter_and_is_short(file: str) -> None:
    text = (ROOT / file).read_text()
    charter = ast.get_docstring(ast.parse(text))
    assert charter, f"{file} has no charter"
    assert text.count("\n") <= FILE_LINES


@pytest.mark.parametrize("file", OURS + TESTS)
def test_functions_are_short_flat_and_take_few_parameters(file: str) -> None:
    for function in functions(file):
        where = f"{file}:{function.lineno} {function.name}"
        assert body_lines(function) <= FUNCTION_LINES, where
        assert depth(function) <= NESTING, where
        decorated = any("command" in ast.unparse(each) for each in function.decorator_list)
        excused = file == "pipelines/settings/model.py"  # a signature of pydantic-settings'
        arguments = function.args
        count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
        count -= bool(arguments.args) and arguments.args[0].arg in {"self", "cls"}
        assert count <= PARAMETERS or decorated or excused, where


@pytest.mark.parametrize("file", OURS + TESTS)
def test_no_import_hides_in_a_function(file: str) -> None:
    for function in functions(file) if file not in DEFERRED else []:
        hidden = [
            node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        assert not hidden, f"{file}:{function.lineno}"


def test_names_say_what_is_inside() -> None:
    assert not {file for file in OURS + TESTS if Path(file).stem in VAGUE}


def test_folders_are_one_level_deep_inside_a_package() -> None:
    assert not [file for file in OURS if len(Path(file).parts) > 3]


def test_tests_use_real_parts() -> None:
    mocks = re.compile(r"unittest\.mock|monkeypatch\.setattr|mocker|@patch|MagicMock")
    skips = re.compile(r"pytest\.(mark\.)?(skip|xfail)")
    others = [file for file in TESTS if "test_limits" not in file]
    lines = [line for file in others for line in (ROOT / file).read_text().splitlines()]
    assert len([line for line in lines if mocks.search(line)]) <= MOCK_LINES
    assert not [line for line in lines if skips.search(line)]


@pytest.mark.parametrize("file", [file for file in TESTS if "/test_" in file])
def test_every_test_asserts(file: str) -> None:
    for function in functions(file):
        if not function.name.startswith("test_"):
            continue
        told = ast.unparse(function)
        assert re.search(r"\bassert|pytest\.raises|pytest\.warns", told), f"{file} {function.name}"


def test_no_file_names_a_machine_or_a_registry() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    # Put together here, so that this file does not name them either.
    names = [host + ".org" for host in ("pypi", "files.pythonhosted", "registry.npmjs")]
    names += ["/" + "work/main", "/" + "root/", "/" + "home/"]
    found = [
        (file, name)
        for file in listed.stdout.split("\0")
        if file and (ROOT / file).is_file()
        for name in names
        if name in (ROOT / file).read_text(errors="replace")
    ]
    assert not found

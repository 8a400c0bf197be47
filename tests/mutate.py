"""Changes the code in small ways, and counts the changes that no test notices.

`make test-slow` runs it: SEED, MUTANTS and PACKAGES choose the changes. The tests of a package
alone must notice them. Each change is made in a copy of the tree. It is no test itself.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SECONDS = 240  # for the tests of a package; a change that makes them hang is noticed
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """One change: which node of a file, counted in the order of `ast.walk`."""

    file: Path
    node: int


def changed(node: ast.AST) -> bool:
    """Change a node in place; return whether it was one that can be changed."""
    if isinstance(node, ast.Compare):
        node.ops = [_swapped(each) for each in node.ops]
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        node.op = _swapped(node.op)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        node.id = NAMES[node.id]
    elif isinstance(node, ast.If):
        node.test = ast.Constant(value=False)
    else:
        return isinstance(node, ast.Constant) and _is_changed(node)
    return True


def _is_changed(constant: ast.Constant) -> bool:
    if isinstance(constant.value, bool):
        constant.value = not constant.value
    elif isinstance(constant.value, int):
        constant.value += 1
    else:
        return False
    return True


def _swapped(operator: ast.AST) -> Any:
    return SWAPPED.get(type(operator), type(operator))()


def mutants(package: str) -> Iterator[Mutant]:
    """Yield every change of a package."""
    for file in sorted((ROOT / "pipelines" / package).glob("*.py")):
        for number, node in enumerate(ast.walk(ast.parse(file.read_text("utf-8")))):
            if changed(node):
                yield Mutant(file.relative_to(ROOT), number)


def apply(mutant: Mutant, tree: Path) -> str:
    """Write a file of a copy of the tree with the change; return what was changed."""
    parsed = ast.parse((ROOT / mutant.file).read_text("utf-8"))
    node = list(ast.walk(parsed))[mutant.node]
    before, line = ast.unparse(node).partition("\n")[0], getattr(node, "lineno", 0)
    changed(node)
    after = ast.unparse(node).partition("\n")[0]
    (tree / mutant.file).write_text(ast.unparse(ast.fix_missing_locations(parsed)), "utf-8")
    return f"{mutant.file}:{line}: {before}  ->  {after}"


def is_noticed(package: str, tree: Path) -> bool:
    """Return whether the fast tests of a package fail."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n",
        "0",
        "-m",
        "not long and not slow",
        f"tests/{package}",
    ]
    try:
        with (tree / "out").open("wb") as out:
            run = subprocess.run(
                command, cwd=tree, stdout=out, stderr=out, timeout=SECONDS, check=False
            )
    except subprocess.TimeoutExpired:
        return True
    return run.returncode != 0


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(seed: int, number: int, packages: list[str]) -> None:
    """Try changes and print each that no test notices, and the share of those noticed."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".*"))
        for package in packages:
            chosen = list(mutants(package))
            Random(seed).shuffle(chosen)
            chosen, noticed = chosen[:number], 0
            for tried, mutant in enumerate(chosen, 1):
                what = apply(mutant, tree)
                found = is_noticed(package, tree)
                noticed += found
                shutil.copy(ROOT / mutant.file, tree / mutant.file)
                if not found:
                    say(f"not noticed: {what}")
                say(f"{package}: {noticed} of {tried} noticed")


if __name__ == "__main__":
    main(
        int(os.environ.get("SEED", "1")),
        int(os.environ.get("MUTANTS", "100")),
        os.environ.get("PACKAGES", "extract").split(),
    )

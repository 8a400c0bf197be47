"""Small changes of the code, each of which a test should notice. It is no test itself."""

import ast
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

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

    file: str
    node: int


class Changed(NamedTuple):
    """A file with one change.

    `lines` are those of the changed node, `around` those of the function that it stands in; both
    are empty for what runs when the module is imported.
    """

    text: str
    what: str
    lines: range
    around: range


def choose(tree: Path, package: str, seed: int, number: int) -> list[Mutant]:
    """Return some changes of a package; more of them begin with the same ones."""
    chosen = list(mutants(tree, package))
    Random(seed).shuffle(chosen)
    return chosen[:number]


def mutants(tree: Path, package: str) -> Iterator[Mutant]:
    """Yield every change of a package."""
    for file in sorted((tree / "pipelines").glob(f"**/{package}/*.py")):
        for number, node in enumerate(ast.walk(ast.parse(file.read_text("utf-8")))):
            if _is_changed(node):
                yield Mutant(file.relative_to(tree).as_posix(), number)


def make(mutant: Mutant, text: str) -> Changed:
    """Return the text of a file with the change."""
    parsed = ast.parse(text)
    nodes = list(ast.walk(parsed))
    node: Any = nodes[mutant.node]
    shown: Any = node.test if isinstance(node, ast.If) else node
    before = _first_line(node)
    lines = range(shown.lineno, shown.end_lineno + 1)
    around = _around(nodes, node)
    _is_changed(node)
    what = f"{mutant.file}:{shown.lineno}: {before}  ->  {_first_line(node)}"
    changed = ast.unparse(ast.fix_missing_locations(parsed))
    return Changed(changed, what, lines if around else around, around)


def _around(nodes: list[ast.AST], node: Any) -> range:
    """Return the lines of the outermost function that a node stands in."""
    for each in nodes:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and node in ast.walk(each):
            return range(each.lineno, (each.end_lineno or each.lineno) + 1)
    return range(0)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def _is_changed(node: ast.AST) -> bool:
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
        return isinstance(node, ast.Constant) and _is_other_constant(node)
    return True


def _is_other_constant(constant: ast.Constant) -> bool:
    if isinstance(constant.value, bool):
        constant.value = not constant.value
    elif isinstance(constant.value, int):
        constant.value += 1
    else:
        return False
    return True


def _swapped(operator: ast.AST) -> Any:
    return SWAPPED.get(type(operator), type(operator))()

"""Limits of the product's code: short modules and functions, and kinds that only their own room asks for.

`dp_service/releases/kinds` has one module for each kind of answer, `dp_service/queries/functions` one for each function
that a question may group by. Code elsewhere calls what all of them have in common.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.paths import ROOT

LINES_OF_A_MODULE = 450
LINES_OF_A_FUNCTION = 70
KINDS = "dp_service/releases/kinds/"
FUNCTIONS = "dp_service/queries/functions/"
# Mechanisms stand below kinds; `parameters.py` reads a message of one of several kinds.
MAY_ASK_FOR_A_KIND = (KINDS, "dp_service/mechanisms/", "pinot_connector/parameters.py")
MAY_ASK_FOR_A_FUNCTION = (
    FUNCTIONS,
    "dp_service/queries/render/expressions.py",
    "dp_service/queries/render/of_members.py",
)
# The engine is asked for the type of a quantile's column.
MAY_IMPORT_A_KIND = {
    ("dp_service/server/stream_assembler.py", "quantiles"),
}


@cache
def product() -> dict[str, ast.Module]:
    """Return the syntax tree of every module of the product, by path."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return {
        str(path.relative_to(ROOT)): ast.parse(path.read_text())
        for package in project["tool"]["importlinter"]["root_packages"]
        for path in sorted((ROOT / package).rglob("*.py"))
    }


def test_modules_and_functions_are_short() -> None:
    """A function's docstring is not counted."""
    long = [path for path in product() if len((ROOT / path).read_text().splitlines()) > LINES_OF_A_MODULE]
    for path, tree in product().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines(node) > LINES_OF_A_FUNCTION:
                long.append(f"{path}: {node.name}")
    assert [] == long


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has after its docstring."""
    first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_only_quantiles_and_distinct_values_take_elements_by_a_hash() -> None:
    """Counts and sums weight members instead: these modules make the salts of the two."""
    rooms = {f"dp_service/queries/{name}.py" for name in ("canonical", "contributions", "render/distinct")}
    nodes = [(path, node) for path, tree in product().items() for node in ast.walk(tree)]
    imports = [(path, node) for path, node in nodes if isinstance(node, ast.ImportFrom)]
    assert rooms == {path for path, node in imports if node.module == "dp_service.bounding.order"}


def test_only_the_kinds_room_asks_which_kind_a_release_has() -> None:
    """By isinstance, a pattern or a comparison of types."""
    names = {name for kind in kinds() for name in (kind, *classes(KINDS)[kind][1])}
    names -= {"Kind", "Unbounded", "Any"}
    assert {"Laplace", "KnownLap", "Quantiles", "TwoLooks"} <= names
    asking = [path for path, tree in product().items() if names & set(asked(tree))]
    assert [] == [path for path in asking if not path.startswith(MAY_ASK_FOR_A_KIND)]


def test_only_the_functions_room_asks_which_function_groups_a_question() -> None:
    """The renderer may: it writes the text of each."""
    names = set(classes(FUNCTIONS)) - {"Function", "OfColumn", "Meaning"}
    assert {"Funnel", "QueryFunnel"} <= names
    asking = [path for path, tree in product().items() if names & set(asked(tree))]
    assert [] == [path for path in asking if not path.startswith(MAY_ASK_FOR_A_FUNCTION)]


def test_only_the_kinds_room_imports_the_module_of_one_kind() -> None:
    """All other code imports what kinds have in common."""
    modules = {name: classes(KINDS)[name][0] for name in kinds() - {"Kind", "Unbounded"}}
    assert {"laplace", "gumbel", "bounded", "quantiles"} <= set(modules.values())
    package = KINDS.strip("/").replace("/", ".")
    names = {f"{package}.{module}": module for module in modules.values()}
    names |= {f"{package}.{name}": module for name, module in modules.items()}
    importing = {
        (path, names[name])
        for path, tree in product().items()
        if not path.startswith(KINDS)
        for name in imported(tree) & set(names)
    }
    assert importing <= MAY_IMPORT_A_KIND


def kinds() -> set[str]:
    """Return the names of `Kind` and of all classes derived from it."""
    found: set[str] = set()
    while more := {name for name, (_, bases) in classes(KINDS).items() if bases & (found | {"Kind"})} - found:
        found |= more
    return found


@cache
def classes(folder: str) -> dict[str, tuple[str, set[str]]]:
    """Return the public classes of a folder, with the module and the names of the bases of each."""
    return {
        each.name: (Path(path).stem, {name for base in each.bases for name in named(base)})
        for path, tree in product().items()
        if path.startswith(folder)
        for each in tree.body
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_")
    }


def named(node: ast.AST) -> Iterator[str]:
    """Yield the last name of everything that an expression names."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def asked(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the classes that code compares the type of a value with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            if node.func.id in ("isinstance", "issubclass"):
                yield from named(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield from named(node.cls)
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(isinstance(each, ast.Call) and ast.unparse(each.func) == "type" for each in sides):
                yield from (name for side in sides for name in named(side))


def imported(tree: ast.AST) -> set[str]:
    """Return every module that is imported, and every name with its module."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found

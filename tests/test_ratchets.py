"""What has become small stays small: budgets that only a commit with a reason raises.

Lines are those of each package's Python, Lua, SQL and HTML. An optional field is a field of a class whose type has
None. Which kind a release is of, only `dp_service/releases/kinds` asks, where each is one module.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

LINES = {
    "dp_service": 43_114,
    "budget_service": 24_452,
    "pinot_connector": 22_268,
    "gris_gateway": 3_747,
    "gris_console": 4_562,
    "gris_mcp": 2_752,
    "gris_broker": 577,
    "gris_postgres": 3_204,
    "gris_data": 8_726,
    "gris_audit": 1_181,
    "gris_lab": 5_993,
    "gris_cli": 11_812,
    "gris_serving": 4_329,
}
LINES_OF_TESTS = 152_615
OPTIONAL_FIELDS = 515
LINES_OF_A_MODULE = 420
LINES_OF_A_FUNCTION = 65
WORDS_OF_A_PAGE = 4_000
WORDS = 157_349
# Who imports the module of one kind, and why: what quantiles are chosen from has a type that is asked of engines; a
# sharpening makes its kind from the release before.
KNOWS_A_KIND = {
    ("dp_service/server/stream_assembler.py", "quantiles"),
    ("dp_service/releases/sharpening.py", "sharpened"),
    ("gris_data/value/publishing.py", "quantiles"),
}

KINDS = frozenset(
    [
        "KnownLap",
        "KnownGumb",
        "UnkLap",
        "UnkGumb",
        "BoundGauss",
        "TwoLooks",
        "Shift",
        "BoundMoments",
        "MomentsOfNames",
        "DrillDown",
        "RankedValues",
        "QuantilesOfNames",
        "Laplace",
        "Gumbel",
        "Bounded",
        "BoundedCounts",
        "OneLook",
        "NamesLook",
        "Sharpened",
        "Relative",
        "Moments",
        "WithTotals",
        "LookMore",
        "Quantiles",
        "Reached",
    ]
)
# Mechanisms are below kinds; `gris plan` compares mechanisms of its own, and makes no release. What a message chose is
# read in one module.
MAY_ASK = (
    "dp_service/releases/kinds",
    "dp_service/mechanisms",
    "gris_lab",
    "pinot_connector/parameters.py",
)

# Functions that questions group by: each is one module, and its text is written in one.
FUNCTIONS = (
    "dp_service/queries/functions/",
    "dp_service/queries/render/expressions.py",
    "dp_service/queries/render/of_members.py",
)


@cache
def _trees() -> dict[str, ast.Module]:
    """Return the syntax of every module of the product, by its path."""
    return {
        str(path.relative_to(REPOSITORY)): ast.parse(path.read_text())
        for package in LINES
        for path in sorted((REPOSITORY / package).rglob("*.py"))
    }


def _lines(folder: str, *suffixes: str) -> int:
    paths = (path for path in (REPOSITORY / folder).rglob("*") if path.suffix in suffixes)
    return sum(len(path.read_text().splitlines()) for path in paths)


def test_every_package_has_a_budget() -> None:
    """A new one too; and none is of a package that is gone."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert set(project["tool"]["importlinter"]["root_packages"]) == set(LINES)


@pytest.mark.parametrize("package", LINES)
def test_a_package_has_no_more_lines_than_its_budget(package: str) -> None:
    """More lines need a larger budget, and a commit that says why."""
    assert 0 < _lines(package, ".py", ".lua", ".sql", ".html") <= LINES[package]


def test_tests_have_no_more_lines_than_their_budget() -> None:
    """The whole suite is a cost that everybody pays."""
    assert 0 < _lines("tests", ".py") <= LINES_OF_TESTS


def test_fields_that_may_be_none_do_not_become_more() -> None:
    """A field that is None unless another one has some value stands for two classes; a flag may be left out."""
    found = sum(
        isinstance(each, ast.AnnAssign) and _may_be_none(each.annotation) and not _is_flag(each)
        for tree in _trees().values()
        for kind in ast.walk(tree)
        if isinstance(kind, ast.ClassDef)
        for each in kind.body
    )
    assert 0 < found <= OPTIONAL_FIELDS


def _may_be_none(annotation: ast.expr) -> bool:
    return not {"None", "Optional"}.isdisjoint(ast.unparse(annotation).replace("[", " ").split())


def _is_flag(field: ast.AnnAssign) -> bool:
    return isinstance(field.value, ast.Call) and ast.unparse(field.value.func) == "flag"


def _named(node: ast.AST) -> Iterator[str]:
    """Yield the last name of everything that an expression names."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _asked(tree: ast.AST) -> Iterator[str]:
    """Yield the names of classes that code asks values for: by isinstance, a pattern, or their type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            if node.func.id in ("isinstance", "issubclass"):
                yield from _named(node.args[1])
        elif isinstance(node, ast.MatchClass):
            yield from _named(node.cls)
        elif isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(isinstance(each, ast.Call) and ast.unparse(each.func) == "type" for each in sides):
                yield from (name for side in sides for name in _named(side))


def test_nobody_else_asks_which_kind_a_release_is_of() -> None:
    """All that is true of one kind alone stands in its module."""
    asking = {path for path, tree in _trees().items() if not KINDS.isdisjoint(_asked(tree))}
    assert asking, "nothing was found at all"
    assert [] == [path for path in asking if not path.startswith(MAY_ASK)]


def test_nobody_else_asks_which_function_a_question_groups_by() -> None:
    """What a function is asked as, and what it means, its own module says of it."""
    folder = FUNCTIONS[0]
    functions = {
        each.name
        for path, tree in _trees().items()
        if path.startswith(folder)
        for each in tree.body
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_")
    } - {"Function", "OfColumn", "Meaning"}
    assert {"Cases", "QueryCase", "Funnel", "QueryFunnel"} <= functions
    asking = {path for path, tree in _trees().items() if not functions.isdisjoint(_asked(tree))}
    assert [] == [path for path in asking if not path.startswith(FUNCTIONS)]


def _imported(tree: ast.AST) -> set[str]:
    """Return every module and name that is imported, with all that is above it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def test_nobody_else_knows_one_kind() -> None:
    """All others know what kinds have in common."""
    folder = "dp_service/releases/kinds/"
    of_kinds = {"Kind", "Unbounded", "Bounded", "BoundedCounts"}
    classes = {
        each.name: Path(path).stem
        for path, tree in _trees().items()
        if path.startswith(folder)
        for each in tree.body
        if isinstance(each, ast.ClassDef) and not of_kinds.isdisjoint(_bases(each))
    }
    assert {"laplace", "gumbel", "bounded", "quantiles"} <= set(classes.values())
    names = {f"dp_service.releases.kinds.{kind}": kind for kind in classes.values()}
    names |= {f"dp_service.releases.kinds.{name}": kind for name, kind in classes.items()}
    found = {
        (path, names[name])
        for path, tree in _trees().items()
        if not path.startswith((folder, "gris_lab/"))
        for name in _imported(tree) & set(names)
    }
    assert found == KNOWS_A_KIND


def _bases(kind: ast.ClassDef) -> set[str]:
    return {name for base in kind.bases for name in _named(base)}


def test_modules_and_functions_fit_in_the_head() -> None:
    """Lines of a function are counted from behind its docstring."""
    long = []
    for path, tree in _trees().items():
        lines = len((REPOSITORY / path).read_text().splitlines())
        if lines > LINES_OF_A_MODULE:
            long.append(f"{path}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _size(node) > LINES_OF_A_FUNCTION:
                long.append(f"{path}: {node.name} has {_size(node)} lines")
    assert [] == long


def _size(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
    return (node.end_lineno or 0) - first.lineno + 1


def test_pages_stay_short() -> None:
    """Reference, how-to and proof are three texts; a page that grows becomes two, or says less."""
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    words = {str(page.relative_to(REPOSITORY)): len(page.read_text().split()) for page in pages}
    assert {"README.md", "docs/policy.md"} <= set(words)
    assert [] == [name for name, number in words.items() if number > WORDS_OF_A_PAGE]
    counted = (number for name, number in words.items() if name.startswith(("docs/", "CONTRIBUTING")))
    assert sum(counted) <= WORDS


FLAG = re.compile(r"(?<![\w-])--[a-z]")


def test_what_works_on_data_knows_no_flags() -> None:
    """Its errors name arguments, of which the command line makes flags; a draft says in a policy what to type next."""
    found = {
        f"{path.relative_to(REPOSITORY)}:{text.lineno}"
        for package in ("gris_audit", "gris_data", "gris_lab")
        for path in (REPOSITORY / package).rglob("*.py")
        for text in _texts(ast.parse(path.read_text(encoding="utf-8")))
        if FLAG.search(str(text.value)) and path.name not in ("commands.py", "draft_text.py")
    }
    assert set() == found


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the texts of a module that are no docstrings."""
    statements = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node

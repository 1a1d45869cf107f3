"""What has become small stays small: budgets that only a commit with a reason raises.

Lines are those of each package's Python. An optional field is a field of a class whose type has None. Which
kind a release is of, only `dp_service/releases/kinds` asks, where each is one module.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]

LINES = {
    "dp_service": 29_800,
    "budget_service": 19_170,
    "pinot_connector": 19_650,
    "gris_gateway": 3_250,
    "gris_console": 2_950,
    "gris_mcp": 1_650,
    "gris_data": 5_400,
    "gris_lab": 4_500,
    "gris_cli": 7_470,
    "gris_serving": 3_300,
}
OPTIONAL_FIELDS = 500
LINES_OF_A_MODULE = 480
LINES_OF_A_FUNCTION = 65
WORDS_OF_A_PAGE = 4_000
WORDS = 120_000
# Who imports the module of one kind, and why: what quantiles are chosen from has a type that is asked of engines; a
# sharpening makes its kind from the release before.
KNOWS_A_KIND = {
    "dp_service/server/stream_assembler.py": "quantiles",
    "dp_service/releases/sharpening.py": "sharpened",
    "gris_data/value/publishing.py": "quantiles",
}

_KINDS = (
    "KnownLap|KnownGumb|UnkLap|UnkGumb|BoundGauss|TwoLooks|Shift|BoundMoments|MomentsOfNames|DrillDown|RankedValues|"
    "QuantilesOfNames|Laplace|Gumbel|Bounded|BoundedCounts|OneLook|NamesLook|Sharpened|Relative|Moments|WithTotals|LookMore|Quantiles"
)
_ASKS = re.compile(rf"isinstance\([^)]*\b(?:{_KINDS})\b|\bcase (?:{_KINDS})\(")
# Mechanisms are below kinds; `gris plan` compares mechanisms of its own, and makes no release. What a message chose is
# read in one module.
_MAY_ASK = (
    "dp_service/releases/kinds",
    "dp_service/mechanisms",
    "gris_lab",
    "pinot_connector/parameters.py",
)


def _modules(package: str) -> Iterator[Path]:
    yield from sorted((REPOSITORY / package).rglob("*.py"))


@pytest.mark.parametrize("package", LINES)
def test_a_package_has_no_more_lines_than_its_budget(package: str) -> None:
    """More lines need a larger budget, and a commit that says why."""
    found = sum(len(path.read_text().splitlines()) for path in _modules(package))
    assert found <= LINES[package]


def test_fields_that_may_be_none_do_not_become_more() -> None:
    """A field that is None unless another one has some value stands for two classes; a flag may be left out."""
    found = sum(
        isinstance(each, ast.AnnAssign) and "None" in ast.unparse(each.annotation) and not _is_flag(each)
        for package in LINES
        for path in _modules(package)
        for kind in ast.walk(ast.parse(path.read_text()))
        if isinstance(kind, ast.ClassDef)
        for each in kind.body
    )
    assert found <= OPTIONAL_FIELDS


def _is_flag(field: ast.AnnAssign) -> bool:
    return isinstance(field.value, ast.Call) and ast.unparse(field.value.func) == "flag"


def test_nobody_else_asks_which_kind_a_release_is_of() -> None:
    """All that is true of one kind alone stands in its module."""
    found = [
        f"{path.relative_to(REPOSITORY)}: {line.strip()}"
        for package in LINES
        for path in _modules(package)
        if not str(path.relative_to(REPOSITORY)).startswith(_MAY_ASK)
        for line in path.read_text().splitlines()
        if _ASKS.search(line)
    ]
    assert not found


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{each.name}" for each in node.names)
            yield node.module or ""


_OF_A_KIND = re.compile(r"^class \w+\((?:Kind|Unbounded|Bounded|BoundedCounts)\b", re.MULTILINE)


def test_nobody_else_knows_one_kind() -> None:
    """All others know what kinds have in common."""
    folder = REPOSITORY / "dp_service/releases/kinds"
    kinds = {each.stem for each in folder.glob("*.py") if _OF_A_KIND.search(each.read_text())}
    assert {"laplace", "gumbel", "bounded", "quantiles"} <= kinds
    found = {
        (str(path.relative_to(REPOSITORY)), kind)
        for package in LINES
        for path in _modules(package)
        if folder not in path.parents and not path.is_relative_to(REPOSITORY / "gris_lab")
        for kind in kinds
        if f"dp_service.releases.kinds.{kind}" in set(_names(ast.parse(path.read_text())))
    }
    assert set(KNOWS_A_KIND.items()) == found


def test_modules_and_functions_fit_in_the_head() -> None:
    """Lines of a function are counted from behind its docstring."""
    long = [
        f"{path.relative_to(REPOSITORY)}: {lines} lines"
        for package in LINES
        for path in _modules(package)
        if (lines := len(path.read_text().splitlines())) > LINES_OF_A_MODULE
    ]
    for package in LINES:
        for path in _modules(package):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or 0) - _first_line(node) + 1
                    if lines > LINES_OF_A_FUNCTION:
                        long.append(f"{path.relative_to(REPOSITORY)}: {node.name} has {lines} lines")
    assert not long


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0].lineno


def test_pages_stay_short() -> None:
    """Reference, how-to and proof are three texts; a page that grows becomes two, or says less."""
    pages = [REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    words = {str(page.relative_to(REPOSITORY)): len(page.read_text().split()) for page in pages}
    assert len(words) > 50
    assert [] == [name for name, number in words.items() if number > WORDS_OF_A_PAGE]
    assert sum(words.values()) <= WORDS

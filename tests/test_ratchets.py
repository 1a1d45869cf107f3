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
    "dp_service": 31_000,
    "budget_service": 19_170,
    "pinot_connector": 19_650,
    "gris_gateway": 3_250,
    "gris_console": 2_950,
    "gris_mcp": 1_650,
    "gris_cli": 16_400,
    "gris_serving": 3_300,
}
OPTIONAL_FIELDS = 510

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
    "gris_cli/plan",
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
    """A field that is None unless another one has some value stands for two classes."""
    found = sum(
        isinstance(each, ast.AnnAssign) and "None" in ast.unparse(each.annotation)
        for package in LINES
        for path in _modules(package)
        for kind in ast.walk(ast.parse(path.read_text()))
        if isinstance(kind, ast.ClassDef)
        for each in kind.body
    )
    assert found <= OPTIONAL_FIELDS


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

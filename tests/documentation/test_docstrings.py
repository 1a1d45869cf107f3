"""The examples in docstrings of `dp_service`: each is run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import dp_service

_FOLDER = Path(dp_service.__file__).parent
_WITH_EXAMPLES = sorted(
    ".".join(("dp_service", *path.relative_to(_FOLDER).with_suffix("").parts)).removesuffix(".__init__")
    for path in _FOLDER.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", _WITH_EXAMPLES)
def test_an_example_prints_what_it_says(module: str) -> None:
    """Of a module that has some."""
    found = doctest.testmod(importlib.import_module(module))
    assert found.attempted > 0
    assert found.failed == 0

"""Runs the examples in docstrings, also those with `await`."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Callable
from typing import Any

FRONT_DOOR = ("ask", "top_k", "histogram", "sql", "explain", "guarantee", "catalog")
"""The methods that every client has, with an example in each docstring."""


async def run_examples(method: Callable[..., object], **names: Any) -> int:
    """Runs the examples of a method and compares what they give.

    Args:
        method: the method whose docstring has the examples.
        names: what the examples may name.

    Returns:
        How many examples there were.
    """
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(method) or "")
    for example in examples:
        if example.want:
            assert example.want.strip() == repr(await _run(example.source, "eval", names)), example.source
        else:
            await _run(example.source, "exec", names)
    return len(examples)


async def _run(source: str, mode: str, names: dict[str, Any]) -> Any:
    code = compile(source, "<docstring>", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(code, names)  # noqa: S307 - our own docstrings
    return await value if inspect.iscoroutine(value) else value

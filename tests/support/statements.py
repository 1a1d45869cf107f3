"""What is said of questions and answers, as texts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class _Said(Protocol):
    @property
    def text(self) -> str: ...


def texts(statements: Iterable[_Said]) -> list[str]:
    """Returns the sentences alone."""
    return [each.text for each in statements]

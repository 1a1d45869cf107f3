"""Where the faults of a policy are collected, each with its key and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dp_service.queries.errors import Problem
from dp_service.queries.policy_document import Document
from gris_serving.yaml_texts import KeyPath

Fault: TypeAlias = Callable[[KeyPath, str], None]
"""Reports what is wrong with a key, by its path."""


@dataclass(frozen=True)
class Faults:
    """Collects the faults of a document; calling it adds one."""

    document: Document
    problems: list[Problem]

    def __call__(self, path: KeyPath, message: str) -> None:
        """Add one."""
        self.problems.append(self.document.problem(path, message))

    @property
    def directory(self) -> Path:
        """The directory that relative file names in the policy refer to."""
        return Path(self.document.source).parent

"""A policy's text: plain values, the line of every key, and faults that name both.

Decimal numbers stay text until they become exact fractions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dp_service.queries.errors import PolicyError, Problem
from gris_serving.yaml_texts import KeyPath, TextError, read_text

# Every fault and every line repeats the keys above it, so a stranger's text could grow far beyond its own size.
MAXIMUM_KEY_CHARACTERS = 128


@dataclass
class Document:
    """The plain values of a YAML text, and the line on which each key path starts."""

    source: str
    content: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a key path, with the line of the nearest key that exists."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        key = ".".join(map(str, path)) or "the file"
        return Problem(self.source, self.lines.get(known, 1), key, message)


def read_document(text: str, source: str) -> Document:
    """Read a YAML text; `source` names it in errors.

    Raises:
        PolicyError: The text is not of this form; the error names the line.
    """
    try:
        found = read_text(text, decimals=str, most_key_characters=MAXIMUM_KEY_CHARACTERS)
    except TextError as error:
        raise PolicyError((Problem(source, error.line or 1, "", error.problem),)) from None
    return Document(source, found.content, found.lines)

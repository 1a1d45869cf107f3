"""Lines of a drafted policy: comments that fit, and names as YAML takes them."""

from __future__ import annotations

import json
from collections.abc import Iterator

_WIDTH = 116


def comment(text: str, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a comment, of which each paragraph is a line of the text."""
    margin = " " * indent
    for line in text.splitlines():
        yield from (f"{margin}# {part}" for part in _wrapped(line, _WIDTH - indent))


def key(name: str) -> str:
    """Return a name as YAML takes it for a text."""
    return json.dumps(name) if name.lower() in ("true", "false", "null") else name


def _wrapped(line: str, width: int) -> Iterator[str]:
    """Yield a line in pieces that fit, with its own indentation."""
    indent = line[: len(line) - len(line.lstrip())]
    piece = ""
    for word in line.split():
        if piece and len(indent) + len(piece) + 1 + len(word) > width:
            yield indent + piece
            piece = ""
        piece = f"{piece} {word}" if piece else word
    yield indent + piece

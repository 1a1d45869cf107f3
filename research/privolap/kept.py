"""Files of what was measured, a line of JSON for each; so what is stopped goes on where it was."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Name = TypeVar("Name")
Value = TypeVar("Value")


class KeptError(Exception):
    """A file does not have what is kept in it."""


def read(path: Path, what: str, pair: Callable[[Mapping[str, Any]], tuple[Name, Value]]) -> dict[Name, Value]:
    """Return what is kept in a file, by names; the last line of a name counts.

    Raises:
        KeptError: A line cannot be read.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise KeptError(f"expected a file of {what}s, got {path}: {error}") from error
    found: dict[Name, Value] = {}
    for number, line in enumerate(text.splitlines(), 1):
        try:
            name, value = pair(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise KeptError(
                f"expected a {what} as JSON in line {number} of {path}, got {line[:60]!r}; "
                "delete the line to measure it again"
            ) from error
        found[name] = value
    if text and not text.endswith("\n"):
        raise KeptError(f"expected a new line at the end of {path}, got {line[:60]!r}; delete that line")
    return found


def keep(path: Path, line: Mapping[str, Any], version: str) -> None:
    """Write a line, with the version of what was measured, and the date."""
    today = datetime.datetime.now(datetime.UTC).date()
    with path.open("a") as file:
        file.write(json.dumps({**line, "version": version, "measured": f"{today}"}) + "\n")

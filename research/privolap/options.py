"""What the command's options may be; an error says what was expected and what was there."""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable
from pathlib import Path

from research.privolap.questions import System

PICTURES = ".pdf", ".png", ".svg"
VERBS = "open", "close"


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return what reads a whole number of at least so much."""
    expected = (
        f"a whole number of {least} or more" if most is None else f"a whole number of {least} to {most}"
    )

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return read


def between(low: float, high: float) -> Callable[[str], float]:
    """Return what reads a finite number between two others."""
    expected = f"a number above {low:g}" if math.isinf(high) else f"a number between {low:g} and {high:g}"

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low < value < high:
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}")
        return value

    return read


def picture(text: str) -> Path:
    """Read where a picture goes, in a format that can be drawn."""
    path = Path(text)
    if path.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(
            f"expected a file that ends with {', '.join(PICTURES)}, got {text!r}"
        )
    return path


def system_of(text: str) -> System:
    """Make the system of a class that is named with its module."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise argparse.ArgumentTypeError(f"expected module:Class, got {text!r}")
    try:
        system: System = getattr(importlib.import_module(module), name)()
    except Exception as error:
        raise argparse.ArgumentTypeError(
            f"expected a class that is made without arguments, got {text!r}: {type(error).__name__}: {error}"
        ) from error
    missing = [each for each in VERBS if not callable(getattr(system, each, None))]
    if missing or not isinstance(getattr(system, "name", None), str):
        raise argparse.ArgumentTypeError(
            f"expected a system with a name, {' and '.join(VERBS)}, got {text!r} without {', '.join(missing) or 'name'}"
        )
    return system

"""What flags say: two parts of a text, and the flag by which an owner's input was named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import typer

from gris_data.errors import InputError


@contextmanager
def named_by(flag: str) -> Iterator[None]:
    """Let what is wrong with an input name the flag that gave it, unless it names another one."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith("--") else f"{flag}: {text}") from None


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn errors of arguments, which name them, into errors of flags."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def file_errors(path: object, flag: str = "") -> Iterator[None]:
    """Turn errors of a file into errors of the flag that names it, or of the file where it is an argument."""
    try:
        yield
    except OSError as error:
        raise typer.BadParameter(f"{flag}{': ' if flag else ''}{path}: {error.strerror}") from None


def exact(text: str) -> Fraction:
    """Return the number that a text spells, exactly: 0.15 is three twentieths, and no float near it."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text} is no number such as 0.15 or 1e-10") from None


def number(text: str, *names: str, default: str | bool = True) -> Any:
    """Return the flag of an exact number; `default` is what its help shows."""
    return typer.Option(*names, parser=exact, metavar="NUMBER", show_default=default, help=text)


def parts_of(flag: str, form: str, text: str) -> tuple[str, str]:
    """Return what stands before and after the colon of a flag's text, which has the form that is named."""
    before, colon, after = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"{flag} expects {form}, got {text}")
    return before, after

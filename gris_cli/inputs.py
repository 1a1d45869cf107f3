"""What flags say: numbers, two parts of a text, and the flag that gave what is wrong with an input."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import typer

from gris_cli.data.errors import InputError

MOST_CHARACTERS = 100
_LARGE_EXPONENT = re.compile(r"[eE][+-]?0*[1-9][0-9_]{2}")


@contextmanager
def named_by(flag: str) -> Iterator[None]:
    """Let what is wrong with an input name the flag that gave it, unless it is about something else that was given."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error), *(error.of or (flag,)), remedy=error.remedy) from None


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn errors of arguments, which name them, into errors of flags."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


@contextmanager
def file_errors(path: object, flag: str = "") -> Iterator[None]:
    """Turn errors of a file into errors of the flag that names it, or of the file where it is an argument."""
    try:
        yield
    except OSError as error:
        raise typer.BadParameter(f"{flag}{': ' if flag else ''}{path}: {error.strerror}") from None


def shown(text: str) -> str:
    """Return what was typed as errors quote it, at most so many characters of it."""
    return repr(text) if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]!r} and more"


def require_amount(flag: str, amount: int) -> None:
    """Refuse what no ledger can hold as an amount of a unit.

    Raises:
        typer.BadParameter: Not 0 to 2^63 - 1; it names the flag, and says what was got.
    """
    if not 0 <= amount < 2**63:
        raise typer.BadParameter(f"{flag}: expected 0 to 2^63 - 1, got {amount}")


def exact(text: str) -> Fraction:
    """Return the number that a text spells, exactly: 0.15 is three twentieths, and no float near it."""
    # A default is a number already. The exponent of a few characters can spell more digits than there is memory for.
    text = str(text)
    if len(text) > MOST_CHARACTERS or _LARGE_EXPONENT.search(text):
        raise typer.BadParameter(
            f"{text[:MOST_CHARACTERS]} is no number of at most {MOST_CHARACTERS} characters, and of two digits in its "
            "exponent"
        )
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

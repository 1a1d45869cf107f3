"""Functions of a text whose result is a part of it, or the same with other letters; an element has that instead.

They are the same on every engine: letters are those from A to Z alone, characters are code points, and a text is
divided by one character. None of them fails, makes a text longer, or has NULL as its result.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

from dp_service.queries.filters import require_valid

_MAXIMUM_LENGTH = 100
_MAXIMUM_PLACE = 10
_LETTERS = (string.ascii_uppercase, string.ascii_lowercase)


@dataclass(frozen=True)
class Folded:
    """The text with the letters A to Z small, or, if `upper`, with a to z large."""

    upper: bool

    @property
    def letters(self) -> tuple[str, str]:
        """The letters that are replaced, and those that stand for them."""
        return _LETTERS[::-1] if self.upper else _LETTERS

    @property
    def as_bytes(self) -> tuple[bytes, ...]:
        """The bytes of its meaning."""
        return (b"upper" if self.upper else b"lower",)

    def of(self, text: str) -> str:
        """Return the function of a text.

        >>> Folded(upper=False).of("STRASSE \u00c9 \u212a")
        'strasse \u00c9 \u212a'
        """
        return text.translate(str.maketrans(*self.letters))


@dataclass(frozen=True)
class Prefix:
    """The first `length` characters, all if there are fewer."""

    length: int

    def __post_init__(self) -> None:
        require_valid(
            1 <= self.length <= _MAXIMUM_LENGTH, "dimensions", f"expected 1 to {_MAXIMUM_LENGTH} characters"
        )

    @property
    def expression(self) -> str:
        """A regular expression that finds it at the beginning of a text, where a dot is any character."""
        return f".{{0,{self.length}}}"

    @property
    def as_bytes(self) -> tuple[bytes, ...]:
        """The bytes of its meaning."""
        return b"prefix", str(self.length).encode()

    def of(self, text: str) -> str:
        """Return the function of a text."""
        return text[: self.length]


@dataclass(frozen=True)
class Piece:
    """What is between a separator and the next one, by its place from 1 on; empty where there are fewer separators."""

    separator: str
    place: int

    def __post_init__(self) -> None:
        is_one = len(self.separator) == 1 and self.separator.isascii() and self.separator.isprintable()
        require_valid(is_one, "dimensions", "expected one ASCII character that divides texts")
        require_valid(
            1 <= self.place <= _MAXIMUM_PLACE, "dimensions", f"expected a piece from 1 to {_MAXIMUM_PLACE}"
        )

    @property
    def expression(self) -> str:
        """A regular expression whose only group is the piece, from the beginning of a text that has it."""
        escaped = f"\\{self.separator}" if self.separator in "\\^[]-&~" else self.separator
        # A group that comes no times keeps Java from finding those behind it.
        before = f"(?:[^{escaped}]*[{escaped}]){{{self.place - 1}}}" if self.place > 1 else ""
        return f"{before}([^{escaped}]*)"

    @property
    def as_bytes(self) -> tuple[bytes, ...]:
        """The bytes of its meaning."""
        return b"piece", self.separator.encode(), str(self.place).encode()

    def of(self, text: str) -> str:
        """Return the function of a text.

        >>> [Piece("@", place).of("ada@example.org") for place in (1, 2, 3)]
        ['ada', 'example.org', '']
        """
        pieces = text.split(self.separator)
        return pieces[self.place - 1] if self.place <= len(pieces) else ""


TextFunction = Folded | Prefix | Piece

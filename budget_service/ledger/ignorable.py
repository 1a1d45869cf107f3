"""Characters that are shown as nothing, or as a blank, though Unicode does not count them among the format characters.

They are what Unicode's property Default_Ignorable_Code_Point (DerivedCoreProperties.txt) has beyond category Cf, which
no account may have at all: variation selectors such as U+FE0F, the fillers of Hangul such as U+3164, the combining
grapheme joiner, and reserved ranges. Python's `unicodedata` does not have this property.

An account has them in its name only if an entry of the configuration writes its path out.
"""

from __future__ import annotations

from collections.abc import Sequence

_RANGES = (
    (0x034F, 0x034F),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
_IGNORABLE = frozenset(chr(each) for first, last in _RANGES for each in range(first, last + 1))

PROBLEM = "must have no invisible character, unless the configuration writes this path out"


def first_ignorable(path: Sequence[str]) -> int | None:
    """Return the index of the first segment that has such a character, None if there is none."""
    return next((index for index, segment in enumerate(path) if has_ignorable(segment)), None)


def has_ignorable(text: str) -> bool:
    """Return whether a text has such a character."""
    return not text.isascii() and not _IGNORABLE.isdisjoint(text)

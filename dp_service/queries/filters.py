"""The values of columns, and the conditions that a question sets on them."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dp_service.queries.errors import QuestionError
from dp_service.queries.time_parts import TimePart
from dp_service.terms import ColumnType

MAXIMUM_VALUES = 10_000
MAXIMUM_TEXT_LENGTH = 1024
# An engine may go through a text once for each of them.
MAXIMUM_WILDCARDS = 4
INT64_MINIMUM = -(2**63)
INT64_MAXIMUM = 2**63 - 1

# A sign of a pattern of LIKE, with the backslash before it.
_PIECES = re.compile(r"\\?.", re.DOTALL)
FORBIDDEN_CHARACTER = re.compile("[\0\ud800-\udfff]")

Value = str | int | bool | datetime.date
"""A value of a column; a timestamp is a `datetime.datetime`, which is a `datetime.date` to Python, in UTC."""


# Exact classes: bool is a subclass of int and datetime of date, and neither may pass for the other.
_TYPE_OF_CLASS = {
    str: ColumnType.STRING,
    int: ColumnType.INT64,
    bool: ColumnType.BOOL,
    datetime.date: ColumnType.DATE,
    datetime.datetime: ColumnType.TIMESTAMP,
}

VALUES_OF = {
    ColumnType.STRING: "texts (in SQL in single quotes)",
    ColumnType.INT64: "integers (in SQL without quotes)",
    ColumnType.BOOL: "truth values (in SQL TRUE or FALSE)",
    ColumnType.DATE: "days (in SQL as 'YYYY-MM-DD')",
    ColumnType.TIMESTAMP: "timestamps (in SQL as TIMESTAMP 'YYYY-MM-DD hh:mm:ss' or DATE 'YYYY-MM-DD')",
}
"""What a column of each type is compared with, in messages."""


def fault_of(value: object) -> str | None:
    """Return what is wrong with `value` as a value of any column, or None."""
    if type(value) not in _TYPE_OF_CLASS:
        return "expected a text, an integer, a truth value, a day or a timestamp"
    if isinstance(value, str):
        return _fault_of_text(value)
    if type(value) is int and not INT64_MINIMUM <= value <= INT64_MAXIMUM:
        return "expected an integer of 64 bits"
    if isinstance(value, datetime.datetime) and value.utcoffset() != datetime.timedelta(0):
        return "expected timestamps in UTC"
    return None


def _fault_of_text(text: str) -> str | None:
    if len(text) > MAXIMUM_TEXT_LENGTH:
        return f"expected a text of at most {MAXIMUM_TEXT_LENGTH} characters"
    if FORBIDDEN_CHARACTER.search(text):
        return "expected a text without NUL and surrogate code points"
    return None


def type_of(value: Value) -> ColumnType:
    """Return the column type that a value belongs to."""
    return _TYPE_OF_CLASS[type(value)]


def require_valid(condition: bool, field: str, message: str) -> None:
    """Raise QuestionError with this field and message unless the condition holds."""
    if not condition:
        raise QuestionError(field, message)


def _check_value(value: Value) -> None:
    fault = fault_of(value)
    if fault is not None:
        raise QuestionError("filters", fault)


def _check_set(values: tuple[Value, ...]) -> None:
    require_valid(
        1 <= len(values) <= MAXIMUM_VALUES, "filters", f"expected 1 to {MAXIMUM_VALUES} values in a set"
    )
    for value in values:
        _check_value(value)
    require_valid(len(set(map(type_of, values))) == 1, "filters", "expected values of one type in a set")


@dataclass(frozen=True)
class In:
    """The column's value is one of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class NotIn:
    """The column's value is none of `values`; their order and repetition have no meaning."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        _check_set(self.values)


@dataclass(frozen=True)
class Bound:
    """One end of an interval; `exclusive` leaves the value itself out."""

    value: Value
    exclusive: bool = False

    def __post_init__(self) -> None:
        _check_value(self.value)


@dataclass(frozen=True)
class Range:
    """The column's value lies between two bounds, of which one may be missing."""

    column: str
    lower: Bound | None
    upper: Bound | None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.lower, self.upper) if bound is not None]
        require_valid(bool(bounds), "filters", "expected a lower bound, an upper bound or both")
        types = {type_of(bound.value) for bound in bounds}
        require_valid(len(types) == 1, "filters", "expected two bounds of one type")


@dataclass(frozen=True)
class Like:
    """The column's text has a pattern - or has not, if `negated` - or its letters fold to one.

    In `pattern` % stands for any characters, none too, and _ for any one. Behind a backslash, %, _ and the backslash
    mean themselves; it stands before nothing else. If it `folds`, the letters A to Z mean a to z as well, and no others
    do.
    """

    column: str
    pattern: str
    folds: bool = False
    negated: bool = False

    def __post_init__(self) -> None:
        _check_value(self.pattern)
        require_valid(
            _PIECES.findall(normal_pattern(self.pattern, folds=False)).count("%") <= MAXIMUM_WILDCARDS,
            "filters",
            f"expected at most {MAXIMUM_WILDCARDS} signs % in a pattern",
        )


@dataclass(frozen=True)
class IsNull:
    """The column has no value - or has one, if `negated`. Where the policy keeps NULL it is the column's null value."""

    column: str
    negated: bool = False


@dataclass(frozen=True)
class InPart:
    """A part of the column's time, such as its hour, is one of `numbers`, ascending; none: no row meets it."""

    column: str
    part: TimePart
    numbers: tuple[int, ...]

    @property
    def opposite(self) -> InPart:
        """The condition that it is one of the others that it can be."""
        return replace(self, numbers=tuple(each for each in self.part.values if each not in self.numbers))


@dataclass(frozen=True)
class AllOf:
    """All of some conditions hold."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        require_valid(bool(self.parts), "filters", "expected one condition or more")


@dataclass(frozen=True)
class AnyOf:
    """One of some conditions holds, or several do."""

    parts: tuple[Filter, ...]

    def __post_init__(self) -> None:
        require_valid(bool(self.parts), "filters", "expected one condition or more")


ColumnFilter = In | NotIn | Range | Like | IsNull | InPart
"""A condition on one column. NULL meets none but IsNull, unless the policy keeps it as a value."""
Filter = ColumnFilter | AllOf | AnyOf
"""A condition. There is no NOT: each condition on a column has an opposite, and the others follow from theirs."""


def column_filters(condition: Filter) -> Iterator[ColumnFilter]:
    """Yield the conditions on columns that a condition consists of, in their order."""
    # A stack rather than recursion: a question may nest them as deep as its text allows.
    waiting = [condition]
    while waiting:
        each = waiting.pop()
        if isinstance(each, AllOf | AnyOf):
            waiting += reversed(each.parts)
        else:
            yield each


def leave_one_range(filters: Iterable[Filter], column: str) -> bool:
    """Return whether the conditions on a column say together that it is in one range, by their form."""
    waiting = list(filters)
    while waiting:
        each = waiting.pop()
        if isinstance(each, AllOf) or (isinstance(each, AnyOf) and len(each.parts) == 1):
            waiting += each.parts
            continue
        is_range = isinstance(each, Range) or (isinstance(each, IsNull) and each.negated)
        is_value = isinstance(each, In) and len(set(each.values)) == 1
        if not (is_range or is_value) and any(leaf.column == column for leaf in column_filters(each)):
            return False
    return True


def depth_of(condition: Filter) -> int:
    """Return how many conditions that consist of others are in one another."""
    level, depth = [condition], 0
    while nested := [each for each in level if isinstance(each, AllOf | AnyOf)]:
        level, depth = [part for each in nested for part in each.parts], depth + 1
    return depth


def opposite(condition: Filter) -> Filter:
    """Return the condition that holds where another one does not, of rows whose columns have a value."""
    match condition:
        case In(column, values) | NotIn(column, values):
            return NotIn(column, values) if isinstance(condition, In) else In(column, values)
        case InPart():
            return condition.opposite
        case Like() | IsNull():
            return replace(condition, negated=not condition.negated)
        case AllOf(parts):
            return AnyOf(tuple(map(opposite, parts)))
        case AnyOf(parts):
            return AllOf(tuple(map(opposite, parts)))
        case Range(column, lower, upper):
            below = None if lower is None else Range(column, None, Bound(lower.value, not lower.exclusive))
            above = None if upper is None else Range(column, Bound(upper.value, not upper.exclusive), None)
            sides = tuple(each for each in (below, above) if each is not None)
            return sides[0] if len(sides) == 1 else AnyOf(sides)


def normal_pattern(pattern: str, *, folds: bool) -> str:
    """Return a pattern of LIKE as all that match the same texts are written: _ before %, and folded letters small."""
    found = re.sub(
        r"(\\.)|[%_]+", lambda run: run[1] or "_" * run[0].count("_") + "%" * ("%" in run[0]), pattern
    )
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), found) if folds else found


def literal_pattern(text: str) -> str:
    """Return the pattern that a text alone has."""
    return re.sub(r"[\\%_]", r"\\\g<0>", text)


def text_of(pattern: str) -> str | None:
    """Return the text that alone has a pattern of LIKE; None: others have it, too."""
    pieces = _PIECES.findall(pattern)
    return None if {"%", "_"} & set(pieces) else "".join(piece[-1] for piece in pieces)


def has_letters(pattern: str) -> bool:
    """Return whether a pattern of LIKE has letters that can be folded."""
    return re.search("[A-Za-z]", pattern) is not None


def pattern_of(pattern: str, *, folds: bool) -> re.Pattern[str]:
    """Return the regular expression of a pattern of LIKE, which a whole text has to match."""
    return re.compile(regular_expression(pattern, folds=folds, backtracks=True), re.DOTALL)


def regular_expression(pattern: str, *, folds: bool, backtracks: bool) -> str:
    """Return a pattern of LIKE as a regular expression of a whole text, in which a dot is any character.

    Letters are folded by hand: what else engines fold, such as the Kelvin sign, differs between them.

    Args:
        pattern: The pattern.
        folds: Whether the letters A to Z mean a to z as well.
        backtracks: True for Python and Java: a part between two % is then looked for once, as its first place leaves
            the most for what follows. An engine that tries others as well takes half a minute for one text of 512
            characters. Where any characters may follow, nothing after it fails, so no others are tried. False for RE2,
            which does not backtrack and has no means to say so.
    """
    # No pattern has the character zero.
    pieces = ("\0" if each == "%" else _piece(each, folds=folds) for each in _PIECES.findall(pattern))
    first, *others = re.split("\0+", "".join(pieces))
    if not others:
        return first
    *between, last = others
    parts = [f".*?{each}" for each in between]
    fails_later = len(parts) if last else len(parts) - 1
    if backtracks:
        parts = [f"(?>{each})" if place < fails_later else each for place, each in enumerate(parts)]
    return f"{first}{''.join(parts)}.*{last}"


def _piece(piece: str, *, folds: bool) -> str:
    if piece == "_":
        return "."
    character = piece[-1]
    if character.isascii() and character.isalpha():
        return f"[{character.lower()}{character.upper()}]" if folds else character
    # A class of one character means that character alone, but for the few signs with a meaning in a class.
    return f"\\{character}" if character in "\\^[]-&~" else f"[{character}]"


@dataclass(frozen=True)
class TimeRange:
    """The half-open interval [start, end) of timestamps in UTC, or of days of the time column's zone.

    A day stands for its beginning; None: unbounded on that side.
    """

    start: datetime.date | None
    end: datetime.date | None

    def __post_init__(self) -> None:
        for bound in (self.start, self.end):
            in_utc = not isinstance(bound, datetime.datetime) or bound.utcoffset() == datetime.timedelta(0)
            require_valid(in_utc, "time_range", "expected timestamps in UTC")

    def __str__(self) -> str:
        ends = (("from", self.start), ("before", self.end))
        return ", ".join(f"{word} {end.isoformat()}" for word, end in ends if end is not None)

"""The values of the ledger: costs, accounts and limits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from budget_service.ledger.windows import Microseconds, WindowRule

MAX_AMOUNT = 2**63 - 1
MAX_SEGMENTS = 4
MAX_SEGMENT_BYTES = 128
MAX_BLOCKS = 16
# In a configuration it stands for any one segment, so no segment may have it in its name. In a text of the ledger it
# divides a level from its block.
ANY = "*"

Fingerprint: TypeAlias = str

# Printable ASCII without slash and star, as nearly all segments are: it is in every normal form.
_PLAIN_SEGMENT = re.compile(r"[ -)+-.0-~]{1,128}")
_BLOCK = re.compile(r"[0-9a-f]{16}")

# Controls, what formats the text around it, and the ends of lines and paragraphs.
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")


class InvalidFieldError(ValueError):
    """A value of a request is not allowed; `field` is its path in the message and `problem` says what is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class Mode(Enum):
    """How a limit is applied."""

    ENFORCE = "enforce"
    TRACK = "track"


class Unit(Enum):
    """One of the two things a budget is counted in."""

    INFORMATION = "information"
    CALLS = "calls"


class Cost(Struct, frozen=True, gc=False, array_like=True):
    """An amount of both units, each in [0, 2^63 - 1]. Its currency (`unit_id`) is kept separately where it matters."""

    information: int
    calls: int

    def __post_init__(self) -> None:
        if 0 <= self.information <= MAX_AMOUNT and 0 <= self.calls <= MAX_AMOUNT:
            return
        for unit, amount in ((Unit.INFORMATION, self.information), (Unit.CALLS, self.calls)):
            if not 0 <= amount <= MAX_AMOUNT:
                raise InvalidFieldError(unit.value, "must be between 0 and 2^63 - 1")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.information + other.information, self.calls + other.calls)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.information - other.information, self.calls - other.calls)

    def less(self, other: Cost) -> Cost:
        """Return what is left of this without another, in neither unit below 0."""
        return Cost(max(0, self.information - other.information), max(0, self.calls - other.calls))

    def of(self, unit: Unit) -> int:
        """Return the amount of one unit."""
        return self.information if unit is Unit.INFORMATION else self.calls

    def within(self, bound: Cost) -> bool:
        """Return whether neither unit is above `bound`."""
        return self.information <= bound.information and self.calls <= bound.calls

    def fits_above(self, *counted: Cost) -> bool:
        """Return whether the sum of this and what is counted already can be counted in 64 bits."""
        return all(sum(each.of(unit) for each in (self, *counted)) <= MAX_AMOUNT for unit in Unit)


NOTHING = Cost(0, 0)


def capped_sum(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs, in each unit at most what a cost can hold.

    Windows that a limit did not have when they were charged may add up to more. No limit is larger than that.
    """
    information = calls = 0
    for each in costs:
        information += each.information
        calls += each.calls
    return Cost(min(information, MAX_AMOUNT), min(calls, MAX_AMOUNT))


def least_left(counted: list[Cost]) -> Cost:
    """Return the most that can be added to each of these sums."""
    return Cost(
        MAX_AMOUNT - max((each.information for each in counted), default=0),
        MAX_AMOUNT - max((each.calls for each in counted), default=0),
    )


def part_taken(limit: Cost, *counted: Cost) -> float:
    """Return which part of a limit is taken, of the unit that is shortest."""
    return max(sum(each.of(unit) for each in counted) / max(limit.of(unit), 1) for unit in Unit)


class Account(NamedTuple):
    """A path from the widest level to the analyst; build it with `parse` unless the segments are known to be good.

    A level of an account is an account too: the prefix of its path. It is a tuple because it is looked up many times a
    request. With a `block` it stands for what that block of members alone has paid at the level: a balance of its own.
    """

    path: tuple[str, ...]
    block: str = ""

    @staticmethod
    def parse(path: Sequence[str], field: str) -> Account:
        """Return the account of a path that comes from outside, or raise InvalidFieldError naming `field`."""
        return _parsed(segments_of(path, field), field, with_any=False)

    @staticmethod
    def parse_pattern(path: Sequence[str], field: str) -> Account:
        """Return a path whose segments may be `*`, as a configuration has it, or raise InvalidFieldError."""
        return _parsed(segments_of(path, field), field, with_any=True)

    @staticmethod
    def of_text(text: str) -> Account:
        """Return the account of a `text`."""
        path, _, block = text.partition(ANY)
        return Account(tuple(path.split("/")), block)

    @property
    def root(self) -> str:
        """The first segment."""
        return self.path[0]

    @property
    def depth(self) -> int:
        """How many segments the path has."""
        return len(self.path)

    @property
    def text(self) -> str:
        """The path in one string, and the block; different ones differ because no segment holds a slash or star."""
        return "/".join(self.path) if not self.block else f"{'/'.join(self.path)}{ANY}{self.block}"

    def level(self, depth: int) -> Account:
        """Return the level of this account that has `depth` segments."""
        return Account(self.path[:depth])

    def of_block(self, block: str) -> Account:
        """Return what stands for a block of this level, or for the level itself if it is empty."""
        return Account(self.path, block)

    @property
    def levels(self) -> tuple[Account, ...]:
        """All levels of this account, from the widest to itself."""
        return tuple([self.level(depth) for depth in range(1, self.depth + 1)])


def segments_of(path: Sequence[str], field: str) -> tuple[str, ...]:
    """Return the segments of a path that comes from outside, or raise InvalidFieldError.

    A message can hold tens of thousands of them: not even a copy is made of too many.
    """
    if not 1 <= len(path) <= MAX_SEGMENTS:
        raise InvalidFieldError(field, f"must have 1 to {MAX_SEGMENTS} segments")
    return tuple(path)


class Hold(NamedTuple):
    """A span of a level that a reservation or a charge counts in: its window or, of a sliding one, its day.

    `depth` is the level's number of segments. With a `block` it counts for that block of members alone.
    """

    depth: int
    window_start: Microseconds
    block: str = ""

    def level_of(self, account: Account) -> Account:
        """Return the level of the account that it is of."""
        return Account(account.path[: self.depth], self.block)


class Limit(Struct, frozen=True, gc=False):
    """The most that may be spent in a window, and what happens when a cost does not fit."""

    maximum: Cost
    mode: Mode
    window: WindowRule


class LevelLimit(Struct, frozen=True, gc=False, cache_hash=True):
    """A level of an account that has a limit."""

    level: Account
    limit: Limit


def blocks_of(holds: Iterable[Hold]) -> tuple[str, ...]:
    """Return the blocks that alone pay for something with these holds, in order; none: everybody does."""
    return tuple(sorted({hold.block for hold in holds if hold.block}))


def parse_blocks(blocks: Sequence[str], field: str) -> tuple[str, ...]:
    """Return the blocks of a cost that comes from outside, or raise InvalidFieldError."""
    if not blocks:
        return ()
    if len(blocks) > MAX_BLOCKS:
        raise InvalidFieldError(
            field, f"must be at most {MAX_BLOCKS}: what touches more is paid for by everybody"
        )
    for index, block in enumerate(blocks):
        if not _BLOCK.fullmatch(block):
            raise InvalidFieldError(f"{field}[{index}]", "must be 16 lower-case hexadecimal characters")
        if index and blocks[index - 1] >= block:
            raise InvalidFieldError(
                f"{field}[{index}]", "must come after the one before it: each once, in order"
            )
    return tuple(blocks)


def has_invisible(text: str) -> bool:
    """Return whether a text has a character that is invisible, or that reverses or ends the text around it."""
    return any(unicodedata.category(each) in _INVISIBLE for each in text)


def _parsed(path: tuple[str, ...], field: str, *, with_any: bool) -> Account:
    for index, segment in enumerate(path):
        if not (_PLAIN_SEGMENT.fullmatch(segment) or (with_any and segment == ANY)):
            _check_segment(segment, f"{field}[{index}]", with_any=with_any)
    return Account(path)


def _check_segment(segment: str, field: str, *, with_any: bool) -> None:
    try:
        size = len(segment.encode())
    except UnicodeEncodeError:
        raise InvalidFieldError(field, "must be UTF-8") from None
    if not 1 <= size <= MAX_SEGMENT_BYTES:
        raise InvalidFieldError(field, f"must have 1 to {MAX_SEGMENT_BYTES} bytes")
    if ANY in segment:
        # As a part of a name it would look like a pattern, and match nothing but itself.
        allowed = f'"{ANY}" alone or no "{ANY}" at all' if with_any else f'no "{ANY}"'
        raise InvalidFieldError(field, f"must have {allowed}: it stands for any whole segment of budget.yaml")
    # Invisible characters make two accounts look like one, and can reverse the text around them.
    if "/" in segment or has_invisible(segment):
        raise InvalidFieldError(field, "must have no slash, no control character and no invisible one")
    if not unicodedata.is_normalized("NFC", segment):
        raise InvalidFieldError(field, "must be in Unicode normal form C")

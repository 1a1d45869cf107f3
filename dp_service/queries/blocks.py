"""Blocks of members: what a question pays for is of the blocks whose rows it may read, and of no other.

A policy divides members once, by the values of a column that tables carry: over a window of the budget, all rows of a
member, in all tables that carry it, are of one block (with `moves`: of so many more). Rows with any other value, and
with none, are one block more, the rest. Why members of other blocks need not pay: docs/proofs/blocks.md.

Which blocks a question reads follows from its canonical form alone, never from the data: it is what the conditions on
the column leave. A condition is in every query where the rows of its table are read, so a row that does not meet it
changes nothing. Of what is derived from the column nothing is assumed: such a question reads all blocks.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from pydantic import Field, StrictInt, StrictStr

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.canonical_columns import Condition, Every, OrdinalRestriction, Some, TextRestriction
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.filters import Value, fault_of
from dp_service.queries.policy_types import Identifier, Stated

MAXIMUM_BLOCKS = 1000
MAXIMUM_NAMED = 16
"""The most blocks that a cost names. A question of more is one of all."""
_ID_CHARACTERS = 16
_REST = b"rest"


@dataclass(frozen=True)
class PaidBy:
    """What pays for a question: the currency `unit_id`, of the blocks with these ids; none: of all.

    `division` is what blocks are by; empty: who asks is offered no table that is divided. `column` says which block a
    row of the table is of; empty: nothing does.
    """

    unit_id: str
    blocks: tuple[str, ...] = ()
    division: str = ""
    column: str = ""


class Blocks(Stated):
    """How a policy divides members into blocks.

    Attributes:
        name: What the blocks are by.
        values: The values that have a block of their own, texts or integers.
        moves: Into how many other blocks a member may come within a window.
    """

    name: Identifier
    values: Annotated[
        tuple[StrictStr | StrictInt, ...], Field(min_length=1, max_length=MAXIMUM_BLOCKS, strict=False)
    ]
    moves: Annotated[int, Field(ge=0, le=MAXIMUM_BLOCKS)] = 0

    @property
    def times(self) -> int:
        """How often a member's budget may be spent: once in each block that it comes into."""
        return min(1 + self.moves, 1 + len(self.values))

    @cached_property
    def digest(self) -> bytes:
        """What tells a partition from every other: the name, and which values have a block."""
        values = sorted(map(_value_bytes, self.values))
        return length_prefixed(b"gris/blocks/v1", self.name.encode(), *values)

    @cached_property
    def ids(self) -> Mapping[Value, str]:
        """The id of each value's block."""
        return {value: self._id(_value_bytes(value)) for value in self.values}

    @cached_property
    def rest(self) -> str:
        """The id of the block of all other values, and of rows without one."""
        return self._id(_REST)

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with the values."""
        if len({type(each) for each in self.values}) > 1:
            yield "expected values of one type, texts or integers"
            return
        for value in self.values:
            if (fault := fault_of(value)) is not None:
                yield fault
        alike = [same for same, times in Counter(map(folded, self.values)).items() if times > 1]
        if alike:
            yield (
                "expected values that differ in more than case, accents and spaces around them, which some columns "
                f"compare as equal; {alike[0]!r} stands for several"
            )

    def read_by(self, query: CanonicalQuery, column: str | None) -> tuple[str, ...]:
        """Return the ids of the blocks that a question may read, ascending; empty: all.

        Args:
            query: The question.
            column: The column of the table's rows that says which block they are of; None: it has none.
        """
        if column is None:
            return ()
        found = self._of_every((*query.restrictions, *query.conditions), column)
        return tuple(sorted(found)) if found is not None and self.can_pay(found) else ()

    def can_pay(self, ids: Collection[str]) -> bool:
        """Return whether these blocks pay alone for what reads them: no more than a cost names, and not all."""
        return 1 <= len(ids) <= min(MAXIMUM_NAMED, len(self.values))

    def of_values(self, values: Collection[Value]) -> frozenset[str]:
        """Return the ids of the blocks of which a row can be that has one of these values."""
        others = {each for each in values if each not in self.ids}
        # The column may take a text for equal to one that has a block.
        like = {folded(each) for each in others}
        found = {id_ for value, id_ in self.ids.items() if value in values or folded(value) in like}
        return frozenset(found | ({self.rest} if others else set()))

    def _read(self, condition: Condition, column: str) -> frozenset[str] | None:
        """Return the blocks of which a row that meets a condition can be; None: any."""
        match condition:
            case Every(every=parts):
                return self._of_every(parts, column)
            case Some(some=parts):
                found = [self._read(each, column) for each in parts]
                known = [each for each in found if each is not None]
                return frozenset().union(*known) if len(known) == len(found) else None
            case TextRestriction() | OrdinalRestriction() if (
                condition.column.name == column and condition.column.source is None
            ):
                return self._of_values(condition)
            case _:
                return None

    def _of_every(self, parts: tuple[Condition, ...], column: str) -> frozenset[str] | None:
        """Return what the narrowest of several conditions leaves, all of which a row meets."""
        found = [each for each in (self._read(part, column) for part in parts) if each is not None]
        return min(found, key=len, default=None)

    def _of_values(self, condition: TextRestriction | OrdinalRestriction) -> frozenset[str]:
        """Return the blocks of the values that a restriction allows."""
        listed = condition.among(tuple(self.ids))
        found = {self.ids[each] for each in listed}
        if isinstance(condition, OrdinalRestriction):
            allowed = sum(each.end - each.start for each in condition.intervals)
            return frozenset(found | ({self.rest} if allowed > len(listed) else set()))
        if condition.excluded:
            return frozenset(found | {self.rest})
        return self.of_values(condition.values)

    def _id(self, block: bytes) -> str:
        return hashlib.sha256(length_prefixed(b"gris/block/v1", self.name.encode(), block)).hexdigest()[
            :_ID_CHARACTERS
        ]


def folded(value: Value) -> Value:
    """Return what all texts have in common that some column compares as equal to one; a number as it is."""
    if not isinstance(value, str):
        return value
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", value).casefold())
    return "".join(each for each in parts if not unicodedata.combining(each)).strip()


def _value_bytes(value: Value) -> bytes:
    return length_prefixed(b"text" if isinstance(value, str) else b"int64", str(value).encode())

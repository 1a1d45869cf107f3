"""The forms of a number that a question shows: what it is of the parts that a release adds up.

A form holds its parts. In a question these are what is to be added up, and in a release their places there, or
THE_COUNT. How a form is written, `queries.sql.arithmetic` knows, and what is shown of it, `releases.kinds.numbers`;
everything between knows that it has parts. No two forms have the same fields, by which a plan tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from dp_service.parameters.expressions import Expression, called
from dp_service.terms import AggregateFunction

THE_COUNT = -1
"""The place of the count of the elements, which is no place among what is added up."""

Part = TypeVar("Part")
Other = TypeVar("Other")


@dataclass(frozen=True)
class PartName:
    """What a part is called: what is added up, of which column, and where which condition holds (0: there is none)."""

    function: AggregateFunction | None
    column: str = ""
    over_rows: bool = False
    condition: int = 0

    def __str__(self) -> str:
        if self.function is None:
            return "count"
        of = f"_{self.column}{'_of_rows' if self.over_rows else ''}" if self.column else ""
        return f"{self.function.value}{of}{self.where}"

    @property
    def where(self) -> str:
        """Which condition holds."""
        return f"_where_{self.condition}" if self.condition else ""


@dataclass(frozen=True)
class Plain(Generic[Part]):
    """What is added up, as it is."""

    added: Part

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its only part."""
        return (self.added,)

    def over(self, parts: Sequence[Other]) -> Plain[Other]:
        """Return the same of other parts."""
        return Plain(*parts)

    def called(self, names: Sequence[PartName]) -> str:
        """Return its name, of those of its parts."""
        return str(names[0])


@dataclass(frozen=True)
class Average(Generic[Part]):
    """A sum divided by the number of what is added up: its own count, or that of the elements."""

    averaged: Part

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its only part."""
        return (self.averaged,)

    def over(self, parts: Sequence[Other]) -> Average[Other]:
        """Return the same of other parts."""
        return Average(*parts)

    def called(self, names: Sequence[PartName]) -> str:
        """Return its name: an average of totals is another number than one of rows."""
        (name,) = names
        of = name.column or str(name.function)
        return f"average_{of}_per_{'row' if name.over_rows else 'member'}{name.where}"


@dataclass(frozen=True)
class Computed(Generic[Part]):
    """An expression over numbers, of which each is released once.

    Attributes:
        numbers: The numbers, which the expression names by their places here.
        expression: What is computed of them.
    """

    numbers: tuple[Plain[Part] | Average[Part], ...]
    expression: Expression

    @property
    def parts(self) -> tuple[Part, ...]:
        """The part of each number."""
        return tuple(part for number in self.numbers for part in number.parts)

    def over(self, parts: Sequence[Other]) -> Computed[Other]:
        """Return the same of other parts."""
        of = zip(self.numbers, parts, strict=True)
        return Computed(tuple(number.over([part]) for number, part in of), self.expression)

    def called(self, names: Sequence[PartName]) -> str:
        """Return its name, of those of its numbers."""
        of = zip(self.numbers, names, strict=True)
        return called(self.expression, [number.called([name]) for number, name in of])


Form: TypeAlias = Plain[Part] | Average[Part] | Computed[Part]


@dataclass(frozen=True)
class ShownNumber:
    """A number that a question shows of a release.

    Attributes:
        form: What it is of which places.
        name: What it is called.
        alias: What the question calls it; empty: it does not.
    """

    form: Form[int]
    name: str
    alias: str = ""

    @property
    def place(self) -> int:
        """The place of its first part that is not the count, or THE_COUNT."""
        return next((each for each in self.form.parts if each != THE_COUNT), THE_COUNT)

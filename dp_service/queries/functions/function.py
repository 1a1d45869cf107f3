"""What all functions have in common that a question may group by, as they are asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_service.queries.canonical_columns import Source
from dp_service.queries.filters import Filter, Value, column_filters

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context


@dataclass(frozen=True)
class Meaning:
    """What a function means.

    Attributes:
        source: Its canonical form.
        values: All that it can have, in order; None: texts that are not known.
        delta: In how many of them one member is, typically or at most; None: in any number of them.
    """

    source: Source
    values: tuple[Value, ...] | None
    delta: int | None


class Function(ABC):
    """A function that a question groups by, as it is asked.

    Attributes:
        NAMES: What queries call functions of its class; no column of a policy has such a name.
        is_of_time: Whether it is of the table's time column.
        is_of_member: Whether it is of all of a member's rows, and not of one row.
        is_several_of_member: Whether a member is in several of its values whatever else it is grouped by.
        sees_all_before: Whether rows before the question's range take part.
        is_of_range: Whether its values are the buckets of the question's range.
        needs_calendar: Whether it is of times alone whose calendar every engine knows.
        is_series: Whether a list by it is in the order of its values where nothing else is said.
        is_grouped_by: Whether GROUP BY names it.
        is_restricted: Whether its column is restricted as those are that are grouped by as they are.
        has_quantiles: Whether quantiles are released of each of its values.
    """

    NAMES: ClassVar[tuple[str, ...]]
    is_of_time: ClassVar[bool] = False
    is_of_member: ClassVar[bool] = False
    is_several_of_member: ClassVar[bool] = False
    sees_all_before: ClassVar[bool] = False
    is_of_range: ClassVar[bool] = False
    needs_calendar: ClassVar[bool] = False
    is_series: ClassVar[bool] = False
    is_grouped_by: ClassVar[bool] = True
    is_restricted: ClassVar[bool] = False
    has_quantiles: ClassVar[bool] = True

    @abstractmethod
    def meaning(self, context: Context) -> Meaning:
        """Return what it means.

        Raises:
            RefusedByPolicyError: The policy does not offer it.
            QuestionError: It has no meaning for this question.
        """

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the policy that it is of."""
        return frozenset(each.column for one in self.conditions for each in column_filters(one))

    @property
    def names(self) -> tuple[str, ...]:
        """What queries call it, and further functions of its kind."""
        return self.NAMES

    @property
    def label(self) -> str:
        """The name that an answer gives it where the question gives none; empty: as in queries."""
        return ""

    @property
    def conditions(self) -> tuple[Filter, ...]:
        """The conditions that it consists of."""
        return ()

    @property
    def row_filters(self) -> tuple[Filter, ...]:
        """The conditions that a row has to meet to have a value."""
        return ()

    @property
    def values(self) -> tuple[Value, ...] | None:
        """All that it can have; None: the policy says it, or the range of time."""
        return None

    @property
    def has_texts(self) -> bool:
        """Whether its values are texts."""
        return False

    def require_beside(self, others: Sequence[Function]) -> None:
        """Refuse functions that have no meaning beside it.

        Raises:
            QuestionError: `field` is `dimensions`.
        """
        del others


@dataclass(frozen=True)
class OfColumn(Function):
    """A function of one column."""

    column: str

    @property
    def columns(self) -> frozenset[str]:
        """The column."""
        return frozenset({self.column})


def numbered(name: str) -> tuple[str, ...]:
    """Return the names of a function of which a question may have several, as many as it may group by."""
    return tuple(name if place == 1 else f"{name}_{place}" for place in range(1, 5))

"""In how many elements a member counts, and what a policy states on that ground: the block as its author wrote it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, RootModel

from dp_service.queries.policy_types import (
    MAXIMUM_DOMAIN_SIZE,
    MAXIMUM_NAMES,
    MAXIMUM_PERIODS,
    MAXIMUM_STATED,
    Identifier,
    PowerOfTwo,
    Stated,
)
from dp_service.queries.times import Refresh
from dp_service.terms import GRID, BoundedBy

ONE_PERIOD = "all"
"""What a policy and a prepared copy say where the whole copy is one period."""


def _periods(value: object) -> int | Refresh:
    """Return how many periods a copy has, or how long each is."""
    if isinstance(value, str) and value in {each.value for each in Refresh}:
        return Refresh(value)
    if type(value) is int and 0 < value <= MAXIMUM_PERIODS:
        return value
    raise ValueError(
        f"expected how many periods the copy has, from 1 to {MAXIMUM_PERIODS}, or how long each is: day, week or month"
    )


_Bound = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]
_Units = Annotated[int, Field(gt=0, le=1_000_000)]


class ExpectedCount(Stated):
    """What is expected of the element at one rank."""

    rank: Annotated[int, Field(gt=0, le=1_000_000)]
    count: Annotated[int, Field(ge=0, le=2**53)]


class ExpectedCounts(RootModel[Annotated[list[ExpectedCount], Field(min_length=1, max_length=100)]]):
    """What the policy's author expects of the counts of one column, in questions without conditions.

    Each is the count of distinct members of the element at a rank, before bounding, by ascending rank and falling
    count. They come from another period or from elsewhere, never from the data that questions are about; if they are
    wrong, a `max_error` that is a part of them leads to another price, and nothing else changes.
    """

    @property
    def falls(self) -> bool:
        """Whether ranks ascend and counts do not rise."""
        return all(one.rank < other.rank and one.count >= other.count for one, other in pairwise(self.root))

    def at_least(self, rank: int) -> int:
        """Return the count that the elements up to this rank reach: that of the next rank that is stated, else 0."""
        return next((each.count for each in self.root if each.rank >= rank), 0)


class Sums(Stated):
    """What questions for sums rest on, besides the bound of contributions.

    Attributes:
        max_members: How many members the table has at most.
        max_rows: How many rows it has at most.
    """

    max_members: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]
    max_rows: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]


class _Contributions(Stated):
    """What a policy states of bounded contributions, whatever bounds them.

    Attributes:
        units: How many information units a question costs.
        least_units: How many a question costs at least that says how exact it has to be; None: `units`.
        most_units: How many such a question costs at most; None: `units`.
        min_count: The smallest count that is considered over an unknown domain.
        longest_list: How many elements of an unknown domain the first of two looks names at most; the second one counts
            these alone. None: there is one look.
        expected: What is expected of counts, for each column of which something is.
        sums: What sums rest on; None: there are none.
        largest_cut: The largest part of a number that bounds cut; None: nothing is known of it.
    """

    units: _Units
    least_units: _Units | None = None
    most_units: _Units | None = None
    min_count: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    longest_list: Annotated[int, Field(gt=0, le=MAXIMUM_NAMES)] | None = None
    expected: Annotated[dict[Identifier, ExpectedCounts], Field(max_length=100)] = Field(default_factory=dict)
    sums: Sums | None = None
    largest_cut: PowerOfTwo | None = None

    @property
    def allowed_units(self) -> range:
        """How many units a question may cost that says how exact it has to be."""
        least, most = self.least_units or self.units, self.most_units or self.units
        return range(min(least, self.units), max(most, self.units) + 1)

    @property
    def periods(self) -> int | Refresh:
        """How many periods the data have, or how long each of them is: a question's range then decides."""
        return 1


class InQuery(_Contributions):
    """The query bounds members, by what is typical of each column."""

    bounded_by: Annotated[Literal[BoundedBy.IN_QUERY], Field(alias="bound")]


class Assumed(_Contributions):
    """The policy's author promises in how many elements of a question a member counts at most: `delta`."""

    bounded_by: Annotated[Literal[BoundedBy.ASSUMED], Field(alias="bound")]
    delta: _Bound


class Prepared(_Contributions):
    """The table is a copy that `gris bound` made.

    Attributes:
        delta: In how many elements a member counts in full in each period.
        elements: By which columns the copy is bounded.
        period: The column with the periods, or `ONE_PERIOD`.
        stated_periods: How many periods the copy has, or how long each of them is; None: one.
    """

    bounded_by: Annotated[Literal[BoundedBy.PREPARED], Field(alias="bound")]
    delta: _Bound
    elements: Annotated[list[Identifier], Field(min_length=1, max_length=4)]
    period: Identifier
    stated_periods: Annotated[int | Refresh | None, BeforeValidator(_periods), Field(alias="periods")] = None

    @property
    def periods(self) -> int | Refresh:
        """How many periods the copy has, or how long each of them is: a question's range then decides."""
        return self.stated_periods or 1


Contributions = Annotated[InQuery | Prepared | Assumed, Field(discriminator="bounded_by")]
"""In how many elements a member counts, why, and what a release of such counts costs."""


def promised(stated: Contributions) -> int | None:
    """Return the Delta of a promise, or of a copy; None: the query bounds members, by what is typical of columns."""
    return None if stated.bounded_by is BoundedBy.IN_QUERY else stated.delta


def grid_of(stated: Contributions) -> int:
    """Return on which grid counts and sums of few steps are: that of weights, where members have weights."""
    return 1 if stated.bounded_by is BoundedBy.ASSUMED else GRID

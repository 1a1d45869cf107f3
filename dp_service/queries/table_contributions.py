"""In how many elements a member counts, and what a policy states on that ground: the block as its author wrote it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import Field, RootModel, ValidationInfo, field_validator

from dp_service.queries.policy_types import (
    DEFAULT_SHARE,
    MAXIMUM_DOMAIN_SIZE,
    MAXIMUM_NAMES,
    MAXIMUM_PERIODS,
    MAXIMUM_STATED,
    Identifier,
    Share,
    Stated,
)
from dp_service.queries.times import Refresh
from dp_service.terms import BoundedBy

ONE_PERIOD = "all"
"""What a policy and a prepared copy say where the whole copy is one period."""

_Bound = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]
_Units = Annotated[int, Field(gt=0, le=1_000_000)]

# Until the block around it is read, which says it for both looks.
_OF_THE_SECOND: Any = None


class Names(Stated):
    """The first of two looks at an unknown domain, which names the elements that the second one counts.

    Attributes:
        typical: In how many elements a member counts at most in the first look.
        share: The part of the units that the first look takes, between 0 and 1.
        max_names: How many elements it names at most.
    """

    typical: _Bound = _OF_THE_SECOND
    share: Share
    max_names: Annotated[int, Field(gt=0, le=MAXIMUM_NAMES)]

    @property
    def states_bound(self) -> bool:
        """Whether the policy bounds the first look apart from the second."""
        return "typical" in self.model_fields_set

    def bounded_by(self, delta: int) -> Self:
        """Return the look with a bound, which is not taken for one that the policy states."""
        return self.model_construct(self.model_fields_set, **{**dict(self), "typical": delta})


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
        share: The part of the units that counts take.
    """

    max_members: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]
    max_rows: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]
    share: Share = DEFAULT_SHARE


class Contributions(Stated):
    """In how many elements a member counts, and what a release of such counts costs.

    Attributes:
        bounded_by: Why a member adds no more.
        typical: In how many elements a member counts in full: of a question, or of a period of a prepared copy.
        units: How many information units a question costs.
        least_units: How many a question costs at least that says how exact it has to be; None: `units`.
        most_units: How many such a question costs at most; None: `units`.
        min_count: The smallest count that is considered over an unknown domain.
        elements: By which columns a prepared copy is bounded; empty: it is no such copy.
        period: The column of a prepared copy with the periods in each of which members are bounded, or `ONE_PERIOD`.
        number_of_periods: How many periods the data have.
        calendar: Instead, how long a period is. A question's range then decides how many there are.
        names: The first of two looks; `typical` then bounds the second, within the names. None: there is one look.
        shift: Whether counts of small known domains are released relative to their total, where that helps.
        expected: What is expected of counts, for each column of which something is.
        sums: What sums rest on; None: there are none.
        buckets: In how many buckets of time a member counts at most, in questions by them alone; None: `typical`.
    """

    bounded_by: Annotated[BoundedBy, Field(strict=False, alias="bound")]
    typical: _Bound
    units: _Units
    least_units: _Units | None = None
    most_units: _Units | None = None
    min_count: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    elements: Annotated[list[Identifier], Field(min_length=1, max_length=4)] = Field(default_factory=list)
    period: Identifier | None = None
    number_of_periods: Annotated[int | None, Field(alias="periods", gt=0, le=MAXIMUM_PERIODS)] = None
    calendar: Annotated[Refresh, Field(strict=False)] | None = None
    names: Names | None = None
    shift: bool = False
    expected: Annotated[dict[Identifier, ExpectedCounts], Field(max_length=100)] = Field(default_factory=dict)
    sums: Sums | None = None
    buckets: _Bound | None = None

    @property
    def allowed_units(self) -> range:
        """How many units a question may cost that says how exact it has to be."""
        least, most = self.least_units or self.units, self.most_units or self.units
        return range(min(least, self.units), max(most, self.units) + 1)

    @property
    def periods(self) -> int | Refresh:
        """How many periods the data have; with a calendar, how long a period is."""
        return self.calendar or self.number_of_periods or 1

    @field_validator("names")
    @classmethod
    def _bounded_as_the_second(cls, names: Names | None, info: ValidationInfo) -> Names | None:
        """Where no query bounds members, the first look is bounded as the second is."""
        if names is None or names.states_bound:
            return names
        return names.bounded_by(info.data.get("typical", 0))

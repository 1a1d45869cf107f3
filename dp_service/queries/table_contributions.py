"""In how many elements a member counts, and what a policy states on that ground: the block as its author wrote it."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from pydantic import Field, RootModel

from dp_service.queries.policy_types import (
    DEFAULT_MAX_NAMES,
    DEFAULT_NAMES_SHARE,
    DEFAULT_SHARE,
    MAXIMUM_DOMAIN_SIZE,
    MAXIMUM_NAMES,
    MAXIMUM_PERIODS,
    MAXIMUM_STATED,
    Identifier,
    PowerOfTwo,
    Share,
    Stated,
)
from dp_service.queries.times import Refresh
from dp_service.terms import BoundedBy

ONE_PERIOD = "all"
"""What a policy and a prepared copy say where the whole copy is one period."""

_Bound = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]
_Units = Annotated[int, Field(gt=0, le=1_000_000)]


class Names(Stated):
    """The first of two looks at an unknown domain, which names the elements that the second one counts.

    Attributes:
        typical: How many elements of a member count in full in the first look; None: half as many as in the second.
        share: The part of the units that the first look takes, between 0 and 1.
        max_names: How many elements it names at most.
    """

    typical: _Bound | None = None
    share: Share = DEFAULT_NAMES_SHARE
    max_names: Annotated[int, Field(gt=0, le=MAXIMUM_NAMES)] = DEFAULT_MAX_NAMES


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
        delta: In how many elements a member counts at most, as is promised: of a question, or of a period of a prepared
            copy. None: the query bounds members, by what is typical of each column.
        typical: What is typical of columns, buckets and parts of time that do not state it themselves.
        units: How many information units a question costs.
        least_units: How many a question costs at least that says how exact it has to be; None: `units`.
        most_units: How many such a question costs at most; None: `units`.
        min_count: The smallest count that is considered over an unknown domain.
        elements: By which columns a prepared copy is bounded; empty: it is no such copy.
        period: The column of a prepared copy with the periods in each of which members are bounded, or `ONE_PERIOD`.
        number_of_periods: How many periods the data have.
        calendar: Instead, how long a period is. A question's range then decides how many there are.
        names: The first of two looks; the second one counts within the names. None: there is one look.
        shift: Whether counts of small known domains are released relative to their total, where that helps.
        expected: What is expected of counts, for each column of which something is.
        sums: What sums rest on; None: there are none.
        largest_cut: The largest part of a number that bounds cut; None: nothing is known of it.
    """

    bounded_by: Annotated[BoundedBy, Field(strict=False, alias="bound")]
    delta: _Bound | None = None
    typical: _Bound | None = None
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
    largest_cut: PowerOfTwo | None = None

    @property
    def allowed_units(self) -> range:
        """How many units a question may cost that says how exact it has to be."""
        least, most = self.least_units or self.units, self.most_units or self.units
        return range(min(least, self.units), max(most, self.units) + 1)

    @property
    def periods(self) -> int | Refresh:
        """How many periods the data have; with a calendar, how long a period is."""
        return self.calendar or self.number_of_periods or 1

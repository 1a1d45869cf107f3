"""In how many elements a member counts, and what a policy states on that ground."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.queries.times import Refresh
from dp_service.terms import Answering, BoundedBy


@dataclass(frozen=True)
class Names:
    """The first of two looks at an unknown domain, which names the elements that the second one counts.

    Attributes:
        delta_1: In how many elements a member counts at most in the first look.
        share: The part of the units that the first look takes, between 0 and 1.
        max_names: How many elements it names at most.
    """

    delta_1: int
    share: Fraction
    max_names: int


@dataclass(frozen=True)
class ExpectedCounts:
    """What the policy's author expects of the counts of one column, in questions without conditions.

    `by_rank` has pairs of a rank and the count of distinct members of the element at this rank, before bounding, by
    ascending rank and falling count. They come from another period or from elsewhere, never from the data that
    questions are about; if they are wrong, less is found than expected, and nothing else changes.
    """

    column: str
    by_rank: tuple[tuple[int, int], ...]

    def at_least(self, rank: int) -> int:
        """Return the count that the elements up to this rank reach: that of the next rank that is stated, else 0."""
        return next((count for stated, count in self.by_rank if stated >= rank), 0)

    def at_most(self, rank: int) -> int | None:
        """Return the count that the elements from this rank on do not exceed; None: nothing is stated of them."""
        return next((count for stated, count in reversed(self.by_rank) if stated <= rank), None)


@dataclass(frozen=True)
class Choice:
    """Between which ways of answering the service chooses the cheapest that is expected to find all k elements.

    Attributes:
        among: The ways; of equal prices the first is chosen.
        units: How many information units a question of bounded contributions may cost, ascending.
        kept: The part of a count that bounding to `delta_0` is expected to leave.
        kept_names: The same of the first of two looks; None: it has the bound of the second, or there is none.
        expected: What is expected of counts, for each column of which something is.
    """

    among: tuple[Answering, ...]
    units: tuple[int, ...]
    kept: Fraction
    kept_names: Fraction | None
    expected: tuple[ExpectedCounts, ...]


@dataclass(frozen=True)
class Sums:
    """What questions for sums rest on, besides the bound of contributions.

    Attributes:
        max_members: How many members the table has at most.
        max_rows: How many rows it has at most.
        share: The part of the units that counts take.
    """

    max_members: int
    max_rows: int
    share: Fraction


@dataclass(frozen=True)
class Totals:
    """What totals beside a list by two columns rest on, besides the bound of contributions.

    Attributes:
        share: The part of the units that totals take.
        one_value: The columns of which a member has one value, as the author of the policy promises.
    """

    share: Fraction
    one_value: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contributions:
    """In how many elements a member counts, and what a release of such counts costs.

    Attributes:
        bounded_by: Why a member counts in no more elements.
        delta_0: In how many elements a member counts at most: of a question, or of a period of a prepared copy.
        units: How many information units a question costs.
        min_count: The smallest count that is considered over an unknown domain.
        elements: By which columns a prepared copy is bounded; empty: it is no such copy.
        period: The column of a prepared copy with the periods in each of which members are bounded; None: there is one
            period.
        periods: How many periods the data have; with a calendar, how long a period is. A question's range then decides
            how many there are.
        names: The first of two looks; `delta_0` then bounds the second, within the names. None: there is one look.
        shift: Whether counts of small known domains are released relative to their total, where that helps.
        choice: What the service may choose instead; None: everything is answered as stated here.
        sums: What sums rest on; None: there are none.
        sharpening: How many units a sharpening of counts may take at most; None: there is none.
        buckets: In how many buckets of time a member counts at most, in questions by them alone; None: `delta_0`.
        totals: What totals rest on; None: there are none.
    """

    bounded_by: BoundedBy
    delta_0: int
    units: int
    min_count: int = 1
    elements: tuple[str, ...] = ()
    period: str | None = None
    periods: int | Refresh = 1
    names: Names | None = None
    shift: bool = False
    choice: Choice | None = None
    sums: Sums | None = None
    sharpening: int | None = None
    buckets: int | None = None
    totals: Totals | None = None

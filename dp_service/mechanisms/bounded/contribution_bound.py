"""What one member can change once its contributions are bounded.

In each of P periods a member adds, in squared l2 norm, at most what Delta elements add in each of which it counts tau
times. Over all periods:

* COUNT(DISTINCT member): a member counts once in an element, in whichever periods it holds it. Its contribution to an
  element is at most the largest of those of its periods, so the squared l2 distance is at most P Delta.
* COUNT(*) of events: its contribution to an element is the sum of those of its periods. The norms of P periods add up
  to at most P tau sqrt(Delta), so the squared distance is at most P^2 tau^2 Delta.
* Distinct values of a column, of each member at most tau in an element (`queries.render.distinct`): a value counts once
  in an element, also where several members have it, so with a member the union has at most its own values more, and
  never less. That is at most what so many events would change, and they are counted as events.

Where members are weighted (`dp_service.bounding.weights`), counts are on a grid: all of this times the grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dp_service.bounding.weights import least_kept
from dp_service.mechanisms.parameters import require_positive_integer


class Counted(StrEnum):
    """What the counts are of."""

    MEMBERS = "members"
    EVENTS = "events"


@dataclass(frozen=True)
class ContributionBound:
    """In each of `periods` periods a member adds at most what `typical` elements of `tau` add, times `grid`.

    `grid` is 1 where members count in at most `typical` elements, and counts are whole.

    Raises:
        ValueError: A field is no positive integer, or `tau` is not 1 where distinct members are counted; the message
            names the field.
    """

    typical: int
    tau: int = 1
    periods: int = 1
    counted: Counted = Counted.MEMBERS
    grid: int = 1

    def __post_init__(self) -> None:
        require_positive_integer("typical", self.typical)
        require_positive_integer("tau", self.tau)
        require_positive_integer("periods", self.periods)
        require_positive_integer("grid", self.grid)
        if self.counted is Counted.MEMBERS and self.tau != 1:
            raise ValueError(f"tau must be 1 where distinct members are counted, got {self.tau}")

    @property
    def squared_distance(self) -> int:
        """D, the largest squared l2 distance between the histograms of neighbours.

        >>> ContributionBound(32).squared_distance
        32
        >>> ContributionBound(32, tau=2, periods=3, counted=Counted.EVENTS).squared_distance
        1152
        """
        if self.counted is Counted.MEMBERS:
            return self.periods * self.typical * self.grid**2
        return self.periods**2 * self.tau**2 * self.typical * self.grid**2

    @property
    def contributions(self) -> range:
        """What a member can add to an element of an unknown domain, from the least to the largest.

        Where it counts in so many elements, it does no better with less than tau in some of them.
        """
        periods = 1 if self.counted is Counted.MEMBERS else self.periods
        least = self.tau if self.grid == 1 else least_kept(self.grid)
        return range(least, periods * self.tau * self.grid + 1)

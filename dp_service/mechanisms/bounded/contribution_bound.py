"""What one member can change once its contributions are bounded.

In each of P periods a member counts in at most Delta elements, in each by at most tau. Over all periods:

* COUNT(DISTINCT member): a member counts once in an element, in whichever periods it holds it. It changes at most
  P Delta counts by 1: the squared l2 distance is at most P Delta.
* COUNT(*) of events: with s_i the number of periods in which a member counts in element i, it changes count i by at
  most s_i tau, where s_i <= P and the sum of all s_i is at most P Delta. The sum of (s_i tau)^2 is largest where
  Delta elements have s_i = P: the squared distance is at most P^2 tau^2 Delta.
* Distinct values of a column, of each member at most tau in an element (`queries.render.distinct`): a value counts once
  in an element, also where several members have it, so with a member the union has at most its own values more, and
  never less. That is at most what so many events would change, and they are counted as events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from dp_service.mechanisms.parameters import require_positive_integer


class Counted(StrEnum):
    """What the counts are of."""

    MEMBERS = "members"
    EVENTS = "events"


class Newcomers(NamedTuple):
    """Elements that one member alone may bring: how large it can make a count, and at most how many such there are."""

    largest_change: int
    at_most: Fraction


@dataclass(frozen=True)
class ContributionBound:
    """In each of `periods` periods a member counts in at most `typical` elements, in each by at most `tau`.

    Raises:
        ValueError: A field is no positive integer, or `tau` is not 1 where distinct members are counted; the message
            names the field.
    """

    typical: int
    tau: int = 1
    periods: int = 1
    counted: Counted = Counted.MEMBERS

    def __post_init__(self) -> None:
        require_positive_integer("typical", self.typical)
        require_positive_integer("tau", self.tau)
        require_positive_integer("periods", self.periods)
        if self.counted is Counted.MEMBERS and self.tau != 1:
            raise ValueError(f"tau must be 1 where distinct members are counted, got {self.tau}")

    @property
    def squared_distance(self) -> int:
        """The largest squared l2 distance between the histograms of neighbours.

        >>> ContributionBound(32).squared_distance
        32
        >>> ContributionBound(32, tau=2, periods=3, counted=Counted.EVENTS).squared_distance
        1152
        """
        if self.counted is Counted.MEMBERS:
            return self.periods * self.typical
        return self.periods**2 * self.tau**2 * self.typical

    def newcomers(self) -> Iterator[Newcomers]:
        """Yield, from the largest change to the smallest, which elements one member alone may bring.

        A member that counts in an element in s periods spends s of its P Delta chances on it, so there are at most
        P Delta / s such elements. How many there are of each s is up to the member: it has P Delta chances in
        all, and an element of s periods may be shown with s / (P Delta) of the delta.
        """
        chances = self.periods * self.typical
        if self.counted is Counted.MEMBERS:
            yield Newcomers(1, Fraction(chances))
            return
        for present in range(self.periods, 0, -1):
            yield Newcomers(present * self.tau, Fraction(chances, present))

"""The parameters of a release of bounded contributions, and of the looks that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dp_service.terms import GRID, BoundedBy, Bounding


@dataclass(frozen=True)
class NamesLook:
    """The first of two looks: it finds the elements that the second one counts.

    Attributes:
        typical: In how many elements a member counts in full in this look, in each period.
        units: u_1, how many of the release's information units this look takes; the second one takes the rest.
        most_names: M, how many elements are kept at most, by their noisy rank.
    """

    typical: int
    units: Fraction
    most_names: int

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [("names_typical", self.typical), ("names_units", self.units), ("most_names", self.most_names)]


@dataclass(frozen=True)
class BoundedContributions:
    """What a release of bounded contributions has besides what every release has.

    Attributes:
        bounded_by: What bounds how much a member counts.
        typical: Delta: in how many elements a member counts in full, in each period; with more it counts with less than
            1 in each, or in no more than these.
        periods: In how many periods of its own a question's data were bounded.
        of_events: Whether rows or values of a column are counted, and not members.
        units: How many information units the release costs.
        min_count: The smallest count that is considered; None over a known domain. Of two looks, it is the first one's.
        salt: The public salt by which the query chooses a member's elements, hexadecimal; empty if no query does.
        names: The first of two looks; `typical` is then that of the second, within the names. None: there is one look.
        shifted: Whether counts of a known domain are released relative to their total.
        values_of: The column whose distinct values are counted; empty: members or rows are.
        bounding: What the query does to bound members.
        largest_cut: The largest part of a number that is cut, as the owner states it; None: nothing is stated. No part
            of the release.
    """

    bounded_by: BoundedBy
    typical: int
    periods: int
    of_events: bool
    units: int
    min_count: int | None
    salt: str
    names: NamesLook | None = None
    shifted: bool = False
    values_of: str = ""
    bounding: Bounding = Bounding.NOTHING
    largest_cut: Fraction | None = None

    @property
    def can_cut(self) -> bool:
        """Whether a member can count with less than it has; of distinct values, each element has at most tau."""
        return self.bounding is not Bounding.NOTHING or bool(self.values_of)

    @property
    def grid(self) -> int:
        """What divides counts before they are shown."""
        return GRID if self.bounding is Bounding.WEIGHTS else 1

    def specified(self) -> list[tuple[str, object]]:
        """Return the names and values that enter the release specification, in their order."""
        return [
            ("bounded_by", self.bounded_by.name),
            ("typical", self.typical),
            ("periods", self.periods),
            ("of_events", self.of_events),
            ("units", self.units),
            ("min_count", self.min_count),
            ("salt", self.salt),
            *(() if self.names is None else self.names.specified()),
            *([("shifted", True)] if self.shifted else []),
            *([("values_of", self.values_of)] if self.values_of else []),
            ("bounding", self.bounding.name),
        ]

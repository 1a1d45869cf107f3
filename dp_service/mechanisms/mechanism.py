"""The interface that all mechanisms share."""

from typing import ClassVar, Protocol

from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.parameters import Cost
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import NoiseSource
from dp_service.terms import MechanismName


class Mechanism(Protocol):
    """The description of one private mechanism with all its parameters.

    An implementation is a frozen dataclass that checks its parameters when it is made. `version` changes
    whenever the same input and the same noise would give another result.
    """

    name: ClassVar[MechanismName]
    version: ClassVar[int]

    def worst_case_cost(self) -> Cost:
        """Return the most that a run can cost: what has to be reserved before it."""
        ...

    def cost(self, released: int, ended_in_bottom: bool) -> Cost:
        """Return what a run cost; never above the worst case.

        It is a function of what is published, so it may be published too.

        Args:
            released: How many elements were released.
            ended_in_bottom: Whether the list ended at the noisy threshold.

        Raises:
            ValueError: If the mechanism cannot have this outcome.
        """
        ...

    def run(self, histogram: Histogram, noise: NoiseSource) -> Selection:
        """Draw one release.

        Args:
            histogram: The counts, in an order of the elements that does not depend on them.
            noise: Where all randomness comes from.

        Raises:
            ValueError: If the histogram does not fit the parameters.
        """
        ...

"""The method of a publication and its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

LARGEST_RHO = 100
LEAST_RHO = Fraction(1, 10**6)
LEAST_DELTA = Fraction(1, 10**18)
LARGEST_TYPICAL = 10_000
MOST_ROUNDS = 10


class Method(StrEnum):
    """The published names of the methods.

    WEIGHTED_GAUSSIAN: each member's elements share its weight equally. SIPS (DP-SIPS): that, in rounds, without what is
    released already. POLICY_GAUSSIAN (DPSU) and GREEDY (GW): member by member, each aware of the weights so far; on one
    machine only. MAD: members take back weight that heavy elements do not need. MAD2R: MAD in two rounds.
    """

    WEIGHTED_GAUSSIAN = "gaussian"
    SIPS = "sips"
    POLICY_GAUSSIAN = "dpsu"
    GREEDY = "gw"
    MAD = "mad"
    MAD2R = "mad2r"


@dataclass(frozen=True)
class Parameters:
    """A method, the guarantee of the publication, and how many elements of a member count.

    The publication is `delta`-approximate `rho`-zCDP for adding or removing one member. `typical` is how many elements
    a member may have in each round, and `iterations` how many rounds SIPS has; the other methods do not use it.

    Raises:
        ValueError: Unless 10^-6 <= rho <= 100, 10^-18 <= delta <= 1/2, 1 <= typical <= 10,000 and
            1 <= iterations <= 10; the message names the field.
    """

    method: Method
    rho: Fraction
    delta: Fraction
    typical: int = 100
    iterations: int = 3

    def __post_init__(self) -> None:
        _require("rho", LEAST_RHO <= self.rho <= LARGEST_RHO, f"from 10^-6 to {LARGEST_RHO}", self.rho)
        _require("delta", LEAST_DELTA <= self.delta <= Fraction(1, 2), "from 10^-18 to 1/2", self.delta)
        _require(
            "typical", 1 <= self.typical <= LARGEST_TYPICAL, f"from 1 to {LARGEST_TYPICAL}", self.typical
        )
        _require(
            "iterations", 1 <= self.iterations <= MOST_ROUNDS, f"from 1 to {MOST_ROUNDS}", self.iterations
        )


def _require(field: str, holds: bool, expected: str, value: Fraction | int) -> None:
    if not holds:
        raise ValueError(f"{field} must be {expected}, got {value}")

"""What Gaussian noise costs: from information units to rho, and from rho to the variance of the noise.

Noise N_Z(0, s^2) in every integer coordinate of something that neighbours move by at most D in squared l2 distance is
rho-zCDP for s^2 = D / (2 rho) (Canonne, Kamath and Steinke 2020), but it is not as private as normal noise of that
variance. With 1/11 more it is: mu-Gaussian differentially private with mu^2 = 2 rho, and rho-zCDP as before.
`research/docs/gaussian-accounts.md` proves it, for every s^2; without the 1/11 it is false.
"""

from __future__ import annotations

from fractions import Fraction
from typing import overload

DISCRETENESS = Fraction(1, 11)
"""By how much more variance an integer coordinate needs than a real one: 0.0899 would do, and 1/12 for large s^2."""


def rho_of_units(epsilon_per: Fraction, units: Fraction | int) -> Fraction:
    """Return the rho that units of information stand for: e^2 / 8 each.

    An e-bounded-range mechanism is e^2 / 8-zCDP, and Gaussian noise of as much is (e / 2)-GDP.
    """
    return units * epsilon_per**2 / 8


@overload
def variance_for(squared_distance: Fraction | int, rho: Fraction) -> Fraction: ...
@overload
def variance_for(squared_distance: float, rho: float) -> float: ...
def variance_for(squared_distance: Fraction | float, rho: Fraction | float) -> Fraction | float:
    """Return the parameter s^2 of discrete Gaussian noise that costs rho, in squared steps of the coordinates.

    Args:
        squared_distance: D, by how much neighbours move all coordinates together, in squared steps.
        rho: What it may cost: rho-zCDP, and sqrt(2 rho)-GDP.

    >>> variance_for(32, Fraction(1, 2))
    Fraction(353, 11)
    """
    return squared_distance / (2 * rho) + DISCRETENESS

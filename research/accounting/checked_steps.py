"""The epsilon of a budget by the smallest bound: tables in floats, each checked by `certificate` in whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from research.accounting.adaptive import (
    GAUSSIAN_RESOLUTION,
    RESOLUTION,
    UpperTable,
    lower_tables,
    upper_tables,
)
from research.accounting.certificate import BITS, MAX_RANGE, Certificate, Whole, margin_of

# Whole numbers for each unit: what is rounded in the check of one.
_ROUNDED = 4
# The part by which a table grows with each unit for a margin of one: enough where it is 2^-10 of what it falls by.
_MORE = 2.0**-45
# Epsilons are whole multiples of this part of e.
STEPS_PER_E = 4096


@dataclass(frozen=True)
class BudgetEpsilon:
    """So much is `enough` for a budget at a slack, and some mechanisms need as much as is `needed`.

    `is_checked` says whether every table was checked in whole numbers, and the epsilon with them.
    """

    enough: float
    needed: float
    is_checked: bool


def budget_epsilon(
    epsilon_per: Fraction,
    units: int,
    slack: Fraction,
    *,
    gaussian: bool = False,
) -> BudgetEpsilon:
    """Work out the epsilon of so many units.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10, or not 0 < slack < 1.
        CertificateError: A table is too small somewhere.
    """
    points = GAUSSIAN_RESOLUTION if gaussian else RESOLUTION
    above = upper_tables(epsilon_per, resolution=points, gaussian=gaussian)
    below = lower_tables(epsilon_per, resolution=points, gaussian=gaussian)
    table, least = next(above), next(below)
    check = StepCheck.of(epsilon_per, table)
    if check is not None:
        check.require(None, table, units=0)
    for unit in range(1, units + 1):
        before, table, least = table, next(above), next(below)
        if check is not None:
            check.require(before, table, units=unit)
    if check is None:
        return BudgetEpsilon(table.epsilon(slack), least.epsilon(slack), is_checked=False)
    return BudgetEpsilon(check.epsilon(table, slack, units), least.epsilon(slack), is_checked=True)


@dataclass(frozen=True)
class StepCheck:
    """Checks the tables of one grid."""

    certificate: Certificate

    @classmethod
    def of(cls, epsilon_per: Fraction, table: UpperTable) -> StepCheck | None:
        """Return the check of a currency's tables; None where Gaussian noise takes part, or e is above 1."""
        if table.grid.gaussian or epsilon_per > MAX_RANGE:
            return None
        return cls(Certificate(epsilon_per, table.grid.unit, table.grid.first))

    def require(self, old: UpperTable | None, new: UpperTable, *, units: int) -> None:
        """Check a table by the one before, which the table of no unit has not.

        Raises:
            CertificateError: It is too small somewhere.
        """
        values, rest = self.whole(new, units)
        if old is None:
            self.certificate.require_start(values, rest)
        else:
            before, rest_before = self.whole(old, units - 1)
            self.certificate.require_step(before, values, rests=(rest_before, rest), units=units)

    def epsilon(self, table: UpperTable, slack: Fraction, units: int) -> float:
        """Return an epsilon that is checked to be enough for a slack, a whole number of steps; inf if there is none.

        Raises:
            CertificateError: It is not known to be enough.
        """
        step = self.certificate.e / STEPS_PER_E
        found = float(table.epsilons(_allowed(np.array([float(slack)]), self.certificate.e, units))[0])
        if found == math.inf:
            return found
        steps = math.ceil(Fraction(found) / step)
        self.require_epsilon(table, steps, slack, units)
        return math.nextafter(float(steps * step), math.inf)

    def require_epsilon(self, table: UpperTable, steps: int, slack: Fraction, units: int) -> None:
        """Check that so many steps are enough for a slack.

        Raises:
            CertificateError: They are not known to be.
        """
        values, rest = self.whole(table, units)
        self.certificate.require_epsilons(
            values,
            rest,
            np.array([steps]),
            of=self.certificate.e / STEPS_PER_E,
            slacks=np.array([int(slack * 2**BITS)]),
        )

    def whole(self, table: UpperTable, units: int) -> tuple[Whole, int]:
        """Return a table's values and its rest, rounded up, with room for what the check of each unit needs."""
        more = growth(self.certificate.e, units) * 2.0**BITS
        values = np.ceil(table.values * more).astype(np.int64) + _ROUNDED * units
        return np.minimum(values, 1 << BITS), int(np.ceil(table.rest * more)) + _ROUNDED * units


def growth(epsilon_per: Fraction, units: int) -> float:
    """Return by which factor the whole numbers of a table of so many units are larger than its floats."""
    return 1 + margin_of(epsilon_per) * units * _MORE


def _allowed(slacks: NDArray[np.float64], epsilon_per: Fraction, units: int) -> NDArray[np.float64]:
    """Return which value of a float table is at most a slack when it is a whole number, too."""
    room = (_ROUNDED * units + 2) * 2.0**-BITS
    smaller: NDArray[np.float64] = (
        (np.nextafter(slacks, 0) - room) / growth(epsilon_per, units) * (1 - 2.0**-50)
    )
    return smaller

"""Tables in floats as the whole numbers that `certificate` checks, with each epsilon that is read from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.adaptive import UpperTable
from dp_service.accounting.certificate import BITS, MAX_RANGE, Certificate, Whole, margin_of

# Whole numbers for each unit: what is rounded in the check of one.
_ROUNDED = 4
# The part by which a table grows with each unit for a margin of one: enough where it is 2^-10 of what it falls by.
_MORE = 2.0**-45


@dataclass(frozen=True)
class StepCheck:
    """Checks the tables of one grid, and epsilons that are whole multiples of `step`, one for each of the slacks."""

    certificate: Certificate
    step: Fraction
    slacks: Whole

    @classmethod
    def of(
        cls, epsilon_per: Fraction, table: UpperTable, *, step: Fraction, slacks: Sequence[Fraction]
    ) -> StepCheck | None:
        """Return the check of a currency's tables; None where Gaussian noise takes part, or e is above 1."""
        if table.grid.gaussian or epsilon_per > MAX_RANGE:
            return None
        certificate = Certificate(epsilon_per, table.grid.unit, table.grid.first)
        return cls(certificate, step, np.array([int(each * 2**BITS) for each in slacks]))

    def require(
        self, old: UpperTable | None, new: UpperTable, steps: NDArray[np.int32], *, units: int, most: int
    ) -> None:
        """Check a table by the one before, which the table of no unit has not; so many steps and more are no epsilon.

        Raises:
            CertificateError: It is too small somewhere, or an epsilon is.
        """
        values, rest = self._whole(new, units)
        if old is None:
            self.certificate.require_start(values, rest)
        else:
            before, rest_before = self._whole(old, units - 1)
            self.certificate.require_step(before, values, rests=(rest_before, rest), units=units)
        self.require_epsilons(new, steps, units=units, most=most)

    def require_epsilons(self, table: UpperTable, steps: NDArray[np.int32], *, units: int, most: int) -> None:
        """Check the epsilons that are read from the table of so many units, in milliseconds.

        Raises:
            CertificateError: One is not known to be enough for its slack.
        """
        values, rest = self._whole(table, units)
        known = steps < most
        self.certificate.require_epsilons(
            values, rest, steps[known].astype(np.int64), of=self.step, slacks=self.slacks[known]
        )

    def _whole(self, table: UpperTable, units: int) -> tuple[Whole, int]:
        """Return a table's values and its rest, rounded up, with room for what the check of each unit needs."""
        more = growth(self.certificate.e, units) * 2.0**BITS
        values = np.ceil(table.values * more).astype(np.int64) + _ROUNDED * units
        return np.minimum(values, 1 << BITS), int(np.ceil(table.rest * more)) + _ROUNDED * units


def growth(epsilon_per: Fraction, units: int) -> float:
    """Return by which factor the whole numbers of a table of so many units are larger than its floats."""
    return 1 + margin_of(epsilon_per) * units * _MORE


def allowed(slacks: NDArray[np.float64], epsilon_per: Fraction, units: int) -> NDArray[np.float64]:
    """Return which value of a float table is at most a slack when it is a whole number, too."""
    room = (_ROUNDED * units + 2) * 2.0**-BITS
    smaller: NDArray[np.float64] = (
        (np.nextafter(slacks, 0) - room) / growth(epsilon_per, units) * (1 - 2.0**-50)
    )
    return smaller

"""A plan for totals, and what an engine answers to it."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from dp_service.parameters.aggregates import SummedValue, SumsReleased, TotalsReleased
from dp_service.parameters.contributions import BoundedContributions
from dp_service.parameters.numbers import Plain, ShownNumber
from dp_service.releases.histogram import TypedHistogram, checked_histogram
from dp_service.releases.kinds import versions
from dp_service.releases.plan import Plan
from dp_service.terms import BoundedBy, ColumnType, CountNoise, MechanismName
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.identities import GUMBEL
from tests.unit.dp_service.plans import PLAN

TYPES = (ColumnType.STRING, ColumnType.STRING)
STATED = BoundedContributions(
    BoundedBy.IN_QUERY, typical=2, periods=1, of_events=True, units=6, min_count=3, salt="5a17"
)
CLAMP = Clamp(0, 6)
SUMS = SumsReleased(
    Fraction(1, 2),
    (SummedValue("paid", Fraction(1, 2), CLAMP.low, CLAMP.high, Fraction(1, 2)),),
    (ShownNumber(Plain(0), "sum_paid_of_rows"),),
)
TOTALS = TotalsReleased(0, "country", Fraction(1, 4), one_value=False)
# Country, product, rows, and the sum of what was paid, in steps. Some are near the threshold, and some below.
ROWS = [
    ("A", "p", 90, 301),
    ("A", "q", 61, 122),
    ("A", "r", 40, 0),
    ("B", "p", 55, 330),
    ("B", "q", 2, 7),
    ("C", "r", 4, 4),
]


def plan_of(*, known: bool = False, k: int | None = None, fresh: bytes = b"", summed: bool = True) -> Plan:
    """Return a plan for totals by the first of two columns."""
    domain = tuple((a, b) for a in "ABCD" for b in "pqr") if known else None
    parameters = dataclasses.replace(
        GUMBEL,
        mechanism=MechanismName.BOUND_MOMENTS if summed else MechanismName.BOUND_GAUSS,
        epsilon_per=Fraction(1, 4),
        delta=Fraction(1, 10),
        tau=2,
        delta_l0=2,
        d_bar=None,
        k=k,
        count_noise=CountNoise.GAUSSIAN,
        domain=domain,
        contributions=dataclasses.replace(STATED, min_count=None) if known else STATED,
        sums=SUMS if summed else None,
        totals=TOTALS,
    )
    return dataclasses.replace(
        PLAN,
        columns=(("country", ColumnType.STRING), ("product", ColumnType.STRING)),
        parameters=parameters,
        row_limit=1000,
        drawn_by=versions(parameters),
        fresh=fresh,
    )


def histogram(*, summed: bool = True) -> TypedHistogram:
    """Return what an engine answered."""
    rows = sorted(ROWS, key=lambda row: -row[2])
    centred = [2 * paid - CLAMP.centre * n for _, _, n, paid in rows]
    return checked_histogram(
        TYPES,
        [[row[0] for row in rows], [row[1] for row in rows]],
        [row[2] for row in rows],
        [centred] if summed else [],
        row_limit=1000,
        clamps=[CLAMP] if summed else [],
    )

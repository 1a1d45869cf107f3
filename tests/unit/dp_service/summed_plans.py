"""A plan for sums by two columns."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from dp_service.parameters.aggregates import SummedValue, SumsReleased
from dp_service.parameters.contributions import BoundedContributions
from dp_service.parameters.numbers import Plain, ShownNumber
from dp_service.releases.kinds import versions
from dp_service.releases.plan import Plan
from dp_service.terms import BoundedBy, ColumnType, CountNoise, MechanismName
from tests.unit.dp_service.identities import GUMBEL
from tests.unit.dp_service.plans import PLAN

STATED = BoundedContributions(
    BoundedBy.IN_QUERY, typical=2, periods=1, of_events=True, units=6, min_count=3, salt="5a17"
)
SUMS = SumsReleased(
    Fraction(1, 2),
    (SummedValue("paid", Fraction(1, 2), 0, 6, Fraction(1, 2)),),
    (ShownNumber(Plain(0), "sum_paid_of_rows"),),
)


def plan_of(*, known: bool = False, k: int | None = None) -> Plan:
    """Return a plan for sums by two columns."""
    domain = tuple((a, b) for a in "ABCD" for b in "pqr") if known else None
    parameters = dataclasses.replace(
        GUMBEL,
        mechanism=MechanismName.BOUND_MOMENTS,
        epsilon_per=Fraction(1, 4),
        delta=Fraction(1, 10),
        tau=2,
        delta_l0=2,
        d_bar=None,
        k=k,
        count_noise=CountNoise.GAUSSIAN,
        domain=domain,
        contributions=dataclasses.replace(STATED, min_count=None) if known else STATED,
        sums=SUMS,
    )
    return dataclasses.replace(
        PLAN,
        columns=(("country", ColumnType.STRING), ("product", ColumnType.STRING)),
        parameters=parameters,
        row_limit=1000,
        drawn_by=versions(parameters),
    )

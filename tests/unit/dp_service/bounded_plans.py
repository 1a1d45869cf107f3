"""A plan for bounded contributions."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from dp_service.mechanisms import Currency
from dp_service.parameters.contributions import BoundedContributions
from dp_service.releases.kinds import versions
from dp_service.releases.plan import Plan
from dp_service.terms import BoundedBy, ColumnType, CountNoise, MechanismName
from tests.unit.dp_service.identities import GUMBEL
from tests.unit.dp_service.plans import PLAN

NAMES = list("abcdefgh")
CURRENCY = Currency(Fraction(1, 4), Fraction(1, 100))
STATED = BoundedContributions(
    BoundedBy.IN_QUERY, typical=3, periods=1, of_events=True, units=5, min_count=4, salt="5a17"
)


def plan_of(stated: BoundedContributions = STATED, *, k: int | None = None, known: bool = False) -> Plan:
    """Return a plan over one text column, with tau = 2."""
    parameters = dataclasses.replace(
        GUMBEL,
        mechanism=MechanismName.BOUND_GAUSS,
        epsilon_per=CURRENCY.epsilon_per,
        delta=CURRENCY.delta,
        tau=2,
        delta_l0=stated.typical,
        d_bar=None,
        k=k,
        count_noise=CountNoise.GAUSSIAN,
        domain=tuple((name,) for name in [*NAMES, "nobody"]) if known else None,
        contributions=dataclasses.replace(stated, min_count=None) if known else stated,
    )
    return dataclasses.replace(
        PLAN,
        columns=(("name", ColumnType.STRING),),
        parameters=parameters,
        row_limit=100_000_000,
        drawn_by=versions(parameters),
    )

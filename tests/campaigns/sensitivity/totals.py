"""What one member moves totals by, through the engine's answer and up to where noise is added."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dp_service.mechanisms.aggregates import BoundMoments, DrillDown
from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.queries.resolution import Resolution
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds import kind_of
from dp_service.releases.kinds.totals import WithTotals
from dp_service.releases.releasing import counted
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import Scalar
from tests.support.silent_noise import SilentNoise
from tests.unit.dp_service.identities import KEY

Numbers = dict[Scalar, tuple[int, ...]]


def true_totals(resolution: Resolution, answer: TypedHistogram) -> Numbers:
    """Return count, sums and own counts of every total, as they are before noise is added."""
    plan = plan_for(resolution, "v", KEY, IssueContext(0, bytes(32)))
    kind = kind_of(plan.parameters)
    assert isinstance(kind, WithTotals)
    rows = counted(plan, answer)
    found = kind.draw_totals(rows, np.arange(len(rows.elements)), SilentNoise())
    columns = [found.counts.tolist(), *(column.tolist() for column in found.sums)]
    return dict(zip(found.values, zip(*columns, strict=True), strict=True))


def relative_loss(resolution: Resolution, whole: Numbers, without: Numbers) -> Fraction:
    """Return the zCDP that what changed is charged as, relative to what is charged for totals."""
    mechanism = kind_of(resolution.parameters).mechanism
    assert isinstance(mechanism, DrillDown)
    totals, variances = mechanism.totals, [mechanism.total_variance]
    if isinstance(totals, BoundMoments):
        places = range(len(totals.columns))
        own = [totals.own_count_variance(place) for place in places]
        variances += [totals.sum_variance(place) for place in places]
        variances += [each for each in own if each is not None]
    nothing = (0,) * len(variances)
    changes = [
        np.subtract(whole.get(value, nothing), without.get(value, nothing)).tolist()
        for value in whole.keys() | without.keys()
    ]
    rho = sum(
        (
            Fraction(change**2) / (2 * (variance - DISCRETENESS))
            for each in changes
            for change, variance in zip(each, variances, strict=True)
        ),
        Fraction(0),
    )
    return rho / totals.rho

"""The block `contributions.totals` of a table: totals beside lists by two columns."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.queries.table_contributions import Contributions
from dp_service.queries.tables import Policy, Table


def faults_of_totals(policy: Policy, table: Table, block: Contributions) -> Iterator[tuple[str, str]]:
    """Yield what the block has wrong, as keys below `contributions` with what was expected."""
    totals = block.totals
    if totals is None:
        return
    grouped = {column.name for column in table.columns if column.group_by}
    for name in totals.one_value:
        if name not in grouped:
            yield "totals.one_value", f"{name}: expected a column that questions may group by"
    if len(set(totals.one_value)) < len(totals.one_value):
        yield "totals.one_value", "expected each column once"
    rho = rho_of_units(policy.currency.epsilon_per, block.allowed_units[0])
    if any(variance > MAX_VARIANCE for variance in _variances(table, block, totals.share, rho)):
        yield (
            "totals.share",
            "expected another share, a smaller typical or tau, narrower bounds of values, or more units: the noise is "
            "too large to be drawn",
        )


def _variances(table: Table, block: Contributions, share: Fraction, rho: Fraction) -> Iterator[Fraction]:
    """Yield the variance of each number that totals take, and of each that the rows beside them then take.

    A calendar's periods are known with a question only, so here there is one.
    """
    periods = block.periods if isinstance(block.periods, int) else 1
    weights = sum(column.weight for column in table.values)
    for tau in (1, *(() if table.measures.events is None else (table.measures.events.tau,))):
        of_total = (periods * block.typical * tau) ** 2, share * rho
        of_row = periods**2 * block.typical * tau**2, (1 - share) * rho
        for distance, paid in (of_total, of_row):
            yield variance_for(distance, paid)
            for column in table.values if block.sums is not None else ():
                of_rows = column.bounds.rows.width if table.measures.events else 0
                width = max(column.bounds.totals.width, of_rows)
                # A count of its own takes at most 15/16 of a column's share.
                part = (1 - block.sums.share) * Fraction(column.weight, weights) / 16 if block.sums else 1
                yield variance_for(width**2 * distance, paid * part)

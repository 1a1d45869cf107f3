"""Funnels: of each member, how many of its rows meet the condition of each step, 0 of none.

The deepest step is the last one before a number of 0.
"""

from __future__ import annotations

from dp_service.queries.canonical_columns import Condition
from dp_service.queries.functions.funnels import QueryFunnel
from dp_service.queries.render.conditions import written_condition
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.render.expressions import MemberFunction, member_key


def written_funnel(source: QueryFunnel, dialect: Dialect) -> MemberFunction:
    """Write what a funnel takes of a member's rows."""
    measured = (
        f"SUM({_is_met(condition, dialect)}) AS {_met(place, dialect)}"
        for place, condition in enumerate(source.steps)
    )
    return MemberFunction(tuple(measured), counting=f"{_met(0, dialect)} > 0")


@member_key.register
def _key(source: QueryFunnel, dialect: Dialect) -> str:
    steps = len(source.steps)
    cases = " ".join(
        f"WHEN {_met(place, dialect)} = 0 THEN CAST({place} AS BIGINT)" for place in range(1, steps)
    )
    return f"CASE {cases} ELSE CAST({steps} AS BIGINT) END"


def _is_met(condition: Condition, dialect: Dialect) -> str:
    """Write 1 or 0; the cast keeps Pinot's planner from a filter in its place (`sums.at_most`)."""
    return (
        f"CAST(CASE WHEN {written_condition(condition, dialect, is_nested=True)} THEN 1 ELSE 0 END AS BIGINT)"
    )


def _met(place: int, dialect: Dialect) -> str:
    return identifier(f"gris_met_{place + 1}", dialect)

"""Funnels: of each member, how many of its rows meet the condition of each step, 0 of none.

The deepest step is the last one before a number of 0.

In order of time each row has a place among its member's times first, from 1, the same where times are equal, and no
number of an engine is too small for it. Then one window after another has the place of the first row of a step: the
least of those that meet it behind that of the step before, and one behind all where there is none. A member's rows at
this place are those that are counted of the step. Every window is of one member in one element.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.canonical_columns import Condition
from dp_service.queries.functions.funnels import QueryFunnel
from dp_service.queries.functions.ordered_funnels import QueryOrderedFunnel
from dp_service.queries.render.conditions import column_of_times, written_condition
from dp_service.queries.render.dialects import Dialect, identifier
from dp_service.queries.render.expressions import MemberFunction, member_key


def written_funnel(source: QueryFunnel, dialect: Dialect) -> MemberFunction:
    """Write what a funnel takes of a member's rows."""
    measured = (
        f"SUM({_is_met(condition, dialect)}) AS {_met(place, dialect)}"
        for place, condition in enumerate(source.steps)
    )
    return MemberFunction(tuple(measured), counting=f"{_met(0, dialect)} > 0")


def written_in_order(source: QueryOrderedFunnel, dialect: Dialect) -> MemberFunction:
    """Write what a funnel in order of time takes of a member's rows."""

    def nested(rows: str, selected: list[str], members: list[str]) -> str:
        return _in_order(source, rows, selected, members, dialect)

    place = identifier(_PLACE, dialect)
    measured = (
        f"SUM(CAST(CASE WHEN {place} = {_reached(step, dialect)} THEN 1 ELSE 0 END AS BIGINT)) AS {_met(step, dialect)}"
        for step in range(len(source.in_order))
    )
    return MemberFunction(tuple(measured), counting=f"{_met(0, dialect)} > 0", nested=(nested,))


_TIME, _PLACE = "gris_time", "gris_place"
# No member has so many rows, and doubles hold it.
_NO_PLACE = 2**52


def _in_order(
    source: QueryOrderedFunnel, rows: str, selected: list[str], members: list[str], dialect: Dialect
) -> str:
    """Write rows with their place in time, and the place where their member reaches each step."""
    time, place = identifier(_TIME, dialect), identifier(_PLACE, dialect)
    within = f"OVER (PARTITION BY {', '.join(members)}"
    met = [_met(step, dialect) for step in range(len(source.in_order))]
    named = [f"{_is_met(each, dialect)} AS {name}" for each, name in zip(source.in_order, met, strict=True)]
    key = column_of_times(source.by, dialect, is_nested=True)
    found = " ".join([f"SELECT {', '.join([*selected, f'{key} AS {time}', *named])}", f"FROM {rows}"])
    columns = [*members, *met]
    ranked = f"CAST(DENSE_RANK() {within} ORDER BY {time} ASC) AS BIGINT)"
    for name, step in ((place, ranked), *_steps(met, place, within, dialect)):
        around = f"FROM ({found}) AS {identifier('gris_rows', dialect)}"
        found = " ".join([f"SELECT {', '.join([*columns, f'{step} AS {name}'])}", around])
        columns.append(name)
    return f"({found}) AS {identifier('gris_in_order', dialect)}"


def _steps(met: list[str], place: str, within: str, dialect: Dialect) -> Iterator[tuple[str, str]]:
    """Yield what each step's place is called, and the least one behind that of the step before."""
    for step, name in enumerate(met):
        behind = f" AND {place} > {_reached(step - 1, dialect)}" if step else ""
        of_row = f"CASE WHEN {name} = 1{behind} THEN {place} ELSE {_NO_PLACE} END"
        yield _reached(step, dialect), f"CAST(MIN({of_row}) {within}) AS BIGINT)"


def _reached(step: int, dialect: Dialect) -> str:
    return identifier(f"gris_reached_{step + 1}", dialect)


@member_key.register
def _key(source: QueryFunnel, dialect: Dialect) -> str:
    return _deepest(len(source.steps), dialect)


@member_key.register
def _key_in_order(source: QueryOrderedFunnel, dialect: Dialect) -> str:
    return _deepest(len(source.in_order), dialect)


def _deepest(steps: int, dialect: Dialect) -> str:
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

"""The block `contributions` of a table: what its keys mean together, and with the rest of the policy.

Bounded contributions get Gaussian noise, whose units are worth their zCDP and nothing in epsilon-DP or bounded range.
So a policy with such a block has the currency of Gaussian counts: no ledger ever adds its units to others, and every
guarantee under it is accounted by zCDP alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from dp_service.noise.discrete_gaussian import MAX_VARIANCE, MIN_VARIANCE
from dp_service.queries.policy_choice import choice_of, faults_of_choice
from dp_service.queries.policy_schema import (
    FIRST_COUNT_COLUMN,
    ContributionsSchema,
    NamesSchema,
    PolicySchema,
    SumsSchema,
    TableSchema,
    TotalsSchema,
)
from dp_service.queries.policy_totals import faults_of_totals
from dp_service.queries.table_contributions import Contributions, Names, Sums, Totals
from dp_service.queries.tables import Policy, Table, TauIs
from dp_service.terms import BoundedBy, Consistency, CountNoise
from gris_serving.yaml_texts import KeyPath

ONE_PERIOD = "all"
"""What a policy and a prepared copy say where the whole copy is one period."""

RESERVED_COLUMNS = ("gris_member", "gris_rank", FIRST_COUNT_COLUMN)
"""The names that a query which bounds members gives to columns of its own."""

RESERVED_PREFIXES = ("gris_total_", "gris_sum_", "gris_used_", "gris_own_count_")
"""How the names begin that it gives to columns of members' totals, of sums, and of what these are of."""

_Fault = Callable[[KeyPath, str], None]
_Found = Iterator[tuple[str, str]]


def _is_reserved(name: str) -> bool:
    return name in RESERVED_COLUMNS or name.startswith(RESERVED_PREFIXES)


def contributions_of(schema: ContributionsSchema | None) -> Contributions | None:
    """Return the content of the block, None where there is none."""
    if schema is None:
        return None
    return Contributions(
        bounded_by=schema.bound,
        delta_0=schema.delta_0,
        units=schema.units,
        min_count=schema.min_count,
        elements=tuple(schema.elements or ()),
        period=None if schema.period == ONE_PERIOD else schema.period,
        periods=schema.calendar or schema.periods or 1,
        names=None if schema.names is None else _names(schema.names, schema.delta_0),
        shift=schema.shift,
        choice=choice_of(schema.choose, schema.units),
        sums=None if schema.sums is None else _sums(schema.sums),
        sharpening=schema.sharpening,
        buckets=schema.buckets,
        totals=None if schema.totals is None else _totals(schema.totals),
    )


def _names(schema: NamesSchema, delta_0: int) -> Names:
    """Return the first look; where no query bounds members, it is bounded as the second is."""
    return Names(schema.delta_1 or delta_0, schema.share, schema.max_names)


def _sums(schema: SumsSchema) -> Sums:
    return Sums(schema.max_members, schema.max_rows, schema.share)


def _totals(schema: TotalsSchema) -> Totals:
    return Totals(schema.share, tuple(schema.one_value))


def check_contributions(policy: Policy, schema: PolicySchema, fault: _Fault) -> None:
    """Report what the blocks of all tables have wrong."""
    for table in policy.tables:
        stated = schema.tables[table.name]
        block = stated.contributions
        if block is None or table.contributions is None:
            continue
        path: KeyPath = ("tables", table.name, "contributions")
        if policy.count_noise is not CountNoise.GAUSSIAN:
            fault(
                path,
                "expected count_noise: gaussian in the header: these counts get Gaussian noise, whose units no ledger "
                "may add to those of Laplace noise",
            )
        found = [
            *_of_copy(table, block),
            *_of_names(block),
            *_of_shift(block),
            *_of_sharpening(table, block),
            *faults_of_choice(table, block),
            *_of_noise(policy, table, table.contributions),
            *faults_of_totals(policy, table, table.contributions),
        ]
        for key, message in found:
            fault((*path, *key.split(".")), message)
        _check_rest(table, stated, fault)


def _of_copy(table: Table, block: ContributionsSchema) -> _Found:
    """Yield what is wrong with the keys that only a prepared copy has, and must have."""
    if block.bound is not BoundedBy.PREPARED:
        for key in ("elements", "period", "periods", "calendar"):
            if getattr(block, key) is not None:
                yield key, "expected this key only with bound: prepared"
        return
    if block.elements is None:
        yield "elements", "expected the columns by which the copy is bounded, as `gris bound` was given them"
    if block.period is None:
        yield (
            "period",
            f"expected {ONE_PERIOD}, or the column of the copy's periods, as `gris bound` was given it",
        )
    if block.period not in (None, ONE_PERIOD) and (block.periods is None) == (block.calendar is None):
        yield (
            "periods",
            "expected either how many periods the copy has, or calendar: how long each of them is",
        )
    if block.period in (None, ONE_PERIOD):
        for key in ("periods", "calendar"):
            if getattr(block, key) is not None:
                yield key, "expected this key only with a period that is a column"
    if block.calendar is not None and table.time is None:
        yield "calendar", "expected a time column as well, whose ranges say how many periods a question sees"
    elif block.calendar is not None and table.time is not None and block.period != table.time.name:
        yield (
            "period",
            f"expected {table.time.name}, the time column: with calendar, `gris bound --period {table.time.name} "
            f"--calendar {block.calendar}` makes the periods of it, so that a range of time tells how many there are",
        )
    yield from _of_elements(table, block.elements or [])


def _of_elements(table: Table, elements: list[str]) -> _Found:
    if len(set(elements)) < len(elements):
        yield "elements", "expected each column once"
    grouped = {column.name for column in table.own_columns if column.group_by}
    for name in elements:
        if name not in grouped:
            yield "elements", f"{name}: expected a column that questions may group by"
    # Of a copy that is bounded by a key, members have no more of what is looked up by it.
    looked_up = {
        column.name
        for column in table.columns
        if column.group_by and column.lookup is not None and column.lookup.key.name not in elements
    }
    if elements and (grouped | looked_up) - set(elements):
        others = ", ".join(sorted((grouped | looked_up) - set(elements)))
        yield "elements", f"a copy is bounded by these columns alone: expected no group_by for {others}"


def _of_names(block: ContributionsSchema) -> _Found:
    """Yield what is wrong with the bound of the first of two looks."""
    if block.names is None:
        return
    is_in_query = block.bound is BoundedBy.IN_QUERY
    if is_in_query and block.names.delta_1 is None:
        yield "names.delta_1", "expected in how many elements a member counts in the first look"
    if not is_in_query and block.names.delta_1 is not None:
        yield (
            "names.delta_1",
            "expected this key only with bound: in_query; otherwise both looks have delta_0",
        )


def _of_sharpening(table: Table, block: ContributionsSchema) -> _Found:
    """Yield what is wrong with the units of sharpenings."""
    if block.sharpening is not None and table.consistency is Consistency.FRESH:
        yield (
            "sharpening",
            "expected none with consistency: fresh, under which no release is kept to be sharpened",
        )


def _of_shift(block: ContributionsSchema) -> _Found:
    """Yield that only a query that ranks each member's elements can count the members that it counts in any of them."""
    if block.shift and block.bound is not BoundedBy.IN_QUERY:
        yield "shift", "expected this key only with bound: in_query, whose query counts the members as well"


def _of_noise(policy: Policy, table: Table, block: Contributions) -> _Found:
    """Yield that no such noise can be drawn; a calendar's periods are known with a question only."""
    least = block.units if block.choice is None else block.choice.units[0]
    rho = least * policy.currency.epsilon_per**2 / 8
    for key, bound, part in _looks(block):
        if any(variance > MAX_VARIANCE for variance in _variances(table, block, bound, part * rho)):
            yield key, "expected less, or a smaller tau or more units: the noise is too large to be drawn"
    # Over a domain of one element a member counts in one, and all units go into it.
    most = block.units * policy.currency.epsilon_per**2 / 8
    if any(variance < MIN_VARIANCE for variance in _variances(table, block, 1, most)):
        yield "units", "expected fewer, or a smaller epsilon_per: the noise is too small to be drawn"


def _looks(block: Contributions) -> Iterator[tuple[str, int, Fraction]]:
    """Yield the key of each look's bound, the bound, and the look's part of the units."""
    names = block.names
    yield "delta_0", block.delta_0, Fraction(1) if names is None else 1 - names.share
    if block.buckets is not None:
        # Buckets are a known domain, which is counted in one look.
        yield "buckets", block.buckets, Fraction(1)
    if names is not None:
        yield "names.delta_1", names.delta_1, names.share


def _variances(table: Table, block: Contributions, bound: int, rho: Fraction) -> Iterator[Fraction]:
    """Yield the variance of each measure's noise."""
    periods = block.periods if isinstance(block.periods, int) else 1
    if table.distinct_members:
        yield periods * bound / (2 * rho)
    if table.events is not None:
        yield periods**2 * table.events.tau**2 * bound / (2 * rho)


def _check_rest(table: Table, stated: TableSchema, fault: _Fault) -> None:
    """Report keys elsewhere in the table that contributions leave without a meaning."""
    path: KeyPath = ("tables", table.name)
    if stated.d_bar is not None:
        fault((*path, "d_bar"), "expected none beside contributions: all elements with min_count are fetched")
    if stated.max_k is not None:
        fault((*path, "max_k"), "expected none beside contributions: the price does not depend on k")
    for column in table.columns:
        if column.delta is not None:
            fault(
                (*path, "columns", column.name, "delta"),
                "expected none beside contributions: delta_0 says in how many elements a member counts",
            )
        if _is_reserved(column.name.casefold()):
            fault(
                (*path, "columns", column.name),
                "expected another name: a query that bounds members gives it to a column of its own",
            )
    is_in_query = table.contributions is not None and table.contributions.bounded_by is BoundedBy.IN_QUERY
    if is_in_query and table.events is not None and table.events.tau_is is not TauIs.CLIPPED:
        fault(
            (*path, "measures", "events", "tau_is"),
            "expected clipped: the query that bounds members clips their events too",
        )

"""The block `contributions` of a table: what its keys mean together, and with the rest of the policy.

Bounded contributions get Gaussian noise, whose units are worth nothing in epsilon-DP or bounded range. So a policy with
such a block has the currency of Gaussian counts: no ledger ever adds its units to others, and every guarantee under it
is accounted by bounds that cover it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dp_service.bounding.weights import WEIGHT_COLUMN
from dp_service.noise.discrete_gaussian import MAX_VARIANCE
from dp_service.noise.gaussian_price import rho_of_units, variance_for
from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_types import NAMES_SHARE
from dp_service.queries.table_contributions import ONE_PERIOD, Contributions, grid_of, promised
from dp_service.queries.tables import Policy, Table
from dp_service.queries.times import Refresh
from dp_service.terms import BoundedBy, CountNoise
from gris_serving.yaml_texts import KeyPath

_Found = Iterator[tuple[str, str]]


def check_contributions(policy: Policy, fault: Fault) -> None:
    """Report what the blocks of all tables have wrong."""
    for table in policy.tables:
        block = table.contributions
        _check_rows(table, fault)
        for column, message in _of_typical(table):
            fault(("tables", table.name, *column), message)
        if block is None:
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
            *_of_expected(table, block),
            *_of_noise(policy, table, block),
        ]
        for key, message in found:
            fault((*path, *key.split(".")), message)
        _check_rest(table, fault)


def _of_copy(table: Table, block: Contributions) -> _Found:
    """Yield what is wrong with how a prepared copy was made."""
    if block.bounded_by is not BoundedBy.PREPARED:
        return
    if (block.period == ONE_PERIOD) != (block.stated_periods is None):
        yield "periods", f"expected this key with a period that is a column, and none with {ONE_PERIOD}"
    if isinstance(block.periods, Refresh):
        time = None if table.time is None else table.time.name
        if time is None:
            yield (
                "periods",
                "expected a time column as well, whose ranges say how many periods a question sees",
            )
        elif block.period != time:
            yield (
                "period",
                f"expected {time}, the time column: `gris bound --period {time} --calendar {block.periods}` makes the "
                "periods of it, so that a range of time tells how many there are",
            )
    measures = table.measures
    has_rows = measures.counts_rows or table.values or table.quantiles or block.sums
    if has_rows or table.block:
        yield (
            "bound",
            "a prepared copy has members, elements and weights alone: expected no measures but distinct_members, and "
            "no values, quantiles, sums or block, which bound: in_query takes",
        )
    held = {*block.elements, table.member, block.period}
    if WEIGHT_COLUMN in {name.casefold() for name in held}:
        yield "elements", f"{WEIGHT_COLUMN}: a copy calls the weights of members so: rename the column"
    for name in sorted({column.name for column in table.own_columns} - held):
        yield (
            "elements",
            f"the copy has no column {name}: expected none but those that `gris bound` was given",
        )
    yield from _of_elements(table, block.elements)


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


def _of_expected(table: Table, block: Contributions) -> _Found:
    """Yield what is wrong with what the author expects of counts."""
    grouped = {column.name for column in table.columns if column.group_by}
    for column, stated in block.expected.items():
        if column not in grouped:
            yield "expected", f"{column}: expected a column that questions may group by"
        if not stated.falls:
            yield "expected", f"{column}: expected ascending ranks, with counts that do not rise"


def _of_noise(policy: Policy, table: Table, block: Contributions) -> _Found:
    """Yield that no such noise can be drawn; a calendar's periods are known with a question only."""
    if (block.least_units or 0) > block.units:
        yield "least_units", f"expected at most {block.units}, the units of every other question"
    if (block.most_units or block.units) < block.units:
        yield "most_units", f"expected at least {block.units}, the units of every other question"
    rho = rho_of_units(policy.currency.epsilon_per, block.allowed_units[0])
    bound = promised(block) or table.most_elements
    looks = [(bound, Fraction(1))]
    if block.longest_list is not None:
        looks = [(bound, 1 - NAMES_SHARE), (promised(block) or -(-bound // 2), NAMES_SHARE)]
    for most, part in looks:
        distances = _squared_distances(table, block, most)
        if any(variance_for(distance, part * rho) > MAX_VARIANCE for distance in distances):
            yield "units", "expected more, or fewer rows of a member: the noise is too large to be drawn"


def _squared_distances(table: Table, block: Contributions, bound: int) -> Iterator[int]:
    """Yield by how much a member moves the counts of each measure, in square and on the grid if there is one."""
    periods = block.periods if isinstance(block.periods, int) else 1
    yield periods * bound * grid_of(block) ** 2
    yield table.measures.most_squared(bound) * grid_of(block) ** 2
    # Distinct values are not weighted.
    yield from (most**2 * bound for most in table.measures.distinct.values())


def _of_typical(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """Yield where `typical` is missing, or says nothing."""
    found: list[tuple[KeyPath, bool, int | None]] = [
        (("columns", each.name, "typical"), each.group_by, each.typical) for each in table.columns
    ]
    if table.time is not None:
        for key, offered in (("buckets", table.time.buckets), ("parts", table.time.parts)):
            found += [(("time", key, str(name)), True, typical) for name, typical in offered.items()]
    numbers = {each.name: each.typical for each in table.numbers}
    stated = [(("values", name, "typical"), False, typical) for name, typical in numbers.items()]
    is_in_query = table.contributions is not None and table.contributions.bounded_by is BoundedBy.IN_QUERY
    for path, is_grouped, typical in (*found, *stated):
        if is_in_query and is_grouped and typical is None:
            yield (
                path,
                "expected how many of its values a member typically has: one with so many counts in full",
            )
        if not is_in_query and typical is not None:
            yield path, "expected this key only beside contributions with bound: in_query"


def _check_rows(table: Table, fault: Fault) -> None:
    """Report a bound of rows that the table's members do not have."""
    block, measures = table.contributions, table.measures
    path: KeyPath = ("tables", table.name, "measures")
    is_in_query = block is not None and block.bounded_by is BoundedBy.IN_QUERY
    if is_in_query and measures.events is not None:
        fault((*path, "events"), "expected rows instead, which bound: in_query divides among the elements")
    if measures.rows is not None and not is_in_query:
        fault((*path, "rows"), "expected this key only beside contributions with bound: in_query")
    stated: list[tuple[str, KeyPath, int | None]] = [
        *((each.name, ("rows",), each.rows) for each in table.values),
        *((each.name, ("grid", "rows"), each.rows) for each in table.quantiles),
    ]
    for name, key, rows in stated:
        if rows is not None and rows > (measures.rows or 0):
            fault(("tables", table.name, "values", name, *key), "expected at most rows of the measures")


def _check_rest(table: Table, fault: Fault) -> None:
    """Report keys elsewhere in the table that contributions leave without a meaning."""
    path: KeyPath = ("tables", table.name)
    if table.d_bar is not None:
        fault((*path, "d_bar"), "expected none beside contributions: all elements with min_count are fetched")
    for column in table.columns:
        if column.delta is not None:
            fault(
                (*path, "columns", column.name, "delta"),
                "expected none beside contributions, where members are bounded in all elements",
            )

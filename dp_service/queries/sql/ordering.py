"""ORDER BY and GROUP BY: what a list is in the order of, and that its groups are what is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dp_service.parameters.expressions import rises
from dp_service.parameters.numbers import Computed
from dp_service.queries.asked_numbers import AskedNumber, AskedQuantile, Counted, Measure, count_part
from dp_service.queries.sql import tree
from dp_service.queries.sql.arithmetic import number_of
from dp_service.queries.sql.numbers import (
    Count,
    is_aggregate,
    is_count,
    is_number,
    is_quantile,
    measure_of,
    numbers_of,
)
from dp_service.queries.sql.places import refuse, refused
from dp_service.queries.sql.row_functions import is_function
from dp_service.queries.sql.scope import Scope, refused_node, whole_number
from dp_service.queries.sql.select_list import Column, Dimension, SelectList
from dp_service.queries.tables import Table

_ELEMENT_ORDER = (
    "expected ORDER BY with a number descending, or with the selected columns, ascending and in the order of SELECT: "
    "select the column first that comes first, such as DATE_TRUNC(..) of a series"
)
_DESCENDING = "expected ORDER BY with a number, and then columns ascending"


@dataclass(frozen=True)
class Order:
    """What a list is in the order of: a count, or what has a place among sums and averages, or among quantiles.

    `ranked`: it is in the order of a number, `smallest_first`: ascending. `by_element`: it is in ascending order of its
    elements.
    """

    measure: Counted | None = None
    aggregate: int | None = None
    ranked: bool = False
    by_element: bool = False
    smallest_first: bool = False


def order_of(keys: Sequence[tree.Key], selected: SelectList, scope: Scope) -> Order:
    """Return what a list is in the order of: a number and then dimensions, or these alone.

    Raises:
        QuestionError: It is in another one.
    """
    if not keys:
        return Order()
    first, *rest = keys
    if is_of_elements(keys, selected, scope):
        return Order(by_element=True)
    named = _number_at(first.value, selected, scope)
    for key in rest:
        if key.descending:
            refuse(key.value, _DESCENDING)
        if _dimension_at(key.value, selected, scope) not in selected.dimensions:
            refuse(key.value, "expected ORDER BY with the count and then selected columns")
    # One total is in any order.
    smallest_first = bool(selected.dimensions) and not first.descending
    if isinstance(named, AskedNumber):
        if (counted := _count_of(named, selected)) is not None:
            if not isinstance(named.form, Computed) or not rises(named.form.expression):
                refuse(first.value, "expected ORDER BY with the count that this is computed of")
            return Order(counted, ranked=True, smallest_first=smallest_first)
        place = selected.aggregates.index(named)
        return Order(None, place, ranked=True, smallest_first=smallest_first)
    if isinstance(named, AskedQuantile):
        place = selected.quantiles.index(named)
        return Order(None, place, ranked=True, smallest_first=smallest_first)
    return Order(named, ranked=True, smallest_first=smallest_first)


def _count_of(named: AskedNumber, selected: SelectList) -> Measure | None:
    """Return the question's count if a number is computed of that alone."""
    count = Measure.DISTINCT_MEMBERS if selected.counts_members else Measure.EVENTS
    return count if set(named.parts) == {count_part(count)} else None


def is_of_elements(keys: Sequence[tree.Key], selected: SelectList, scope: Scope) -> bool:
    """Return whether the order is by selected columns and buckets, ascending; they come in the order of SELECT."""
    if _is_number(keys[0].value, selected) or not selected.dimensions:
        return False
    for key in keys:
        if key.descending:
            refuse(key.value, _ELEMENT_ORDER)
    named = tuple(_dimension_at(key.value, selected, scope) for key in keys)
    if named != selected.dimensions[: len(named)]:
        refuse(keys[0].value, _ELEMENT_ORDER)
    return True


def _is_number(node: tree.Expression, selected: SelectList) -> bool:
    """Return whether a key names a number: by its alias, by a function, or by the position of one."""
    if selected.number_called(node) is not None:
        return True
    position = whole_number(node)
    if position is None:
        return not isinstance(node, tree.Name) and not is_function(node)
    return not (
        1 <= position <= len(selected.columns) and isinstance(selected.columns[position - 1], Dimension)
    )


def _dimension_at(node: tree.Expression, selected: SelectList, scope: Scope) -> Column | None:
    """Return the selected column that a key names, or a number that it names by its position."""
    at = whole_number(node)
    if at is None:
        return selected.key(node, scope)
    return selected.columns[at - 1] if 1 <= at <= len(selected.columns) else None


def _number_at(
    node: tree.Expression, selected: SelectList, scope: Scope
) -> Counted | AskedNumber | AskedQuantile:
    """Return the count, sum, average or quantile that the first key names."""
    if isinstance(node, tree.Call) and is_number(node) and (selected.quantiles or is_quantile(node)):
        return _selected_quantile(node, selected, scope)
    if isinstance(node, tree.Call) and is_count(node):
        counted = selected.counted(measure_of(node, scope))
        of_members = Measure.DISTINCT_MEMBERS if selected.counts_members else None
        count = of_members if selected.count is None else selected.count.measure
        if count is not None and isinstance(counted, Measure) and counted is not count:
            refuse(node, "expected ORDER BY with the count that is selected")
        return counted
    if _is_beside_count(node):
        return _selected_aggregate(node, selected, scope)
    position = whole_number(node)
    if position is not None:
        named = selected.columns[position - 1] if 1 <= position <= len(selected.columns) else None
    else:
        named = selected.number_called(node)
    if isinstance(named, AskedNumber | AskedQuantile):
        return named
    if isinstance(named, Count):
        return named.measure
    if not isinstance(node, tree.Name | tree.Number):
        raise refused_node(node)
    if isinstance(node, tree.Name) and len(node.parts) > 1:
        refuse(
            node,
            "a table before the alias of the count, or before another column than the count in ORDER BY, is not "
            "accepted",
        )
    raise refused(node, "expected ORDER BY with the count first")


def _selected_quantile(node: tree.Call, selected: SelectList, scope: Scope) -> AskedQuantile:
    """Return the one quantile that a function asks for; no counts and no sums are released beside it."""
    asked = [] if not is_quantile(node) else list(numbers_of(node, None, scope))
    named = [each for each in selected.quantiles if each in asked]
    if len(asked) != 1 or not named:
        refuse(
            node,
            "expected ORDER BY beside percentiles, MIN and MAX with one of them that is selected: counts are not "
            "released with them",
        )
    return named[0]


def _is_beside_count(node: tree.Expression) -> bool:
    return isinstance(node, tree.Product | tree.Sum | tree.OverAll) or (
        isinstance(node, tree.Call) and is_aggregate(node)
    )


def _selected_aggregate(node: tree.Expression, selected: SelectList, scope: Scope) -> AskedNumber:
    asked = AskedNumber(number_of(node, scope))
    if asked not in selected.aggregates:
        refuse(node, "expected ORDER BY and HAVING with a number that is selected")
    return asked


def place_of_number(
    node: tree.Expression, selected: SelectList, measure: Counted, scope: Scope
) -> int | None:
    """Return the place of the sum or average that a condition of HAVING is on; None: it is on the count.

    Args:
        node: What is compared.
        selected: The select list.
        measure: What the question counts, whether or not it selects that.
        scope: The table.
    """
    named: Count | AskedNumber | None = None
    if _is_beside_count(node):
        named = _selected_aggregate(node, selected, scope)
    elif isinstance(node, tree.Call) and is_count(node):
        counted = selected.counted(measure_of(node, scope))
        named = counted if isinstance(counted, AskedNumber) else Count(counted)
    else:
        called = selected.number_called(node)
        named = called if isinstance(called, Count | AskedNumber) else None
    if isinstance(named, AskedNumber):
        return selected.aggregates.index(named)
    if named is None or named.measure != measure:
        refuse(
            node,
            "expected HAVING with the count, a sum or an average that is selected; conditions on columns are in WHERE",
        )
    return None


def require_groups(select: tree.Select, selected: SelectList, scope: Scope) -> None:
    """Check that the groups are of the selected columns."""
    group = select.group
    needed = [each for each in selected.dimensions if isinstance(each.of, str) or each.of.is_grouped_by]
    if group is None:
        if needed:
            refuse(select.items[0].value, _without_grouping(selected, scope.table))
        return
    if group.all_selected:
        return
    grouped = [_grouped(each, selected, scope) for each in group.keys]
    if len(grouped) != len(needed) or set(grouped) != set(needed):
        refuse(group, "expected GROUP BY with exactly the selected columns")


def _grouped(node: tree.Expression, selected: SelectList, scope: Scope) -> Dimension:
    position = whole_number(node)
    if position is None:
        return selected.key(node, scope)
    named = selected.columns[position - 1] if 1 <= position <= len(selected.columns) else None
    if not isinstance(named, Dimension):
        places = [i for i, each in enumerate(selected.columns, start=1) if isinstance(each, Dimension)]
        refuse(
            node,
            f"expected the position of a column in GROUP BY: {', '.join(map(str, places)) or 'there are none'}",
        )
    return named


def _without_grouping(selected: SelectList, table: Table) -> str:
    usable = {column.name for column in table.usable_columns if column.group_by}
    # A name that the table does not have may be a value without its quotes, which no message repeats.
    names = [str(each.of) for each in selected.dimensions]
    named = f": GROUP BY {', '.join(names)}" if set(names) <= usable else ""
    return f"expected GROUP BY with the selected columns{named}"

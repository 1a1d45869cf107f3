"""Functions of all of a member's rows: funnels, first times, and how much later a member comes back.

FUNNEL_COUNT(STEPS(a, b, ..), CORRELATE_BY(member))    Apache Pinot's, one row for each step
.., SETTINGS('strict_increase'))                       in order of time, by a word of its FUNNEL_MAX_STEP
DATE_TRUNC('month', MIN(time))                         the bucket of a member's first time
DATE_DIFF('month', MIN(time), time)                    how many buckets later a row of it is

In a whole statement first times are those of an inner one that groups by the member (`wrappers`), as SQL has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.functions.first_times import Later
from dp_service.queries.functions.funnels import Funnel
from dp_service.queries.functions.ordered_funnels import OrderedFunnel
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import condition_of
from dp_service.queries.sql.numbers import is_sum_of_ones
from dp_service.queries.sql.places import placed, refuse, refused
from dp_service.queries.sql.scope import Scope, whole_number
from dp_service.queries.sql.words import DIFFERENCES, FUNNEL, TRUNCATIONS
from dp_service.terms import Comparison

_FUNNEL_FORM = "FUNNEL_COUNT(STEPS(condition, condition, ..), CORRELATE_BY({member}))"
_IN_ORDER = "SETTINGS('strict_increase')"
_RANGE = frozenset({Comparison.LESS, Comparison.AT_MOST, Comparison.GREATER, Comparison.AT_LEAST})
_OF_MEMBERS = (
    "expected SELECT member, DATE_TRUNC('month', MIN(time)) AS first FROM a table GROUP BY member: of each member, its "
    "first time"
)
_LATER_FORM = "DATE_DIFF('month', MIN(time), time)"


def is_member_function(node: tree.Expression) -> bool:
    """Return whether a node is a funnel or a difference of times."""
    return isinstance(node, tree.Call) and (node.name == FUNNEL or node.name in DIFFERENCES)


def is_funnel(node: tree.Expression) -> bool:
    """Return whether a node is a funnel, which selects its steps and their counts."""
    return isinstance(node, tree.Call) and node.name == FUNNEL


def member_function(node: tree.Call, scope: Scope) -> Funnel | Later:
    """Return what a funnel or a difference of times groups by.

    Raises:
        QuestionError: It is of other things.
        RefusedByPolicyError: The policy does not list a column.
    """
    return _funnel(node, scope) if node.name == FUNNEL else _later(node, scope)


def first_of(node: tree.Expression) -> tree.Expression | None:
    """Return the column of which a node is a member's first time; None: it is something else."""
    is_first = isinstance(node, tree.Call) and node.name == "MIN" and len(node.arguments) == 1
    return node.arguments[0] if isinstance(node, tree.Call) and is_first and not node.distinct else None


def _funnel(node: tree.Call, scope: Scope) -> Funnel:
    form = _FUNNEL_FORM.format(member=scope.table.member)
    calls = [each for each in node.arguments if isinstance(each, tree.Call)]
    names = [each.name for each in calls]
    if (
        len(calls) != len(node.arguments)
        or names[:1] != ["STEPS"]
        or names[1:] not in ([], ["CORRELATE_BY"], ["SETTINGS"], ["CORRELATE_BY", "SETTINGS"])
        or node.distinct
    ):
        refuse(node, f"expected {form}; behind it {_IN_ORDER} for steps in order of time, and nothing else")
    for by in (each for each in calls if each.name == "CORRELATE_BY"):
        if len(by.arguments) != 1 or scope.column_name(by.arguments[0]) != scope.table.member:
            refuse(by, f"expected CORRELATE_BY({scope.table.member}), the table's member column")
    conditions = []
    for step in calls[0].arguments:
        found = condition_of(step, scope)
        if isinstance(found, bool):
            refuse(step, "a step that every row meets, or none, is not accepted: leave it out")
        conditions.append(found)
    with placed(node):
        if names[-1] == "SETTINGS":
            return OrderedFunnel(tuple(conditions), _time_of_steps(calls[-1], scope))
        return Funnel(tuple(conditions))


def _time_of_steps(settings: tree.Call, scope: Scope) -> str:
    """Return the column in whose order steps are, if settings say so."""
    time, given = scope.table.time, [each.value for each in settings.arguments if isinstance(each, tree.Text)]
    if given != ["strict_increase"] or len(settings.arguments) != 1 or time is None:
        refuse(
            settings,
            f"expected {_IN_ORDER}, each step later than the one before, of a table with a time column; without it "
            "steps are of any order",
        )
    return time.name


def _later(node: tree.Call, scope: Scope) -> Later:
    is_whole = len(node.arguments) == len(("length", "first", "time"))
    unit, start, end = node.arguments if is_whole else (node, node, node)
    named = unit.value.upper() if isinstance(unit, tree.Text) else ""
    length = next((each for each in BucketLength if each.upper() == named), None)
    first = first_of(start)
    if length is None or first is None or scope.column_name(first) != scope.column_name(end):
        refuse(
            node,
            f"{node.name} other than {_LATER_FORM}, from a member's first time to its others, is not accepted: write "
            "DATE_TRUNC('day', column) to group, or a range of days to filter",
        )
    return Later(scope.column_name(first), length)


def is_of_members(inner: tree.Select, select: tree.Select) -> bool:
    """Return whether a statement has one row for each member, with its first time: a bucket, or one around it.

    Args:
        inner: The statement.
        select: The one around it.
    """
    if inner.group is None:
        return False
    named = [each for each in inner.items if each.alias is not None and first_of(each.value) is not None]
    firsts = {each.alias.value for each in named if each.alias is not None}
    around = [_bucketed(each.value) for each in select.items]
    return any(_first_in(each.value) is not None for each in inner.items) or any(
        isinstance(of, tree.Name) and of.parts[-1].value in firsts for of in around
    )


def rows_of_members(inner: tree.Select, outer: Sequence[tree.Expression]) -> tree.Select:
    """Return the statement of a table's rows that a statement of members is of.

    What its HAVING, or the statement around it, says of first times restricts the range, which begins with the first of
    them. A lower end of the range in WHERE would leave out rows, and make later ones the first.

    Args:
        inner: The statement.
        outer: The conditions of the one around it, in terms of what the inner one selects.

    Raises:
        QuestionError: It is of something else than members and their first times.
    """
    member = grouped_by(inner)
    times = [found for each in inner.items if (found := _time_of(each.value)) is not None]
    time = times[0]
    if (
        len(times) > 1
        or len(inner.items) > 2
        or inner.distinct is not None
        or inner.limit is not None
        or inner.order
    ):
        refuse(inner.items[-1].value, _OF_MEMBERS)
    for each in inner.items:
        is_member = tree.without_places(each.value) == tree.without_places(member)
        if not is_member and _time_of(each.value) is None:
            refuse(each.value, _OF_MEMBERS)
    for part in _conditions(inner.where):
        if _names(part, time) and not _is_end(part):
            refuse(
                part,
                "expected the range of first times in HAVING MIN(time) >= .. AND MIN(time) < .. of the inner statement:"
                " in WHERE it would leave out rows that are earlier, and make later ones the first",
            )
    where = [] if inner.where is None else [inner.where]
    of_first = [*_conditions(inner.having), *outer]
    where += [_range_of(part, time) for part in of_first]
    joined = where[0] if len(where) == 1 else tree.All(inner.first, inner.last, tuple(where))
    return replace(inner, where=joined if where else None, group=None, having=None)


def _conditions(clause: tree.Expression | None) -> list[tree.Expression]:
    return [] if clause is None else list(tree.conjunction(clause))


def counting_members(select: tree.Select, member: tree.Expression) -> tree.Select:
    """Return a statement around one of members, whose rows are members, as one of a table's rows."""

    def counted(node: tree.Expression) -> tree.Expression:
        if isinstance(node, tree.OfMember):
            return node
        if not isinstance(node, tree.Call) or not (node.name == "COUNT" or is_sum_of_ones(node)):
            return node if isinstance(node, tree.Name) else tree.with_parts(node, counted)
        of = (
            ()
            if any(isinstance(each, tree.Star | tree.Number) for each in node.arguments)
            else node.arguments
        )
        same = all(
            isinstance(each, tree.OfMember) or tree.without_places(each) == tree.without_places(member)
            for each in of
        )
        return replace(node, name="COUNT", arguments=(member,), distinct=True) if same else node

    return _changed(select, counted)


def _changed(select: tree.Select, change: Callable[[tree.Expression], tree.Expression]) -> tree.Select:
    return replace(
        select,
        items=tuple(replace(each, value=change(each.value)) for each in select.items),
        having=None if select.having is None else change(select.having),
        order=tuple(replace(each, value=change(each.value)) for each in select.order),
    )


def _bucketed(node: tree.Expression) -> tree.Expression | None:
    """Return what a node is the bucket of; None: it is something else."""
    while isinstance(node, tree.Cast):
        node = node.value
    is_bucket = isinstance(node, tree.Call) and node.name in TRUNCATIONS and bool(node.arguments)
    return node.arguments[-1] if isinstance(node, tree.Call) and is_bucket else None


def _first_in(node: tree.Expression) -> tree.Expression | None:
    """Return the column of whose first time a node is the bucket; None: it is something else."""
    of = _bucketed(node)
    return None if of is None else first_of(of)


def _time_of(node: tree.Expression) -> tree.Expression | None:
    """Return the column of whose first time a node is the bucket, or which it is; None: it is something else."""
    return _first_in(node) or first_of(node)


def grouped_by(inner: tree.Select) -> tree.Expression:
    """Return the one column that a statement of members groups by."""
    keys = () if inner.group is None else inner.group.keys
    place = whole_number(keys[0]) if len(keys) == 1 else None
    found = keys[0] if place is None and len(keys) == 1 else None
    if place is not None and 1 <= place <= len(inner.items):
        found = inner.items[place - 1].value
    if not isinstance(found, tree.Name):
        refuse(inner.group or inner, _OF_MEMBERS)
    return found


def _names(node: tree.Expression, column: tree.Expression) -> bool:
    """Return whether an expression has a column in it, by its name."""
    if isinstance(node, tree.Name) and isinstance(column, tree.Name):
        return node.parts[-1].value == column.parts[-1].value
    return any(_names(part, column) for part in tree.parts_of(node))


def _is_end(node: tree.Expression) -> bool:
    """Return whether a condition is that a column is before something."""
    is_before = isinstance(node, tree.Compared) and node.comparison in (Comparison.LESS, Comparison.AT_MOST)
    return is_before and isinstance(node, tree.Compared) and isinstance(node.left, tree.Name)


def _range_of(node: tree.Expression, time: tree.Expression) -> tree.Expression:
    """Return a condition on members' first times as one on the range of times."""
    match node:
        case tree.Compared(comparison=comparison, left=of) if comparison in _RANGE and _is_first(of, time):
            return replace(node, left=time)
        case tree.Between(value=of) if _is_first(of, time):
            return replace(node, value=time)
    raise refused(
        node,
        "expected conditions on members' first times alone: HAVING MIN(time) >= .. AND MIN(time) < .. inside",
    )


def _is_first(node: tree.Expression, time: tree.Expression) -> bool:
    """Return whether a node is a member's first time in a column."""
    first = first_of(node)
    return first is not None and tree.without_places(first) == tree.without_places(time)

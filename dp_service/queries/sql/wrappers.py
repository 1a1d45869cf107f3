"""A statement around a statement, which means nothing of its own: BI tools wrap what they were given.

    SELECT * FROM (Q) [AS x] [ORDER BY ..] [LIMIT n]     Q, with its columns named or in another order
    SELECT .. FROM (SELECT a AS b FROM t WHERE ..) ..    the question of t, with a in the place of b
    SELECT b, SUM(n) FROM (Q) GROUP BY b                 Q, if b are all columns of Q that are no numbers
    SELECT first, COUNT(*) FROM (
        SELECT member, DATE_TRUNC('month', MIN(day)) AS first FROM t
        WHERE .. GROUP BY member HAVING MIN(day) >= .. AND MIN(day) < ..
    ) GROUP BY first                                     members by the bucket of their first time, which may also be
                                                         made, and its range stated, around MIN(day) AS first
    SELECT b, AVG(n) FROM (
        SELECT member, b, SUM(x) AS n FROM t GROUP BY member, b
    ) GROUP BY b                                         numbers of one value for each member (`per_member`)

In the third each group has one row of Q, so the sum, the average, the smallest and the largest of it are the number
itself: BI tools aggregate whatever they read. Of more rows they are refused. A sum of counts counts a member once for
each group, and over an unknown domain what is shown is not all that there is; the largest number before noise is not
the one that is the largest with it; and how many groups there are is not released.

`WITH x AS (Q)` before a statement that reads x is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from dp_service.queries.advice import average_of_each
from dp_service.queries.sql import tree
from dp_service.queries.sql.member_functions import (
    counting_members,
    grouped_by,
    is_of_members,
    rows_of_members,
)
from dp_service.queries.sql.numbers import is_aggregate, is_count, is_number
from dp_service.queries.sql.per_member import check_groups, meant, member_of, values_of_members
from dp_service.queries.sql.places import RefusedHereError, refuse, refused
from dp_service.queries.sql.scope import scope_of, whole_number
from dp_service.queries.sql.select_list import is_of_each_member, own_name
from dp_service.queries.sql.tokens import Token
from dp_service.queries.tables import Policy

_OF_ONE_ROW = frozenset({"SUM", "AVG", "MEAN", "MIN", "MAX"})
_COMPUTED = (
    "a number computed of an answer is not accepted: ask the inner statement, and compute from the rows that come "
    "back"
)
_OF_ANSWER = {
    "SUM": "a sum of an answer's rows is not accepted: add up what comes back, or leave GROUP BY out of the inner "
    "statement for one total, in which a member counts once",
    "COUNT": "a count of an answer's rows is not accepted: which groups are found depends on noise, so count the rows "
    "that come back",
    **dict.fromkeys(
        ("MIN", "MAX"),
        "the largest or smallest of an answer's numbers is not accepted: ask the inner statement in their order, by "
        "ORDER BY, with LIMIT 1",
    ),
}
_REGROUPED = (
    "GROUP BY and HAVING around a statement that groups are accepted of exactly its columns: group the inner statement "
    "by those that are wanted, alone"
)
# A name of two letters can stand for an expression that is as long as half of the text.
MAXIMUM_SIZE = 20_000


def flattened(select: tree.Select, policy: Policy) -> tree.Select:
    """Return a statement of one table that asks what a statement around another one asks.

    Args:
        select: The statement.
        policy: Has the names of all columns, beside which a star's columns have no others of one name, and the tables
            of which a refusal says what is answered.

    Raises:
        QuestionError: What stands around another statement has a meaning of its own.
    """
    source = select.source
    if not isinstance(source, tree.Derived):
        return select
    try:
        return _flattened(select, source, policy.names, policy.members)
    except RefusedHereError as refusal:
        if source.select.group is None:
            raise
        advice = average_of_each(scope_of(source.select, policy).table)
        raise refused(refusal.at, f"{refusal.error}. {advice}") from None


def _flattened(
    select: tree.Select, source: tree.Derived, names: Collection[str], members: Collection[str]
) -> tree.Select:
    inner = source.select
    if any(isinstance(each.value, tree.Star) for each in inner.items):
        _check_beside_star(inner, names)
    member = member_of(inner, select, members)
    if is_of_members(inner, select):
        renamed, outer = (
            _Renamed(source, inner),
            () if select.where is None else tree.conjunction(select.where),
        )
        rows = rows_of_members(inner, [renamed.changed(each) for each in outer])
        return counting_members(_of_rows(replace(select, where=None), source, rows), grouped_by(inner))
    if member is not None:
        found = counting_members(_of_rows(select, source, values_of_members(inner, member)), member)
        check_groups(found, inner, member)
        if found.where is not None and is_of_each_member(found.where):
            refuse(found.where, "a condition on a number of each member is not accepted")
        return found
    if inner.group is not None or any(is_number(each.value) for each in inner.items):
        return _of_answer(select, source, _spelt_out(inner))
    return _of_rows(select, source, inner)


def _check_beside_star(inner: tree.Select, names: Collection[str]) -> None:
    """Refuse an alias beside a star that one of the star's columns may have as its name: engines take that one."""
    folded = {each.casefold() for each in names}
    for each in inner.items:
        if each.alias is not None and each.alias.value.casefold() in folded:
            refuse(each.alias, "an alias beside * that is the name of a column is not accepted")


def _of_answer(select: tree.Select, source: tree.Derived, inner: tree.Select) -> tree.Select:
    """Return the inner question, whose answer the outer statement only names, orders or cuts."""
    if select.group or select.having or any(is_number(each.value) for each in select.items):
        select = _of_single_rows(select, source, inner)
    items = tuple(_outer_items(select, source, inner))
    kept = {id(each.value) for each in items}
    left_out = [each for each in inner.items if id(each.value) not in kept]
    if not _may_leave_out(left_out, items):
        refuse(
            select.items[0].value,
            "expected a statement around another one to select all of its columns, each once, or *; sums and averages "
            "may be left out beside a count",
        )
    order = inner.order
    if select.order:
        if inner.limit is not None:
            refuse(
                inner.limit,
                "LIMIT inside a statement that is ordered again is not accepted: order the inner one",
            )
        order = tuple(_outer_key(each, source, inner, items) for each in select.order)
    limit = select.limit
    if limit is not None and inner.limit is not None:
        limit = min(limit, inner.limit, key=lambda each: int(each.text))
    where, having = _inner_conditions(select, source, inner)
    return replace(inner, items=items, order=order, limit=limit or inner.limit, where=where, having=having)


def _may_leave_out(left_out: list[tree.Item], items: tuple[tree.Item, ...]) -> bool:
    """Return whether columns of an answer may be left out: the others mean the same without them beside a count."""
    has_count = any(is_count(each.value) for each in items)
    return not left_out or (has_count and all(is_aggregate(each.value) for each in left_out))


def _of_single_rows(select: tree.Select, source: tree.Derived, inner: tree.Select) -> tree.Select:
    """Return a statement without its groups, each of one row of the inner statement, and without numbers of them."""
    own = partial(meant, select)

    def single(node: tree.Expression) -> tree.Expression:
        """Return the number of the inner statement that a number of single rows is."""
        if not isinstance(node, tree.Call):
            return node if isinstance(node, tree.Name) else tree.with_parts(node, single)
        if node.name not in _OF_ONE_ROW or node.distinct or len(node.arguments) != 1:
            refuse(node, _OF_ANSWER.get(node.name, _COMPUTED))
        if _place_of(node.arguments[0], source, inner) not in numbers:
            refuse(node, _COMPUTED)
        return node.arguments[0]

    numbers = {place for place, each in enumerate(inner.items) if is_number(each.value)}
    keys: list[tree.Expression] = [
        each.value for each in select.items if not isinstance(each.value, tree.Call)
    ]
    if select.group is None or not select.group.all_selected:
        keys = [] if select.group is None else [own(each) for each in select.group.keys]
    grouped = {_place_of(each, source, inner) for each in keys}
    if grouped != set(range(len(inner.items))) - numbers:
        called = next((each.value for each in select.items if isinstance(each.value, tree.Call)), None)
        if select.group is not None or not isinstance(called, tree.Call):
            refuse(select.group or select.having or select, _REGROUPED)
        refuse(called, _OF_ANSWER.get(called.name, _COMPUTED))
    having = None if select.having is None else single(_with_names(select.having, own))
    return replace(
        select,
        items=tuple(replace(each, value=single(each.value)) for each in select.items),
        group=None,
        having=None,
        where=_both(select.where, having),
        order=tuple(replace(each, value=single(own(each.value))) for each in select.order),
    )


def _with_names(node: tree.Expression, own: Callable[[tree.Expression], tree.Expression]) -> tree.Expression:
    """Return a condition on numbers with what its names stand for; what functions are of has its own names."""
    if isinstance(node, tree.Name):
        return own(node)
    return node if isinstance(node, tree.Call) else tree.with_parts(node, lambda each: _with_names(each, own))


def _spelt_out(inner: tree.Select) -> tree.Select:
    """Return a statement whose clauses name its numbers and columns by themselves.

    Its aliases and positions are not the ones that the statement around it gives the same columns.
    """
    named = {
        each.alias.value: each.value
        for each in inner.items
        if each.alias is not None and each.alias.value != own_name(each.value)
    }

    def spelt(node: tree.Expression) -> tree.Expression:
        if isinstance(node, tree.Name) and len(node.parts) == 1:
            return named.get(node.parts[0].value, node)
        return node if isinstance(node, tree.Name | tree.Call) else tree.with_parts(node, spelt)

    def key(node: tree.Expression) -> tree.Expression:
        place = whole_number(node)
        if place is None:
            return spelt(node)
        return inner.items[place - 1].value if 1 <= place <= len(inner.items) else node

    group = inner.group
    if group is not None:
        group = replace(group, keys=tuple(map(key, group.keys)))
    return replace(
        inner,
        group=group,
        having=None if inner.having is None else spelt(inner.having),
        order=tuple(replace(each, value=key(each.value)) for each in inner.order),
    )


def _inner_conditions(
    select: tree.Select, source: tree.Derived, inner: tree.Select
) -> tuple[tree.Expression | None, tree.Expression | None]:
    """Return WHERE and HAVING of the inner statement with the outer conditions on its columns and on its numbers."""
    where, having = inner.where, inner.having
    if select.where is None:
        return where, having
    if inner.limit is not None:
        refuse(inner.limit, "LIMIT inside a statement that is filtered is not accepted: filter the inner one")
    renamed = _Renamed(source, inner)
    for each in tree.conjunction(select.where):
        part = renamed.changed(each)
        numbers = {is_number(node) for node in _operands(part)}
        if len(numbers) > 1:
            refuse(each, "a condition on a column and a number together is not accepted: join them by AND")
        if True in numbers:
            having = _both(having, part)
        else:
            where = _both(where, part)
    return where, having


def _operands(node: tree.Expression) -> Iterator[tree.Expression]:
    """Yield the columns, buckets and numbers that a condition is on."""
    if isinstance(node, tree.Name | tree.Call):
        yield node
    else:
        for part in tree.parts_of(node):
            yield from _operands(part)


def _outer_items(select: tree.Select, source: tree.Derived, inner: tree.Select) -> Iterator[tree.Item]:
    seen: set[int] = set()
    for item in select.items:
        if isinstance(item.value, tree.Star):
            yield from inner.items
            continue
        place = _place_of(item.value, source, inner)
        if place in seen:
            refuse(item.value, "a column that is selected twice is not accepted")
        seen.add(place)
        named = inner.items[place]
        alias = item.alias or named.alias
        yield replace(named, alias=alias)


def _place_of(node: tree.Expression, source: tree.Derived, inner: tree.Select) -> int:
    """Return which column of an inner statement a name means."""
    name = _plain(node, source)
    for place, item in enumerate(inner.items):
        if _name_of(item) == name.value:
            return place
    raise refused(node, "expected the name of a column that the inner statement selects")


def _plain(node: tree.Expression, source: tree.Derived) -> Token:
    """Return the name of a column, with or without the name of the inner statement before it."""
    if not isinstance(node, tree.Name):
        refuse(
            node,
            "an expression around a column of an inner statement is not accepted: select the column itself",
        )
    *before, last = node.parts
    if before and (source.alias is None or [each.value for each in before] != [source.alias.value]):
        refuse(before[0], "expected the inner statement's alias before a column, or nothing")
    return last


def _name_of(item: tree.Item) -> str | None:
    """Return what a column of a statement is called from outside; None: it has no name that could be known."""
    if item.alias is not None:
        return item.alias.value
    return item.value.parts[-1].value if isinstance(item.value, tree.Name) else None


def _outer_key(
    key: tree.Key, source: tree.Derived, inner: tree.Select, items: tuple[tree.Item, ...]
) -> tree.Key:
    """Return what the outer statement orders by, as the inner one would write it: a position of a column."""
    if isinstance(key.value, tree.Number):
        return key
    named = inner.items[_place_of(key.value, source, inner)].value
    place = next((i for i, each in enumerate(items, start=1) if each.value is named), None)
    if place is None:
        refuse(key.value, "expected ORDER BY with a column that is selected")
    return replace(key, value=tree.Number(key.value.first, key.value.last, str(place)))


def _of_rows(select: tree.Select, source: tree.Derived, inner: tree.Select) -> tree.Select:
    """Return the question of the inner statement's table: it only renames columns and leaves rows out."""
    if inner.limit is not None:
        refuse(inner.limit, "LIMIT of rows is not accepted, leave it out: it would count some of them")
    if inner.distinct is not None:
        refuse(inner.distinct, "DISTINCT of rows is not accepted: COUNT(DISTINCT member) counts members")
    if inner.having is not None:
        refuse(inner.having, "HAVING without GROUP BY is not accepted in a statement of rows")
    renamed = _Renamed(source, inner)
    where = _both(inner.where, None if select.where is None else renamed.changed(select.where))
    group = select.group
    if group is not None:
        group = replace(group, keys=tuple(map(renamed.key, group.keys)))
    return replace(
        select,
        items=tuple(each for item in select.items for each in renamed.items(item)),
        source=inner.source,
        where=where,
        group=group,
        having=None if select.having is None else renamed.having(select.having),
        order=tuple(replace(each, value=renamed.key(each.value)) for each in select.order),
    )


def _both(inner: tree.Expression | None, outer: tree.Expression | None) -> tree.Expression | None:
    if inner is None or outer is None:
        return inner or outer
    return tree.All(inner.first, outer.last, (inner, outer))


class _Renamed:
    """The columns of an inner statement, by the names that the outer one has for them."""

    def __init__(self, source: tree.Derived, inner: tree.Select) -> None:
        self._source, self._inner = source, inner
        self._size = 0
        self._all = any(isinstance(each.value, tree.Star) for each in inner.items)
        items = [each for each in inner.items if not isinstance(each.value, tree.Star)]
        self._columns: Mapping[str | None, tree.Expression] = {_name_of(each): each.value for each in items}
        seen: set[str] = set()
        for each in items:
            name = (_name_of(each) or "").casefold()
            if name and name in seen:
                refuse(each.value, "a column whose name an inner statement gives twice is not accepted")
            seen.add(name)

    def items(self, item: tree.Item) -> tuple[tree.Item, ...]:
        """Return what a column of the outer statement selects: a star means the columns of the inner one."""
        return self._inner.items if isinstance(item.value, tree.Star) else (self.item(item),)

    def item(self, item: tree.Item) -> tree.Item:
        """Return what is selected, with the outer name of a column as its alias."""
        value = self.changed(item.value)
        if item.alias is None and isinstance(item.value, tree.Name) and value is not item.value:
            name = item.value.parts[-1]
            is_own = isinstance(value, tree.Name) and value.parts[-1].value == name.value
            return tree.Item(value, None if is_own else name)
        return replace(item, value=value)

    def key(self, node: tree.Expression) -> tree.Expression:
        """Return what the outer statement groups or orders by: one of its own aliases stays what it is."""
        if isinstance(node, tree.Name) and len(node.parts) == 1 and node.parts[0].value not in self._columns:
            return node
        return self.changed(node)

    def having(self, node: tree.Expression) -> tree.Expression:
        """Return a condition on numbers, which the outer statement's own aliases may stand for."""
        if isinstance(node, tree.Name):
            return self.key(node)
        return self.changed(node) if isinstance(node, tree.Call) else tree.with_parts(node, self.having)

    def changed(self, node: tree.Expression) -> tree.Expression:
        """Return an expression of the outer statement as one of the inner statement's table."""
        if not isinstance(node, tree.Name):
            return tree.with_parts(node, self.changed)
        name = _plain(node, self._source)
        found = self._columns.get(name.value)
        if found is not None:
            self._size += tree.size_of(found)
            if self._size > MAXIMUM_SIZE:
                refuse(node, "statements in one another that repeat an expression so often are not accepted")
            return found
        if not self._all:
            refuse(node, "expected the name of a column that the inner statement selects, as it calls it")
        return tree.Name(node.first, node.last, (name,))

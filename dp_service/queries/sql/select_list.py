"""The select list of a statement: columns, functions of a row and numbers, in any order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from dp_service.parameters.numbers import Average, Plain
from dp_service.queries import dimensions as structured
from dp_service.queries.advice import median, per_member
from dp_service.queries.asked_numbers import (
    AskedNumber,
    AskedQuantile,
    Counted,
    DistinctValues,
    Measure,
    Part,
)
from dp_service.queries.dimensions import columns_of
from dp_service.queries.sql import tree
from dp_service.queries.sql.arithmetic import number_selected
from dp_service.queries.sql.member_functions import is_funnel
from dp_service.queries.sql.numbers import Count, Number, check_listed, is_count, is_number, numbers_of
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.row_functions import column_of, dimension_of, is_function
from dp_service.queries.sql.scope import Scope, alias_name
from dp_service.terms import AggregateFunction

_ROWS = AskedNumber(Plain(Part(AggregateFunction.ROWS)))
_NO_ROWS = "* is not accepted: no rows are shown, only counts: select columns with COUNT(*) or COUNT(DISTINCT member)"


@dataclass(frozen=True)
class Dimension:
    """What is selected to group by; `alias` None: it has no name but its own, and is no part of it."""

    of: structured.Dimension
    alias: str | None = field(default=None, compare=False)


Column = Dimension | Number


@dataclass(frozen=True)
class SelectList:
    """What is selected, in the order of the text; `of_members`: of numbers of each member, and not of rows."""

    columns: tuple[Column, ...]
    of_members: bool = False

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The columns and buckets."""
        return tuple(each for each in self.columns if isinstance(each, Dimension))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are selected as they are."""
        return tuple(each.of for each in self.dimensions if isinstance(each.of, str))

    @property
    def count(self) -> Count | None:
        """The count; None: it was left out."""
        return next((each for each in self.columns if isinstance(each, Count)), None)

    @property
    def aggregates(self) -> tuple[AskedNumber, ...]:
        """The numbers beside the count."""
        return tuple(each for each in self.columns if isinstance(each, AskedNumber))

    @property
    def added(self) -> frozenset[AggregateFunction]:
        """What the numbers beside the count are of."""
        return frozenset(part.function for each in self.aggregates for part in each.parts)

    @property
    def counts_members(self) -> bool:
        """Whether members are counted, also with a condition: then the question's count is of them."""
        counted = [each.measure for each in self.columns if isinstance(each, Count)]
        return (
            self.of_members or Measure.DISTINCT_MEMBERS in counted or AggregateFunction.MEMBERS in self.added
        )

    def counted(self, measure: Counted) -> Counted | AskedNumber:
        """Return what a count that a clause writes is: the question's, or the second one beside it."""
        return _ROWS if measure is Measure.EVENTS and _ROWS in self.aggregates else measure

    @property
    def quantiles(self) -> tuple[AskedQuantile, ...]:
        """The quantiles."""
        return tuple(each for each in self.columns if isinstance(each, AskedQuantile))

    @property
    def shown(self) -> tuple[int, ...]:
        """The order of the text, as places among columns, count, sums and averages; empty: it is theirs."""
        numbers = (self.count or Count(Measure.EVENTS), *self.aggregates)
        given = (*self.dimensions, *(self.quantiles or numbers))
        order = tuple(given.index(each) for each in self.columns)
        is_plain = order == tuple(range(len(given))) or self.columns == self.dimensions
        return () if is_plain else order

    def key(self, node: tree.Expression, scope: Scope) -> Dimension:
        """Return what a clause calls by its name, its alias, or by the same function."""
        if is_function(node):
            return Dimension(dimension_of(node, scope))
        if isinstance(node, tree.Name) and len(node.parts) == 1:
            named = [each for each in self.dimensions if each.alias == node.parts[0].value]
            if named and named[0].alias in columns_of(named[0].of):
                refuse(
                    node,
                    "a name in another clause that is both a column and an alias of a function of it is not accepted",
                )
            if named:
                return named[0]
        return Dimension(scope.column_name(node))

    def number_called(self, node: tree.Expression) -> Number | None:
        """Return the number that has an alias; None: a node is no alias of one."""
        if not isinstance(node, tree.Name) or len(node.parts) > 1:
            return None
        called = node.parts[0].value
        return next(
            (each for each in self.columns if not isinstance(each, Dimension) and each.alias == called), None
        )


def select_list_of(select: tree.Select, scope: Scope) -> SelectList:
    """Return what a statement selects.

    Raises:
        QuestionError: Something of it is not accepted.
    """
    of_members = any(map(is_of_each_member, (each.value for each in select.items)))
    columns = [each for item in select.items for each in _selected(item, scope)]
    found = SelectList(_beside_members(columns), of_members)
    counts = [each for each in found.columns if isinstance(each, Count)]
    if len(counts) > 1 and any(isinstance(each.measure, DistinctValues) for each in counts):
        refuse(
            select.items[-1].value,
            "a second count is not accepted beside distinct values: ask for each apart",
        )
    if len(counts) > 1:
        refuse(select.items[-1].value, "a count that is selected twice is not accepted")
    for item in select.items:
        if isinstance(item.value, tree.Call) and is_number(item.value):
            check_listed(item.value, scope)
    if found.quantiles and (found.count is not None or found.aggregates):
        number = next(each.value for each in select.items if is_number(each.value))
        refuse(
            number,
            "expected nothing but columns, percentiles, MIN and MAX: counts, SUM and AVG are another release, so ask "
            f"for them apart, and for a median by {median(scope.table, found.quantiles[0].column, found.names)}",
        )
    _check_aliases(select, found, scope)
    return found


def _beside_members(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return columns where a count of rows beside one of members is one more number, and not the question's count."""
    if not SelectList(tuple(columns)).counts_members:
        return tuple(columns)
    return tuple(
        replace(_ROWS, alias=each.alias) if each == Count(Measure.EVENTS) else each for each in columns
    )


def is_of_each_member(node: tree.Expression) -> bool:
    """Return whether an expression has a number of each member."""
    return isinstance(node, tree.OfMember) or any(map(is_of_each_member, tree.parts_of(node)))


def _of_totals(average: AskedNumber, found: SelectList, scope: Scope) -> str:
    """Return what to ask for in place of an average over rows."""
    of = f"SUM({average.parts[0].column})"
    text = per_member(scope.table, "AVG(value)", of, found.names)
    return f"The average of members' totals, with any WHERE inside, is {text}"


def without_repeats(select: tree.Select) -> tree.Select:
    """Return a statement without columns at its end that repeat another, name and all: what BI tools order by."""
    items = select.items
    while _name_and_alias(items[-1]) in {*map(_name_and_alias, items[:-1])} - {None}:
        items = items[:-1]
    return replace(select, items=items)


def _name_and_alias(item: tree.Item) -> tuple[object, ...] | None:
    """Return what a column with an alias is of, and its alias; None: it is something else."""
    if item.alias is None or own_name(item.value) is None:
        return None
    return tree.without_places(item.value), item.alias.value


def _selected(item: tree.Item, scope: Scope) -> Iterator[Column]:
    if isinstance(item.value, tree.Star):
        refuse(item.value, _NO_ROWS)
    if isinstance(item.value, tree.Product | tree.Sum | tree.OverAll):
        yield number_selected(item, scope)
    elif is_funnel(item.value):
        # One row for each step: its number, and how many members reached it.
        yield Dimension(dimension_of(item.value, scope))
        yield Count(Measure.DISTINCT_MEMBERS, None if item.alias is None else alias_name(item.alias))
    elif isinstance(item.value, tree.Call) and is_number(item.value):
        yield from numbers_of(item.value, item.alias, scope)
    else:
        yield dimension_selected(item, scope)


def dimension_selected(item: tree.Item, scope: Scope) -> Dimension:
    """Return what is selected to group by."""
    of = dimension_of(item.value, scope)
    alias = None if item.alias is None else alias_name(item.alias)
    # The name of a column is no other name for it; for its buckets it is one.
    return Dimension(of, None if alias == of else alias)


def measure_without_count(found: SelectList, select: tree.Select, scope: Scope) -> Measure | None:
    """Return which count comes with sums and averages whose text selects none; None: no number is selected.

    Numbers are over rows, as in SQL, and are bounded by themselves: members are counted, which costs least.
    """
    if not found.aggregates:
        return Measure.DISTINCT_MEMBERS if found.quantiles else None
    if AggregateFunction.ROWS in found.added:
        return Measure.EVENTS
    averages = [each for each in found.aggregates if isinstance(each.form, Average)]
    if averages and not scope.table.measures.counts_rows and not found.of_members:
        refuse(
            next(each.value for each in select.items if is_number(each.value)),
            "AVG is over rows, which the policy does not offer for this table. "
            f"{_of_totals(averages[0], found, scope)}",
        )
    return Measure.DISTINCT_MEMBERS


def _check_aliases(select: tree.Select, found: SelectList, scope: Scope) -> None:
    """Refuse an alias that could stand for something else as well; engines ignore case, and so does this.

    A count may be called like a column that is not selected.
    """
    columns = {each.name.casefold() for each in scope.table.columns} | {scope.table.member.casefold()}
    seen: set[str] = set()
    for item in select.items:
        if item.alias is None:
            continue
        folded = item.alias.value.casefold()
        taken = {each.casefold() for each in found.names} if is_count(item.value) else columns
        own = own_name(item.value)
        if folded in taken and (own is None or folded != own.casefold()):
            refuse(
                item.alias,
                "an alias that is the name of a column is not accepted: a comma may be missing before it",
            )
        if folded in seen:
            refuse(item.alias, "an alias that is given twice is not accepted")
        seen.add(folded)


def own_name(node: tree.Expression) -> str | None:
    """Return the name of the column that is selected, or of which a function of time is; None: something else is."""
    column = column_of(node)
    return column.parts[-1].value if isinstance(column, tree.Name) else None

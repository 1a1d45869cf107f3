"""The select list of a question in SQL, between SELECT and FROM: columns, buckets of time, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_aliases import alias_name
from dp_service.queries.sql_nodes import Scope, identifier_name, only, whole_number
from dp_service.queries.sql_quantiles import is_quantile, selected_quantiles
from dp_service.queries.sql_time import bucket_length, is_bucket, truncated
from dp_service.queries.sql_tokens import COUNTS, refuse
from dp_service.queries.structured import Aggregate, AskedQuantile, Measure
from dp_service.terms import AggregateFunction

# A bucket is most often called by its length.
_LENGTHS = tuple(length.upper() for length in BucketLength)


@dataclass(frozen=True)
class Dimension:
    """A selected column, or the buckets of one; `alias` None: it has no name but its own, and is no part of it."""

    name: str
    length: BucketLength | None = None
    alias: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class SelectList:
    """A select list; `measure` is None if the count was left out, an alias if there is none."""

    dimensions: tuple[Dimension, ...]
    measure: Measure | None
    alias: str | None = field(default=None)
    aggregates: tuple[Aggregate, ...] = ()
    quantiles: tuple[AskedQuantile, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(each.name for each in self.dimensions)

    @property
    def aliases(self) -> tuple[str | None, ...]:
        """The alias of each column."""
        return tuple(each.alias for each in self.dimensions)

    @property
    def bucket(self) -> BucketLength | None:
        """The length of the buckets that are selected; None: there are none."""
        return next((each.length for each in self.dimensions if each.length is not None), None)

    def key(self, node: exp.Expr, scope: Scope) -> Dimension:
        """Return what a clause calls by its name, its alias, or by the same DATE_TRUNC."""
        if is_bucket(node):
            return Dimension(scope.column_name(truncated(node)), bucket_length(node))
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            named = identifier_name(node.this)
            if named in self.aliases:
                found = self.dimensions[self.aliases.index(named)]
                if found.length is not None and found.alias == found.name:
                    refuse("a name in another clause that is both a column and an alias of its DATE_TRUNC")
                return found
        return Dimension(scope.column_name(node))

    def at(self, node: exp.Expr, clause: str) -> Dimension | None:
        """Return what a clause names by its position in SELECT; None: it names nothing by a position.

        Raises:
            QuestionError: There is no column at that position.
        """
        position = whole_number(node)
        if position is None:
            return None
        if not 1 <= position <= len(self.dimensions):
            raise QuestionError(
                "sql", f"expected positions of columns in {clause}, 1 to {len(self.dimensions)}"
            )
        return self.dimensions[position - 1]


def select_list_of(select: exp.Select, scope: Scope) -> SelectList:
    """Return what a statement selects.

    Raises:
        QuestionError: Something of it is not accepted.
    """
    if not select.expressions:
        raise QuestionError("sql", "expected SELECT with columns and the count")
    first = next((i for i, each in enumerate(select.expressions) if _is_number(_named(each))), None)
    head, numbers = select.expressions[:first], [] if first is None else select.expressions[first:]
    dimensions = tuple(_dimension(each, scope) for each in head)
    others = [each.alias for each in dimensions if each.alias != each.name]
    if any(is_quantile(_named(each)) for each in numbers):
        quantiles = selected_quantiles(numbers, scope)
        given = [each for each in (*others, *(each.alias for each in quantiles)) if each is not None]
        _check_aliases(given, None, scope)
        return SelectList(dimensions, Measure.DISTINCT_MEMBERS, quantiles=quantiles)
    count, alias = _count(numbers, scope)
    if alias in [each.name for each in dimensions]:
        refuse("an alias that is the name of a column")
    aggregates = tuple(aggregate_of(each, scope) for each in numbers[1:])
    given = [each for each in (*others, *(each.alias for each in aggregates)) if each is not None]
    _check_aliases(given, alias, scope)
    measure = None if count is None else measure_of(count, scope)
    return SelectList(dimensions, measure, alias, aggregates)


def _count(numbers: Sequence[exp.Expr], scope: Scope) -> tuple[exp.Expr | None, str | None]:
    """Return the count, the first number that is selected, and its alias; None: no number is selected."""
    if not numbers:
        return None, None
    count = _named(numbers[0])
    if not is_count(count):
        raise QuestionError(
            "sql",
            f"expected COUNT(DISTINCT {scope.table.member}) before SUM and AVG of members' totals, or COUNT(*) before "
            "those of rows: the count comes with them, and costs nothing more",
        )
    return count, _alias_of(numbers[0])


def aggregate_of(node: exp.Expr, scope: Scope) -> Aggregate:
    """Return a sum or an average, which is selected behind the count.

    Raises:
        QuestionError: It is none.
    """
    function = _named(node)
    if not isinstance(function, exp.Sum | exp.Avg):
        refuse("a count before a column, or a second count,")
    only(function, "this")
    kind = AggregateFunction.SUM if isinstance(function, exp.Sum) else AggregateFunction.AVERAGE
    return Aggregate(kind, scope.column_name(function.this), _alias_of(node))


def _is_number(node: exp.Expr) -> bool:
    return is_count(node) or isinstance(node, exp.Sum | exp.Avg) or is_quantile(node)


def _named(node: exp.Expr) -> exp.Expr:
    """Return what an alias names, or the node itself."""
    return node.this if isinstance(node, exp.Alias) else node


def _alias_of(node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Alias):
        return None
    only(node, "this", "alias")
    return alias_name(node.args["alias"])


def _check_aliases(aliases: Sequence[str], count_alias: str | None, scope: Scope) -> None:
    """Refuse a column's alias that could stand for something else as well; engines ignore case, and so does this."""
    columns = {scope.table.member, *(column.name for column in scope.table.columns)}
    folded = [each.casefold() for each in aliases]
    if not set(folded).isdisjoint(map(str.casefold, columns)):
        refuse("an alias that is the name of a column")
    if len({*folded, (count_alias or "").casefold()}) != len(folded) + 1:
        refuse("an alias that is given twice")


def _dimension(node: exp.Expr, scope: Scope) -> Dimension:
    """Return a selected column or bucket."""
    named = _named(node)
    length = bucket_length(named) if is_bucket(named) else None
    name = scope.column_name(named if length is None else truncated(named))
    if not isinstance(node, exp.Alias):
        return Dimension(name, length)
    only(node, "this", "alias")
    if identifier_name(node.args["alias"]) == name:
        # The name of a column is no other name for it; for its buckets it is one.
        return Dimension(name, length, None if length is None else name)
    also = () if length is None else _LENGTHS
    return Dimension(name, length, alias_name(node.args["alias"], also=also))


def is_count(node: exp.Expr) -> bool:
    """Return whether a node is a function that counts; `sql_tokens` lets no other function through."""
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() in COUNTS
    return named or isinstance(node, exp.Count | exp.ApproxDistinct)


def measure_of(count: exp.Expr, scope: Scope) -> Measure:
    """Return what a count counts: every row, or the distinct members.

    Raises:
        QuestionError: It counts something else.
    """
    if isinstance(count, exp.Count):
        only(count, "this", "big_int")
        if isinstance(count.this, exp.Star):
            only(count.this)
            return Measure.EVENTS
        counted = [count.this]
        if isinstance(count.this, exp.Distinct):
            only(count.this, "expressions")
            counted = count.this.expressions
            if _are_members(counted, scope):
                return Measure.DISTINCT_MEMBERS
    else:
        only(count, "this", "expressions")
        counted = count.expressions if isinstance(count, exp.Anonymous) else [count.this]
        if _are_members(counted, scope):
            return Measure.DISTINCT_MEMBERS
    raise QuestionError("sql", _WRONG_COUNT.format(member=scope.table.member))


_WRONG_COUNT = (
    "expected COUNT(DISTINCT {member}) of the table's member column, or COUNT(*): Gris hides who is in the data, so "
    "it counts members and rows, and no values of another column"
)


def _are_members(nodes: list[exp.Expr], scope: Scope) -> bool:
    return [scope.column_name(each) for each in nodes] == [scope.table.member]

"""The numbers that a statement selects: counts, sums and averages, percentiles.

    COUNT(DISTINCT member), DISTINCTCOUNT(member) ..   members
    COUNT(*), COUNT(1), COUNT(member), SUM(1)          rows: those without a member never count
    COUNT(column)                                      rows, of a column that the question groups by or restricts
    COUNT(DISTINCT column), DISTINCTCOUNT(column) ..   distinct values of a column of which the policy offers them
    SUM(value), AVG(value)                             of the values of rows
    COUNT(..) FILTER (WHERE ..), SUM(CASE WHEN ..) ..  the same of the rows that meet a condition
    PERCENTILE(value, 50), QUANTILE(value, 0.5) ..     a quantile of the values of rows
    MIN(value), MAX(value)                             about the smallest and the largest of them

In the place of a value may stand a number of each member (`per_member`).

Apache Pinot and others compute counts and percentiles exactly and by several sketches. All of them ask for the same
number and differ in how exact it is, so here they are other names of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

from dp_service.parameters.numbers import Average, Form, Plain
from dp_service.queries.advice import average_of_each
from dp_service.queries.asked_numbers import (
    AskedNumber,
    AskedQuantile,
    Counted,
    DistinctValues,
    Measure,
    Part,
)
from dp_service.queries.columns import Nulls
from dp_service.queries.filters import Filter, IsNull, column_filters
from dp_service.queries.sql import tree
from dp_service.queries.sql.conditions import filters_of
from dp_service.queries.sql.places import Placed, placed, refuse, refused
from dp_service.queries.sql.scope import Scope, alias_name
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.words import (
    AGGREGATES,
    COUNTS_OF_MEMBERS,
    PERCENTILE,
    QUANTILES,
)
from dp_service.queries.suggestions import asking
from dp_service.terms import AggregateFunction, MemberValue, RankFunction

_RANKS = {"MIN": RankFunction.SMALLEST, "MAX": RankFunction.LARGEST}
_NUMBERS = {
    Measure.DISTINCT_MEMBERS: AggregateFunction.MEMBERS,
    Measure.EVENTS: AggregateFunction.ROWS,
}
_OF_MEMBER = {
    "SUM": MemberValue.TOTAL,
    **dict.fromkeys(("AVG", "MEAN"), MemberValue.MEAN),
    "MAX": MemberValue.LARGEST,
}
_MAXIMUM_DIGITS = 12
_WRONG_COUNT = (
    "expected COUNT(DISTINCT {member}) of the table's member column, or COUNT(*): Gris hides who is in the data, so "
    "it counts members and rows, and no values of another column"
)
_WRONG_ROWS = (
    "COUNT(column) counts rows in which the column has a value, and is accepted where the question leaves out the "
    "others{how}; otherwise count rows by COUNT(*), or members by {members}"
)
_WRONG_VALUES = (
    "expected COUNT(DISTINCT {member}) of the table's member column, COUNT(*), or distinct values of a column that the "
    "policy offers: COUNT(DISTINCT {columns})"
)
_EXPECTED = (
    "expected a percentile such as PERCENTILE(value, 50), strictly between 0 and 100, or QUANTILE(value, 0.5)"
)
_TWO_READINGS = (
    "a percentile below 1 has two readings: write QUANTILE(value, 0.5), or PERCENTILE(value, 50) in %"
)
_CONSTANT = (
    "a number other than 1 is not accepted in the place of a column: write COUNT(*) or COUNT(*) FILTER (WHERE "
    "condition), and multiply what comes back"
)
_OF_ONE = (
    "PERCENTILE(.., 1) has two readings: write QUANTILE(value, 0.01) for the value that 1 % are below, or MAX(value) "
    "for about the largest"
)


@dataclass(frozen=True)
class Count:
    """A selected count."""

    measure: Counted
    alias: str | None = field(default=None, compare=False)


Number = Count | AskedNumber | AskedQuantile


def is_count(node: tree.Expression) -> bool:
    """Return whether a node counts members or rows, or tries to, without a condition of its own."""
    return isinstance(node, tree.Call) and node.where is None and _counts(node)


def _counts(call: tree.Call) -> bool:
    return call.name in ("COUNT", *COUNTS_OF_MEMBERS) or is_sum_of_ones(call)


def is_sum_of_ones(call: tree.Call) -> bool:
    """Return whether a function is SUM(1), which counts rows."""
    return (
        call.name == "SUM" and not call.distinct and len(call.arguments) == 1 and _is_one(call.arguments[0])
    )


def _is_one(node: tree.Expression) -> bool:
    return isinstance(node, tree.Number) and node.text in ("1", "1.0") and not node.negative


def is_number(node: tree.Expression) -> bool:
    """Return whether a node is a number that is computed of many rows."""
    if isinstance(node, tree.Product | tree.Sum | tree.OverAll):
        return True
    return isinstance(node, tree.Call) and (_counts(node) or node.name in AGGREGATES or is_quantile(node))


def is_aggregate(node: tree.Expression) -> bool:
    """Return whether a node is a sum or an average, or a count with a condition."""
    if not isinstance(node, tree.Call) or is_count(node):
        return False
    return node.name in AGGREGATES or _counts(node)


def is_quantile(node: tree.Expression) -> bool:
    """Return whether a node asks for quantiles, or for the smallest or the largest value."""
    return isinstance(node, tree.Call) and (
        node.name in _RANKS
        or node.name in ("MEDIAN", "PERCENTILES")
        or node.name in QUANTILES
        or PERCENTILE.fullmatch(node.name) is not None
    )


def numbers_of(call: tree.Call, alias: Token | None, scope: Scope) -> Iterator[Number]:
    """Yield the numbers that a selected function asks for: one, but for PERCENTILES.

    Raises:
        QuestionError: Its arguments are none of its own.
    """
    if is_count(call):
        yield Count(measure_of(call, scope), None if alias is None else alias_name(alias))
    elif is_aggregate(call):
        yield AskedNumber(aggregate_of(call, scope), None if alias is None else alias_name(alias))
    else:
        yield from _quantiles(call, alias, scope)


def check_listed(call: tree.Call, scope: Scope) -> None:
    """Refuse sums, averages and quantiles of columns of which the policy lists none."""
    for each in numbers_of(call, None, scope):
        with placed(call):
            if isinstance(each, AskedNumber):
                for column in (part.column for part in each.parts if part.column):
                    scope.table.value(column)
            elif isinstance(each, AskedQuantile):
                scope.table.quantile(each.column)


def measure_of(call: tree.Call, scope: Scope) -> Counted:
    """Return what a count counts: rows, distinct members, or distinct values of a column."""
    _check_within(call)
    if call.name == "SUM":
        return Measure.EVENTS
    counted = call.arguments
    is_distinct = call.distinct or call.name in COUNTS_OF_MEMBERS
    if len(counted) == 1 and not (call.distinct and call.name in COUNTS_OF_MEMBERS):
        only = counted[0]
        name = scope.column_name(only) if isinstance(only, tree.Name) else ""
        if name == scope.table.member:
            return Measure.DISTINCT_MEMBERS if is_distinct else Measure.EVENTS
        if name in scope.present and not is_distinct:
            return Measure.EVENTS
        if is_distinct and name in scope.table.measures.distinct:
            return DistinctValues(name)
        is_row = isinstance(only, tree.Number | tree.Text | tree.Truth) or (
            isinstance(only, tree.Star) and only.first is only.last
        )
        if is_row and not is_distinct:
            return Measure.EVENTS
        if name and not is_distinct:
            is_column = any(each.name == name for each in scope.table.columns)
            how = ": add column IS NOT NULL to WHERE" if is_column else ""
            members = asking(f"COUNT(DISTINCT {scope.table.member})", scope.table.name)
            raise refused(call, _WRONG_ROWS.format(how=how, members=members))
    columns = sorted(scope.table.measures.distinct)
    wrong = _WRONG_VALUES if columns else _WRONG_COUNT
    raise refused(call, wrong.format(member=scope.table.member, columns="), COUNT(DISTINCT ".join(columns)))


def aggregate_of(call: tree.Call, scope: Scope) -> Form[Part]:
    """Return a sum or an average, or a count beside the question's own."""
    _check_within(call)
    condition = _condition(call, scope)
    if _counts(call):
        return Plain(Part(_function(call, scope), condition=condition))
    if call.distinct:
        refuse(call, f"{call.name}(DISTINCT ..) is not accepted: equal values of several members all count")
    column, of = _only_value(call, scope)
    if of not in (None, "SUM", "COUNT"):
        _refuse_of_each(call, f"{call.name} of each member's {of}", scope)
    part = Part(AggregateFunction.SUM if column else AggregateFunction.ROWS, column, condition)
    if call.name == "SUM":
        return Plain(part)
    return Average(part)


def _function(call: tree.Call, scope: Scope) -> AggregateFunction:
    measure = measure_of(call, scope)
    if isinstance(measure, DistinctValues):
        refuse(
            call,
            "distinct values beside another number, or with FILTER, are not accepted: ask for them alone",
        )
    return _NUMBERS[measure]


def _condition(call: tree.Call, scope: Scope) -> tuple[Filter, ...]:
    """Return the condition of FILTER or CASE; empty: there is none."""
    if call.where is None:
        return ()
    found = filters_of(call.where, scope, ())
    for each in found or ():
        missing = [
            leaf.column for leaf in column_filters(each) if isinstance(leaf, IsNull) and not leaf.negated
        ]
        if any(scope.table.column(name).nulls is Nulls.DROP for name in missing):
            refuse(
                call.where,
                f"IS NULL of {missing[0]} is not accepted in a number: the policy has nulls: drop for it, so no row "
                "can meet it; nulls: keep counts such rows with a value of their own",
            )
    if not found:
        refuse(
            call.where, "a condition that every row meets, or none, is not accepted in a number: leave it out"
        )
    return found


def _only_value(call: tree.Call, scope: Scope) -> tuple[str, str | None]:
    """Return the column that a function is of, and which number of it each member has; None: its values are rows'."""
    arguments = call.arguments
    if len(arguments) != 1:
        refuse(call, f"expected {call.name} of one column")
    if isinstance(arguments[0], tree.Number):
        refuse(arguments[0], _CONSTANT)
    return _value(arguments[0], scope)


def _value(node: tree.Expression, scope: Scope) -> tuple[str, str | None]:
    if not isinstance(node, tree.OfMember):
        found = scope.column_name(node)
        if found == scope.table.member:
            refuse(
                node, f"a number of {found} is not accepted: members are counted, by COUNT(DISTINCT {found})"
            )
        return found, None
    call = node.number
    if scope.column_name(node.member) != scope.table.member:
        refuse(node.member, "expected the table's member column")
    if call.where is not None or call.distinct or call.within is not None:
        _refuse_of_each(call, "a condition, or DISTINCT, in a number of each member", scope)
    if is_count(call) and measure_of(call, scope) is Measure.EVENTS:
        return "", "COUNT"
    if call.name not in _OF_MEMBER:
        _refuse_of_each(call, f"{call.name} of each member", scope)
    return _only_value(call, scope)[0], call.name


def _refuse_of_each(at: Placed, what: str, scope: Scope) -> NoReturn:
    refuse(at, f"{what} is not accepted. {average_of_each(scope.table)}")


def _check_within(call: tree.Call) -> None:
    if call.within is not None:
        refuse(call.within, f"WITHIN GROUP is not accepted with {call.name}")


def _quantiles(call: tree.Call, alias: Token | None, scope: Scope) -> Iterator[AskedQuantile]:
    if call.where is not None:
        refuse(call.where, f"a condition in {call.name} is not accepted: ask once more with it in WHERE")
    if call.distinct:
        refuse(call, f"DISTINCT in {call.name} is not accepted: equal values of several rows all count")
    name = None if alias is None else alias_name(alias)
    if call.name in _RANKS:
        _check_within(call)
        column, of = _ranked(*_only_value(call, scope), call, scope)
        yield AskedQuantile(_RANKS[call.name], column, of=of, alias=name)
        return
    value, shares = _shares(call, scope)
    column, of = _ranked(*_value(value, scope), call, scope)
    if len(shares) > 1 and alias is not None:
        refuse(alias, "expected no alias for PERCENTILES with several percentiles")
    for share in shares:
        yield AskedQuantile(RankFunction.QUANTILE, column, share, of, name)


def _ranked(column: str, of: str | None, call: tree.Call, scope: Scope) -> tuple[str, MemberValue]:
    """Return the column that quantiles are of, and of which of its values."""
    if of == "COUNT":
        _refuse_of_each(call, f"{call.name} of how many rows each member has", scope)
    return column, MemberValue.ROWS if of is None else _OF_MEMBER[of]


def _shares(call: tree.Call, scope: Scope) -> tuple[tree.Expression, list[Fraction]]:
    """Return what a percentile is of, and which shares of its values are below what is asked for."""
    if call.within is not None:
        if call.name not in ("PERCENTILE_CONT", "PERCENTILE_DISC") or len(call.arguments) != 1:
            refuse(call.within, f"WITHIN GROUP is not accepted with {call.name}")
        share = _share(call.arguments[0], whole=1)
        return call.within.value, [1 - share if call.within.descending else share]
    if not call.arguments:
        refuse(call, "a function without a column is not accepted")
    column, numbers = call.arguments[0], call.arguments[1:]
    if call.name == "MEDIAN":
        _only_value(call, scope)
        return column, [Fraction(1, 2)]
    in_name = PERCENTILE.fullmatch(call.name)
    if in_name is not None and in_name["number"] is not None:
        if numbers:
            refuse(call, _EXPECTED)
        return column, [_checked(Fraction(int(in_name["number"]), 100), call)]
    if not numbers or (len(numbers) > 1 and call.name != "PERCENTILES"):
        refuse(call, _EXPECTED)
    shares = [_share(each, whole=1 if call.name in QUANTILES else 100) for each in numbers]
    # Elsewhere the function of this very name takes a share, of which 1 is all.
    if call.name == "PERCENTILE" and shares == [Fraction(1, 100)]:
        refuse(numbers[0], _OF_ONE)
    return column, shares


def _share(node: tree.Expression, *, whole: int) -> Fraction:
    if not isinstance(node, tree.Number) or len(node.text) > _MAXIMUM_DIGITS or "E" in node.text.upper():
        refuse(node, _EXPECTED)
    number = Fraction(node.text)
    if whole > 1 and 0 < number < 1:
        refuse(node, _TWO_READINGS)
    return _checked(-number if node.negative else number / whole, node)


def _checked(share: Fraction, at: Placed) -> Fraction:
    if not 0 < share < 1:
        refuse(at, _EXPECTED)
    return share

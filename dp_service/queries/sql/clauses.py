"""Which part of a statement an error is about that the statement's question meets later: a limit, or the policy.

Errors name a field of the question or a rule, and most of them begin with a column's name. Places follow from the text
and the policy alone, as the errors do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.sql import tree
from dp_service.queries.sql.numbers import is_number
from dp_service.queries.sql.places import Placed, RefusedHereError

_FILTERS = frozenset(["filters", "time_range", Rule.FILTER, Rule.TIME_COLUMN])
_NUMBERS = frozenset(["aggregates", "quantiles", "measure", Rule.MEASURE])
_COLUMNS = frozenset([Rule.COLUMN, Rule.MEMBER_COLUMN])
_ORDERS = frozenset(["ordered_by", "by_element", "smallest_first"])


@contextmanager
def placed_in(select: tree.Select) -> Iterator[None]:
    """Give the errors of a statement's question the place of the clause, and the column in it, that they are about."""
    try:
        yield
    except (QuestionError, RefusedByPolicyError) as error:
        raise RefusedHereError(place_of(error, select), error) from None


def place_of(error: QuestionError | RefusedByPolicyError, select: tree.Select) -> Placed:
    """Return what in a statement of one table an error is about; its first word where nothing is known."""
    about = error.rule if isinstance(error, RefusedByPolicyError) else error.field
    name = getattr(error, "name", "") or str(error).partition(":")[0]
    clauses = list(_clauses(about, select))
    named = (each for clause in clauses for each in _names(clause) if each.parts[-1].value == name)
    return next(named, clauses[0] if clauses else select.first)


def _clauses(about: str, select: tree.Select) -> Iterator[tree.Expression]:
    """Yield the expressions that a field or a rule is about, the likeliest first."""
    selected = [each.value for each in select.items]
    if about in _FILTERS and select.where is not None:
        yield select.where
    elif about == "having" and select.having is not None:
        yield select.having
    elif about in _NUMBERS:
        yield from (each for each in selected if is_number(each))
    elif about in ("k", "sql") and select.limit is not None:
        yield select.limit
    elif about in _ORDERS:
        yield from (each.value for each in select.order)
    grouped = [each for each in selected if not is_number(each)]
    if about in ("dimensions", Rule.GROUP_BY):
        yield from grouped
    elif about in _COLUMNS:
        # The member column may be in numbers.
        yield from (*grouped, *([] if select.where is None else [select.where]), *selected)
    elif about in _FILTERS:
        # Functions of a row have conditions, and ranges of time, of their own.
        yield from (each for each in grouped if not isinstance(each, tree.Name))
        yield from (found for each in selected if is_number(each) for found in _conditions(each))


def _names(node: tree.Expression) -> Iterator[tree.Name]:
    """Yield the names in an expression, from its beginning on."""
    return (each for each in _within(node) if isinstance(each, tree.Name))


def _conditions(number: tree.Expression) -> Iterator[tree.Expression]:
    """Yield the conditions of a number."""
    calls = (each for each in _within(number) if isinstance(each, tree.Call))
    return (each.where for each in calls if each.where is not None)


def _within(node: tree.Expression) -> Iterator[tree.Expression]:
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += [*tree.parts_of(each)][::-1]

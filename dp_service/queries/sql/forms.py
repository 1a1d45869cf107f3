"""Functions whose arguments are more than values, most of them another way to write CASE, FILTER or a bin.

EXTRACT(HOUR FROM column)                      a part of a time
IF(condition, a [, b]), IFF(..), IIF(..)       CASE WHEN condition THEN a [ELSE b] END
COUNT_IF(condition), COUNTIF(..)               COUNT(*) FILTER (WHERE condition)
SUM_IF(value, condition), AVG_IF(..)           SUM(value) FILTER (WHERE condition)
FLOOR(value / 10) * 10, 10 * FLOOR(..), FLOOR(value / 10)
                                               the bin of a number, by its lower end or by its place
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dp_service.queries.sql import tree
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.refusals import refuse_function
from dp_service.queries.sql.tree import Expression
from dp_service.queries.sql.words import EXTRACTIONS, PARTS

if TYPE_CHECKING:
    from dp_service.queries.sql.expressions import ExpressionReader

_WINDOW = (
    "a window function is not accepted but for a sum over the shown rows, such as SUM(SUM(value)) OVER () or 100.0 * "
    "COUNT(*) / SUM(COUNT(*)) OVER (): compute others from the rows of the answer"
)
_BIN = "expected FLOOR(column / 10) * 10, the bins of a number by their lower ends, or FLOOR(column / 10)"


def is_part(node: Expression) -> bool:
    """Return whether a node is a part of a time, which is a whole number."""
    return isinstance(node, tree.Call) and (node.name in EXTRACTIONS or node.name in PARTS)


def over_all(reader: ExpressionReader, call: Expression) -> tree.OverAll:
    """Read OVER () behind the sum of a number of the answer, the one window function that there is."""
    window = reader.take()
    is_sum = isinstance(call, tree.Call) and call.name == "SUM" and not call.distinct
    if not isinstance(call, tree.Call) or not is_sum or call.where is not None or call.within is not None:
        refuse(window, "a window function is not accepted: compute it from the rows of the answer")
    if [type(each) for each in call.arguments] != [tree.Call] or not reader.takes("(", ")"):
        refuse(window, _WINDOW)
    return tree.OverAll(call.first, reader.last, call.arguments[0])


def _extract(reader: ExpressionReader) -> Expression:
    first = reader.take()

    def read() -> tuple[Expression, Expression]:
        unit = reader.take()
        if unit.kind not in ("word", "text"):
            refuse(unit, "expected a part of a time such as HOUR in EXTRACT(HOUR FROM column)")
        reader.expect("FROM")
        return tree.Text(unit, unit, unit.value), reader.value()

    arguments = reader.in_parentheses(read)
    return tree.Call(first, reader.last, first.word, arguments)


def _if(reader: ExpressionReader) -> Expression:
    first = reader.take()

    def read() -> tuple[Expression, ...]:
        condition = reader.condition()
        reader.expect(",")
        then = reader.value()
        return (condition, then, reader.value()) if reader.takes(",") else (condition, then)

    condition, then, *otherwise = reader.in_parentheses(read)
    return tree.Case(first, reader.last, (condition,), (then,), otherwise[0] if otherwise else None)


def _count_if(reader: ExpressionReader) -> Expression:
    first = reader.take()
    condition = reader.in_parentheses(reader.condition)
    star = (tree.Star(first, first),)
    return tree.Call(first, reader.last, "COUNT", star, where=condition)


def _number_if(reader: ExpressionReader) -> Expression:
    first = reader.take()

    def read() -> tuple[Expression, Expression]:
        value = reader.value()
        reader.expect(",")
        return value, reader.condition()

    value, condition = reader.in_parentheses(read)
    return tree.Call(first, reader.last, first.word[:3], (value,), where=condition)


def _floor(reader: ExpressionReader) -> Expression:
    """Read FLOOR as a function of a column and the width of its bins; a third argument says that they are scaled."""
    first = reader.take()
    column, width = reader.in_parentheses(lambda: _quotient(reader))
    scale: tuple[Expression, ...] = ()
    if reader.takes("*"):
        scale = (_number(reader),)
        _require_same(scale[0], width)
    return tree.Call(first, reader.last, "FLOOR", (column, width, *scale))


def scaled_bins(reader: ExpressionReader, scale: tree.Number) -> Expression:
    """Read FLOOR behind the number that its bins are multiplied with, and *."""
    reader.expect("*")
    reader.expect("FLOOR")
    column, width = reader.in_parentheses(lambda: _quotient(reader))
    _require_same(scale, width)
    return tree.Call(scale.first, reader.last, "FLOOR", (column, width, scale))


def _require_same(scale: tree.Expression, width: tree.Number) -> None:
    if tree.without_places(scale) != tree.without_places(width):
        refuse(scale, f"{_BIN}: the number beside * is the one behind /")


def _quotient(reader: ExpressionReader) -> tuple[Expression, tree.Number]:
    if reader.next.text == "(":
        return reader.in_parentheses(lambda: _quotient(reader))
    column = reader.signed()
    if isinstance(column, tree.Call):
        refuse(
            column, f"{column.name}(..) in FLOOR is not accepted: of times write DATE_TRUNC('day', column)"
        )
    if not reader.takes("/"):
        refuse(column, f"{_BIN}; an answer's own numbers are rounded afterwards")
    return column, _number(reader)


def _number(reader: ExpressionReader) -> tree.Number:
    found = reader.signed()
    if not isinstance(found, tree.Number):
        refuse(found, _BIN)
    return found


def _trunc(reader: ExpressionReader) -> Expression:
    """Read TRUNC of a part of a time, which is a whole number as it is."""
    name = reader.take()
    found = reader.in_parentheses(reader.value)
    is_year = isinstance(found, tree.Call) and any(
        isinstance(each, tree.Text) and each.value.upper() == "YEAR" for each in found.arguments
    )
    if is_year or not is_part(found):
        refuse_function(name)
    return found


# As Superset writes times for PostgreSQL.
_FORMATS = {"TO_DATE": "YYYY-MM-DD", "TO_TIMESTAMP": "YYYY-MM-DD HH24:MI:SS.US"}


def _to_time(reader: ExpressionReader) -> Expression:
    first = reader.take()

    def read() -> tuple[Expression, Expression]:
        text = reader.value()
        reader.expect(",")
        return text, reader.value()

    text, form = reader.in_parentheses(read)
    is_known = isinstance(form, tree.Text) and form.value == _FORMATS[first.word]
    if not isinstance(text, tree.Text) or text.kind or not is_known:
        refuse(first, f"expected {first.word}(text, '{_FORMATS[first.word]}'), or the text alone")
    return tree.Text(first, reader.last, text.value, kind=first.word.removeprefix("TO_"))


FORMS: dict[str, Callable[[ExpressionReader], Expression]] = {
    "EXTRACT": _extract,
    **dict.fromkeys(("IF", "IFF", "IIF"), _if),
    **dict.fromkeys(("COUNT_IF", "COUNTIF"), _count_if),
    **dict.fromkeys(("SUM_IF", "SUMIF", "AVG_IF", "AVGIF"), _number_if),
    **dict.fromkeys(("TO_DATE", "TO_TIMESTAMP"), _to_time),
    "FLOOR": _floor,
    "TRUNC": _trunc,
}
"""How a function is read, by its name."""

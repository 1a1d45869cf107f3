"""DATE_TRUNC in a question's SQL: `DATE_TRUNC('month', column)`, or DATETRUNC as Apache Pinot spells it too."""

from __future__ import annotations

from sqlglot import exp

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_nodes import only
from dp_service.queries.sql_tokens import TRUNCATIONS, refuse

_FORM = f"DATE_TRUNC('{BucketLength.MONTH}', column)"
_LENGTHS = ", ".join(f"'{length}'" for length in BucketLength)
_ARGUMENTS = 2


def is_bucket(node: exp.Expr) -> bool:
    """Return whether a node is such a function."""
    named = isinstance(node, exp.Anonymous) and str(node.this).upper() in TRUNCATIONS
    return named or isinstance(node, exp.DateTrunc)


def bucket_length(node: exp.Expr) -> BucketLength:
    """Return how long its buckets are.

    Raises:
        QuestionError: It has other arguments than a length and a column, or there are no such buckets.
    """
    unit, _ = _arguments(node)
    if isinstance(unit, exp.Literal) and unit.is_string:
        for length in BucketLength:
            if unit.this.upper() == length.upper():
                return length
    raise QuestionError("sql", f"expected one of {_LENGTHS} in {_FORM}")


def truncated(node: exp.Expr) -> exp.Expr:
    """Return what is truncated."""
    return _arguments(node)[1]


def _arguments(node: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    if isinstance(node, exp.DateTrunc):
        # The parser itself adds whether a date stays one.
        if node.args.get("zone") is not None:
            _refuse_more()
        only(node, "unit", "this", "input_type_preserved")
        return node.args["unit"], node.this
    only(node, "this", "expressions")
    if len(node.expressions) != _ARGUMENTS:
        _refuse_more()
    return node.expressions[0], node.expressions[1]


def _refuse_more() -> None:
    refuse(f"DATE_TRUNC other than {_FORM}: the policy says which zone's calendar it is,")

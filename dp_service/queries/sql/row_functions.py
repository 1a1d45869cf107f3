"""Functions that a question may group by: buckets and parts of time, bins, and those of a member's rows.

DATE_TRUNC('month', time)                                    buckets of time
EXTRACT(HOUR FROM time), DATE_PART('hour', time), HOUR(time) a part of the time
WIDTH_BUCKET(column, low, high, n), FLOOR(column / 10) * 10  bins (`bins`)
LOWER, UPPER, LEFT, SUBSTR, SPLIT_PART                       parts of a text
"""

from __future__ import annotations

from dp_service.queries.dimensions import Dimension
from dp_service.queries.functions.buckets import Truncated
from dp_service.queries.functions.first_times import FirstSeen
from dp_service.queries.functions.parts import Extracted
from dp_service.queries.sql import tree
from dp_service.queries.sql.bins import bins_of, is_bins
from dp_service.queries.sql.forms import is_part
from dp_service.queries.sql.member_functions import first_of, is_member_function, member_function
from dp_service.queries.sql.scope import Scope, refused_node
from dp_service.queries.sql.text_parts import part_of_text
from dp_service.queries.sql.time_functions import extracted, is_bucket, truncated, uncast
from dp_service.queries.sql.words import PARTS_OF_TEXTS


def is_function(node: tree.Expression) -> bool:
    """Return whether a node is a function that can be grouped by."""
    node = uncast(node)
    return isinstance(node, tree.Call) and (
        is_bucket(node)
        or is_part(node)
        or node.name in PARTS_OF_TEXTS
        or is_bins(node)
        or is_member_function(node)
    )


def dimension_of(node: tree.Expression, scope: Scope) -> Dimension:
    """Return what a node groups by: a column, or a function of a row.

    Raises:
        QuestionError: It is something else.
        RefusedByPolicyError: The policy does not list a column.
    """
    inner = uncast(node)
    if is_function(inner) and isinstance(inner, tree.Call):
        return _of_call(inner, scope)
    if not isinstance(node, tree.Name):
        raise refused_node(node)
    return scope.column_name(node)


def _of_call(node: tree.Call, scope: Scope) -> Dimension:
    if is_member_function(node):
        return member_function(node, scope)
    if is_bins(node):
        return bins_of(node, scope)
    if node.name in PARTS_OF_TEXTS:
        return part_of_text(node, scope)
    if not is_bucket(node):
        part, column = extracted(node)
        return Extracted(scope.column_name(column), part)
    length, column = truncated(node)
    first = first_of(column)
    if first is not None:
        return FirstSeen(scope.column_name(first), length)
    return Truncated(scope.column_name(column), length)


def column_of(node: tree.Expression) -> tree.Expression:
    """Return the column that a node selects, or of which it selects a function; another node as it is."""
    inner = uncast(node)
    if isinstance(inner, tree.Call) and inner.arguments and (is_bins(inner) or inner.name in PARTS_OF_TEXTS):
        return inner.arguments[0]
    if isinstance(inner, tree.Call) and is_bucket(inner):
        return truncated(inner)[1]
    return extracted(inner)[1] if isinstance(inner, tree.Call) and is_part(inner) else node

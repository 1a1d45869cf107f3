"""LOWER, UPPER, LEFT, SUBSTR and SPLIT_PART: as what a question groups by, and conditions on them, which LIKE has.

LOWER(column) = 'a', LOWER(column) LIKE 'a%'    column ILIKE 'a', column ILIKE 'a%'
LEFT(column, 2) = 'ab'                          column LIKE 'ab%'
"""

from __future__ import annotations

import re

from dp_service.queries.filters import AnyOf, Filter, Like, literal_pattern, opposite
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.sql import tree
from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.scope import Scope, integer
from dp_service.queries.sql.words import PARTS_OF_TEXTS
from dp_service.queries.text_functions import Folded, Piece, Prefix, TextFunction
from dp_service.terms import ColumnType, Comparison

_INSTEAD = (
    "write column ILIKE 'a%', which ignores the case of the letters A to Z, or LIKE: a condition on {}(..) is accepted "
    "where one of these says the same"
)


_ESCAPE = (
    "expected %, _ or the escape sign behind the escape sign of a pattern, which is a backslash unless ESCAPE says "
    "otherwise: write it twice, or ESCAPE '' for a pattern that has none"
)


def is_part_of_text(node: tree.Expression) -> bool:
    """Return whether a node is such a function."""
    return isinstance(node, tree.Call) and node.name in PARTS_OF_TEXTS


def text_condition(node: tree.Expression, scope: Scope) -> Filter | None:
    """Return what a condition on such a function means; None: it is on something else."""
    match node:
        case (
            tree.Compared(left=tree.Call() as call, right=other)
            | tree.Compared(left=other, right=tree.Call() as call)
        ):
            compared = node.comparison
            values: tuple[tree.Expression, ...] = (other,)
        case tree.Listed(value=tree.Call() as call, values=values):
            compared = Comparison.EQUAL
        case tree.Like(value=tree.Call() as call, pattern=pattern):
            compared, values = Comparison.EQUAL, (pattern,)
        case _:
            return None
    if not is_part_of_text(call):
        return None
    of, column = part_of_text(call, scope), scope.column(call.arguments[0])
    if column.type is not ColumnType.STRING:
        refuse(call, f"{column.name}: expected a part of a column of texts")
    if compared not in (Comparison.EQUAL, Comparison.NOT_EQUAL):
        refuse(node, _INSTEAD.format(call.name))
    parts = tuple(_same(each, of, call, node if isinstance(node, tree.Like) else None) for each in values)
    found = parts[0] if len(parts) == 1 else AnyOf(parts)
    return found if compared is Comparison.EQUAL else opposite(found)


def _same(node: tree.Expression, of: PartOfText, call: tree.Call, like: tree.Like | None) -> Like:
    """Return the pattern of the texts whose part is a text, or has a pattern."""
    if not isinstance(node, tree.Text) or node.kind:
        refuse(node, _INSTEAD.format(call.name))
    text = node.value
    pattern = literal_pattern(text) if like is None else pattern_text(like, text)
    found: Like | None = None
    match of.function:
        case Folded() if of.function.of(text) == text:
            found = Like(of.column, pattern, folds=True)
        case Prefix(length=length) if len(text) == length and like is None:
            found = Like(of.column, f"{pattern}%")
    if found is None:
        refuse(node, _INSTEAD.format(call.name))
    return found


def pattern_text(node: tree.Like, text: str) -> str:
    """Return the text of a pattern with a backslash as its escape sign."""
    found = ""
    for piece in re.findall(rf"{re.escape(node.escape)}.|.", text, re.DOTALL):
        is_escape = node.escape and piece.startswith(node.escape)
        if is_escape and piece[1:] not in ("%", "_", node.escape):
            refuse(node.pattern, _ESCAPE)
        found += literal_pattern(piece[1:]) if is_escape else piece.replace("\\", "\\\\")
    return found


def part_of_text(node: tree.Call, scope: Scope) -> PartOfText:
    """Return the function of a text that a call is."""
    if not node.arguments or node.distinct or node.within is not None:
        refuse(node, _PARTS[node.name])
    column, *arguments = node.arguments
    match node.name, arguments:
        case "LOWER" | "LCASE" | "UPPER" | "UCASE", []:
            function: TextFunction = Folded(upper=node.name.startswith("U"))
        case "LEFT", [tree.Number() as length]:
            function = Prefix(integer(length))
        case "SUBSTR" | "SUBSTRING", [tree.Number(text="1", negative=False), tree.Number() as length]:
            function = Prefix(integer(length))
        case "SPLIT_PART" | "SPLITPART", [tree.Text(value=separator, kind=""), tree.Number() as place]:
            function = Piece(separator, integer(place))
        case _:
            refuse(node, _PARTS[node.name])
    return PartOfText(scope.column_name(column), function)


_PARTS = {
    **dict.fromkeys(("LOWER", "LCASE", "UPPER", "UCASE"), "expected LOWER(column) or UPPER(column)"),
    **dict.fromkeys(("LEFT", "SUBSTR", "SUBSTRING"), "expected LEFT(column, n) or SUBSTR(column, 1, n)"),
    **dict.fromkeys(("SPLIT_PART", "SPLITPART"), "expected SPLIT_PART(column, '@', 2)"),
}

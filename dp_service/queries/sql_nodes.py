"""Reads sqlglot's tree and accepts only an allow-list of nodes and arguments."""

from __future__ import annotations

from typing import NoReturn

from sqlglot import exp

from dp_service.queries.sql_tokens import refuse

_MAXIMUM_DIGITS = 19

_NAMES: dict[type, str] = {
    exp.Or: "OR",
    exp.Not: "NOT other than in NOT IN",
    exp.Is: "IS",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.Null: "NULL",
    exp.Subquery: "a subquery",
    exp.Fetch: "FETCH",
    exp.Star: "*",
    exp.Alias: "an alias other than of the count",
    exp.Cast: "a cast or typed literal other than DATE",
    exp.Neg: "a sign before something other than an integer",
}


def refuse_node(node: object) -> NoReturn:
    """Refuse a node; the message names its kind."""
    refuse(_NAMES.get(type(node), "an expression other than columns, literals and the count"))


def only(node: exp.Expr, *arguments: str) -> None:
    """Refuse a node that has any argument except those named."""
    surplus = sorted(key for key, value in node.args.items() if value and key not in arguments)
    if surplus and type(node.args[surplus[0]]) in _NAMES:
        refuse_node(node.args[surplus[0]])
    if surplus:
        refuse(f"{surplus[0].rstrip('_').upper()} in {node.key.upper()}")


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the node inside redundant parentheses."""
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    return node


def column_name(node: exp.Expr) -> str:
    """Return the name of a plain column."""
    if not isinstance(node, exp.Column):
        refuse_node(node)
    only(node, "this")
    return identifier_name(node.this)


def identifier_name(node: object) -> str:
    """Return a name as it was written."""
    if not isinstance(node, exp.Identifier):
        refuse_node(node)
    only(node, "this", "quoted")
    return str(node.this)


def whole_number(node: exp.Expr) -> int | None:
    """Return the value of an unsigned integer literal, or None if the node is anything else."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    only(node, "this", "is_string")
    # Longer ones fit in no column, and Python refuses to convert very long ones.
    if len(node.this) > _MAXIMUM_DIGITS:
        refuse("an integer of more than 64 bits")
    return int(node.this)

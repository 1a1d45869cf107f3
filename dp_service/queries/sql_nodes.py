"""Reads sqlglot's tree and accepts only an allow-list of nodes and arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_tokens import refuse
from dp_service.queries.tables import Table

_MAXIMUM_DIGITS = 19
_DIGITS = re.compile(r"[0-9]+")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

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
    exp.Alias: "an alias other than of a selected column or of the count",
    exp.Cast: "a cast or typed literal other than DATE, and TIMESTAMP for a column of timestamps,",
    exp.Neg: "a sign before something other than an integer",
    exp.Window: "a window function",
}
# What sqlglot calls an argument, in the words of who writes SQL.
_ARGUMENTS = {
    "joins": "a join, or a second table,",
    "laterals": "a lateral join",
    "qualify": "QUALIFY",
    "offset": "OFFSET",
    "distinct": "SELECT DISTINCT",
    "sort": "SORT BY",
    "distribute": "DISTRIBUTE BY",
    "cluster": "CLUSTER BY",
    "locks": "FOR UPDATE",
    "windows": "a named window",
    "rollup": "ROLLUP",
    "cube": "CUBE",
    "grouping_sets": "GROUPING SETS",
    "all": "GROUP BY ALL",
    "totals": "WITH TOTALS",
    "symmetric": "BETWEEN SYMMETRIC",
    "db": "a schema or database before a name",
    "catalog": "a schema or database before a name",
    "sample": "a sample of a table",
    "pivots": "PIVOT",
    "into": "SELECT INTO",
    "accuracy": "a second argument of a distinct count",
    "limit_options": "a word after the number of LIMIT",
    "columns": "a list of columns after a table's alias",
}


@dataclass(frozen=True)
class Scope:
    """The table of a question, and the name by which the question's text calls it: its own or its alias."""

    table: Table
    qualifier: str

    def column_name(self, node: exp.Expr) -> str:
        """Return the name of a plain column, with or without its table's name before it."""
        if not isinstance(node, exp.Column):
            refuse_node(node)
        only(node, "this", "table")
        before = node.args.get("table")
        if before is not None and identifier_name(before) != self.qualifier:
            # An alias is the asker's word, and may be a value without its quotes.
            expected = self.table.name if self.qualifier == self.table.name else "the table's alias"
            raise QuestionError("sql", f"expected {expected} before a column, or nothing")
        return plain_name(node.this)


def refuse_node(node: object) -> NoReturn:
    """Refuse a node; the message names its kind."""
    refuse(_NAMES.get(type(node), "an expression other than columns, literals and the count"))


def only(node: exp.Expr, *arguments: str) -> None:
    """Refuse a node that has any argument except those named."""
    surplus = sorted(key for key, value in node.args.items() if value and key not in arguments)
    if not surplus:
        return
    if type(node.args[surplus[0]]) in _NAMES:
        refuse_node(node.args[surplus[0]])
    word = surplus[0].rstrip("_")
    refuse(_ARGUMENTS.get(word, f"{word.upper()} in {node.key.upper()}"))


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the node inside redundant parentheses."""
    while isinstance(node, exp.Paren):
        only(node, "this")
        node = node.this
    return node


def plain_name(node: object) -> str:
    """Return the name of a table or column as it was written; a policy lists only plain ASCII names."""
    name = identifier_name(node)
    if not _PLAIN_NAME.fullmatch(name):
        refuse("a table or column with other characters than ASCII letters, digits and underscores")
    return name


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
    if not _DIGITS.fullmatch(node.this):
        refuse("a number other than an integer")
    # Longer ones fit in no column, and Python refuses to convert very long ones.
    if len(node.this) > _MAXIMUM_DIGITS:
        refuse("an integer of more than 64 bits")
    return int(node.this)

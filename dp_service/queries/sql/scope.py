"""The table of a statement, and what names mean in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from dp_service.queries.columns import Column, Nulls
from dp_service.queries.sql import tree
from dp_service.queries.sql.places import RefusedHereError, placed, refuse, refused
from dp_service.queries.sql.tokens import Token
from dp_service.queries.tables import Policy, Table

MAXIMUM_ALIAS_LENGTH = 128
_SCHEMAS = frozenset({"default", "public"})
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS: dict[type, str] = {
    tree.Star: "*",
    tree.Row: "several values in parentheses",
    tree.Not: "NOT before something other than a condition",
    tree.OfMember: "a number of each member outside of COUNT, SUM, AVG and percentiles",
}
_TRUTH = (
    "a condition is not accepted as a column: put it into WHERE or FILTER, or make a column of it, in a view in Pinot "
    "or DuckDB"
)
_INSTEAD: dict[type, str] = {
    tree.Null: "a comparison with NULL is not accepted: write IS NULL or IS NOT NULL",
    tree.Cast: "a cast of something other than a text or DATE_TRUNC('day', column) is not accepted: leave it out, or "
    "for days write DATE_TRUNC('day', column) to group, and a range of days to filter",
    tree.Case: "CASE and IF are not accepted outside of a number: make a column of them, in a view in Pinot or DuckDB, "
    "or ask with each condition in WHERE or FILTER",
    **dict.fromkeys(
        (tree.Compared, tree.Listed, tree.Between, tree.Like, tree.IsNull, tree.All, tree.Any), _TRUTH
    ),
}
_NO_TABLE = (
    "expected FROM with a table: SELECT without one, such as SELECT 1, asks for nothing that a policy lists. To test a "
    "connection, read the catalogue, which is free (gris catalog, or catalog() in Python)"
)


@dataclass(frozen=True)
class Scope:
    """The table of a question, and the name by which the question's text calls it: its own or its alias.

    Rows without a value of a column in `present` are left out of the question, which groups by it or has a condition on
    it.
    """

    table: Table
    qualifier: str
    present: frozenset[str] = frozenset()

    def column_name(self, node: tree.Expression) -> str:
        """Return the name of a plain column, with or without its table's name, and a schema, before it."""
        if not isinstance(node, tree.Name):
            raise refused_node(node)
        *before, last = node.parts
        if before and before[-1].value != self.qualifier:
            # An alias is the asker's word, and may be a value without its quotes.
            expected = self.table.name if self.qualifier == self.table.name else "the table's alias"
            refuse(before[-1], f"expected {expected} before a column, or nothing")
        _check_schema(before[:-1])
        return plain_name(last)

    def column(self, node: tree.Expression) -> Column:
        """Return the column that a node names."""
        name = self.column_name(node)
        with placed(node):
            return self.table.column(name)


def scope_of(select: tree.Select, policy: Policy) -> Scope:
    """Return the table of a statement."""
    source = select.source
    if source is None:
        refuse(select, _NO_TABLE)
    if not isinstance(source, tree.TableName):
        refuse(source, "a FROM clause other than of one table is not accepted")
    *before, last = source.parts
    _check_schema(before)
    name = plain_name(last)
    with placed(source):
        table = policy.table(name)
    dropping = {each.name for each in table.columns if each.nulls is Nulls.DROP}
    qualifier = table.name if source.alias is None else alias_name(source.alias)
    return Scope(table, qualifier, frozenset(dropping.intersection(_without_nulls(select))))


def _without_nulls(select: tree.Select) -> Iterator[str]:
    """Yield the last part of the names that a statement selects, or that each of its conditions is on alone."""
    nodes = [each.value for each in select.items]
    for condition in () if select.where is None else tree.conjunction(select.where):
        held = condition.condition if isinstance(condition, tree.Not) else condition
        is_held = held is not condition or not isinstance(held, tree.IsNull)
        nodes += list(tree.parts_of(held))[:1] if is_held else []
    yield from (each.parts[-1].value for each in nodes if isinstance(each, tree.Name))


def _check_schema(names: list[Token]) -> None:
    if len(names) > 1 or any(each.value not in _SCHEMAS for each in names):
        if names[0].word == "INFORMATION_SCHEMA":
            refuse(
                names[0],
                "information_schema is not accepted: tables and columns are in the catalogue, which is free",
            )
        refuse(
            names[0],
            'a schema or database before a name is not accepted, but "default" and "public": leave it out',
        )


def plain_name(token: Token) -> str:
    """Return the name of a table or column as it is written; a policy lists only plain ASCII names."""
    if not _PLAIN_NAME.fullmatch(token.value):
        refuse(
            token,
            "a table or column with other characters than ASCII letters, digits and underscores is not accepted",
        )
    return token.value


def alias_name(token: Token) -> str:
    """Return an alias as it is written, without its quotes."""
    name = token.value
    if not 1 <= len(name) <= MAXIMUM_ALIAS_LENGTH or not name.strip():
        refuse(token, f"expected an alias of 1 to {MAXIMUM_ALIAS_LENGTH} characters")
    if any(unicodedata.category(character).startswith("C") for character in name):
        refuse(token, "an alias with control or invisible characters is not accepted")
    return name


def refused_node(node: tree.Expression) -> RefusedHereError:
    """Return the refusal of an expression that has no meaning where it stands; the message names its kind."""
    if isinstance(node, tree.Text) and node.kind:
        return refused(
            node, "a typed literal other than DATE, and TIMESTAMP for a column of timestamps, is not accepted"
        )
    if isinstance(node, tree.Call):
        return refused(node, f"{node.name}(..) is not accepted here")
    if type(node) in _INSTEAD:
        return refused(node, _INSTEAD[type(node)])
    kind = _KINDS.get(type(node), "an expression other than columns, literals and the count")
    return refused(node, f"{kind} is not accepted")


def whole_number(node: tree.Expression) -> int | None:
    """Return the value of an integer without a sign, or None if the node is anything else."""
    if not isinstance(node, tree.Number) or node.negative:
        return None
    return integer(node)


def integer(node: tree.Number) -> int:
    """Return the value of an integer."""
    if not node.text.isdigit():
        refuse(
            node, "a number other than an integer is not accepted: columns hold integers, compare by < or >="
        )
    digits = node.text.lstrip("0") or "0"
    # Longer ones fit in no column, and Python refuses to convert very long ones.
    if len(digits) > len(str(2**63)):
        refuse(node, "an integer of more than 64 bits is not accepted")
    return -int(digits) if node.negative else int(digits)

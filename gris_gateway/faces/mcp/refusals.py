"""Refusals with what only the catalogue says: a call about the same table that was found to be accepted."""

# ruff: noqa: S608  (the SQL is an example for readers, of the policy's own names)

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from gris_gateway.faces.mcp.arguments import Arguments, CatalogArguments, Question
from pinot_connector.catalog import TableEntry
from pinot_connector.errors import ErrorCode, GrisError, InvalidQuestion, RefusedByPolicy
from pinot_connector.gateway_client import AsyncGatewayClient

_FROM = re.compile(r"\bFROM\s+\"?(\w{1,128})", re.IGNORECASE)
_OF_QUESTIONS = (ErrorCode.INVALID_QUESTION.value, ErrorCode.REFUSED_BY_POLICY.value)


async def example_for(
    failure: Mapping[str, Any],
    client: AsyncGatewayClient,
    takes: type[Arguments],
    arguments: Mapping[str, Any],
) -> dict[str, Any]:
    """Return arguments by which a refused call is accepted; none: nothing is known of any.

    The price of an example is asked for, which is free, before it is shown: none is shown that is refused, and none
    where the catalogue cannot be read.

    Args:
        failure: Why it is refused.
        client: Whom to ask.
        takes: The arguments of the tool.
        arguments: Those that are refused.
    """
    is_about_table = failure.get("field") in (None, "sql", "table")
    is_of_question = is_about_table and issubclass(takes, Question | CatalogArguments)
    if failure["error"] not in _OF_QUESTIONS or not is_of_question:
        return {}
    table = arguments.get("table") or "".join(_FROM.findall(str(arguments.get("sql")))[:1])
    try:
        (meant, *_) = await _tables(client, str(table))
    except (GrisError, ValueError):
        return {}
    if issubclass(takes, CatalogArguments):
        return {"table": meant.name}
    for sql in _questions(meant):
        with suppress(GrisError):
            await client.explain(sql)
            return {"sql": sql}
    return {}


async def _tables(client: AsyncGatewayClient, named: str) -> tuple[TableEntry, ...]:
    """Return the table that is named, or all if there is none of that name."""
    try:
        return (await client.catalog(named)).tables
    except (RefusedByPolicy, InvalidQuestion):
        return (await client.catalog()).tables


def _questions(table: TableEntry) -> Iterator[str]:
    """Yield questions of a table: the largest elements of a column, or a total."""
    is_of_members = any(each.text == "distinct_members" for each in table.measures)
    counted = f"COUNT(DISTINCT {table.member})" if is_of_members else "COUNT(*)"
    for column in table.columns:
        if column.mechanism is not None:
            yield f"SELECT {column.name}, {counted} FROM {table.name} GROUP BY {column.name} ORDER BY 2 DESC LIMIT 10"
    yield f"SELECT {counted} FROM {table.name}"

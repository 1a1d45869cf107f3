"""Refusals with what only the catalogue says: the table that is meant, and a call that was found to be accepted."""

# ruff: noqa: S608  (the SQL is an example for readers, of the policy's own names)

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gris_gateway.faces.mcp.arguments import Arguments, CatalogArguments, Question
from gris_gateway.faces.mcp.failures import Failure
from gris_gateway.faces.mcp.naming import nearest_of, no_such
from pinot_connector.catalog import TableEntry
from pinot_connector.errors import ErrorCode, GrisError, InvalidQuestion, RefusedByPolicy
from pinot_connector.gateway_client import AsyncGatewayClient

_FROM = re.compile(r"\bFROM\s+\"?(\w{1,128})", re.IGNORECASE)
_OF_QUESTIONS = (ErrorCode.INVALID_QUESTION.value, ErrorCode.REFUSED_BY_POLICY.value)
_FIXED: dict[str | None, dict[str, Any]] = {"confidence": {"confidence": 0.95}, "most": {"most": 5}}


async def explained(
    failure: Failure, client: AsyncGatewayClient, takes: type[Arguments], arguments: Mapping[str, Any]
) -> Failure:
    """Return a refusal with the table that is meant, and with arguments by which the call is accepted.

    The price of an example is asked for, which is free, before it is shown: none is shown that is refused, and none
    where the catalogue cannot be read.

    Args:
        failure: What is known without the catalogue.
        client: Whom to ask.
        takes: The arguments of the tool.
        arguments: Those that are refused.
    """
    is_answered = failure.error not in _OF_QUESTIONS or failure.field == "max_cost"
    if failure.field in _FIXED and not is_answered:
        return _with_example(failure, _FIXED[failure.field])
    if is_answered or not issubclass(takes, Question | CatalogArguments):
        return failure
    sql = arguments.get("sql")
    named = str(arguments.get("table") or "") or "".join(
        _FROM.findall(sql if isinstance(sql, str) else "")[:1]
    )
    try:
        tables = {each.name: each for each in await _tables(client, named)}
    except GrisError:
        return failure
    names = list(tables)
    if named and names and named not in names:
        # The message of SQL has its place.
        place = f"{failure.message}; " if failure.field == "sql" else ""
        failure = failure.model_copy(update={"message": place + no_such("table", named, names)})
    meant = named if named in names else nearest_of(named, names) or "".join(names[:1])
    if issubclass(takes, CatalogArguments):
        return _with_example(failure, {"table": meant}) if meant else failure
    for example in _questions(tables[meant]) if meant else ():
        if await _is_accepted(client, example):
            return _with_example(failure, {"sql": example})
    return failure


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


async def _is_accepted(client: AsyncGatewayClient, sql: str) -> bool:
    try:
        await client.explain(sql)
    except GrisError:
        return False
    return True


def _with_example(failure: Failure, example: Mapping[str, Any]) -> Failure:
    return failure.model_copy(update={"example": json.dumps(example)})

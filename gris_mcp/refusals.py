"""Refusals with what only the catalogue says: what is meant instead of a name, and an example that was tried."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gris_api.dp.v1 import question_pb2
from pydantic import ValidationError

from gris_mcp.arguments import Arguments, CatalogArguments, ColumnCondition, Question
from gris_mcp.examples import FIXED, Given, examples_of, whole_question
from gris_mcp.failures import Failure
from gris_mcp.naming import nearest_of, no_such
from gris_mcp.unknown_names import Unknown, unknown_of
from pinot_connector.catalog import TableEntry
from pinot_connector.errors import ErrorCode, GrisError, InvalidQuestion, RefusedByPolicy
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.results import Explanation

_FROM = re.compile(r"\bFROM\s+\"?(\w{1,128})", re.IGNORECASE)
_BESIDES_A_QUESTION = ("max_cost", "confidence")
_OF_QUESTIONS = (ErrorCode.INVALID_QUESTION.value, ErrorCode.REFUSED_BY_POLICY.value)


async def message_of(client: AsyncGatewayClient, arguments: Question) -> question_pb2.Question:
    """Return the question; the catalogue is read only where it says what a text means."""
    tables = (await client.catalog(arguments.table or "")).tables if arguments.needs_types else (None,)
    return arguments.message(tables[0])


async def explained(
    failure: Failure, client: AsyncGatewayClient, takes: type[Arguments], arguments: Mapping[str, Any]
) -> Failure:
    """Return a refusal with the name that is not known, and with arguments beside which the call is accepted.

    An example is merged into the call and its price asked for, which is free, before it is shown: none is shown that is
    refused, and none where the catalogue cannot be read.

    Args:
        failure: What is known without the catalogue.
        client: Whom to ask.
        takes: The arguments of the tool.
        arguments: Those that are refused.
    """
    if failure.error not in _OF_QUESTIONS:
        return failure
    call = {name: each for name, each in arguments.items() if name != failure.without}
    if not issubclass(takes, Question | CatalogArguments):
        return _with_example(failure, FIXED.get(failure.wants))
    named = str(call.get("table") or "") or "".join(_FROM.findall(str(call.get("sql") or ""))[:1])
    try:
        tables = await _tables(client, named)
    except GrisError:
        return failure
    names = [each.name for each in tables]
    if not names:
        return failure
    if failure.field == "table" and named and named not in names:
        failure = failure.model_copy(update={"message": no_such("table", named, names)})
    meant = named if named in names else nearest_of(named, names) or names[0]
    if issubclass(takes, CatalogArguments):
        return _with_example(failure, {"table": meant} if failure.wants == "table" else None)
    trial = _Trial(client, takes, call, next(each for each in tables if each.name == meant))
    unknown = trial.unknown
    if unknown is not None:
        (wants, *_) = re.split(r"[.\[]", unknown.place)
        found = {"field": unknown.place, "message": unknown.problem, "wants": wants}
        failure = failure.model_copy(update=found)
    own = {} if unknown is None else unknown.example
    return _with_example(failure, await trial.accepted(failure, own))


async def _tables(client: AsyncGatewayClient, named: str) -> tuple[TableEntry, ...]:
    """Return the table that is named, or all if there is none of that name."""
    try:
        return (await client.catalog(named)).tables
    except (RefusedByPolicy, InvalidQuestion):
        return (await client.catalog()).tables


def _with_example(failure: Failure, example: Given | None) -> Failure:
    return failure if example is None else failure.model_copy(update={"example": json.dumps(example)})


@dataclass(frozen=True)
class _Trial:
    """A call that is refused, about a table, and what is accepted instead."""

    client: AsyncGatewayClient
    takes: type[Question]
    call: Given
    table: TableEntry

    @property
    def unknown(self) -> Unknown | None:
        """What the table does not know of the call."""
        asked = self._asked
        return None if asked is None or asked.table != self.table.name else unknown_of(asked, self.table)

    @property
    def _asked(self) -> Question | None:
        try:
            return self.takes.model_validate(self.call)
        except ValidationError:
            return None

    async def accepted(self, failure: Failure, own: Given) -> Given | None:
        """Return what is accepted in the call: the example of the field that is wanted, or all of a question with it.

        Args:
            failure: Why the call is refused.
            own: An example that is better than that of the field; empty: there is none.
        """
        wants = failure.wants
        of_field = examples_of(self.table, column=self._column(failure), is_large=failure.is_large).get(wants)
        example = own or of_field
        if wants == "max_error":
            found = await self._price({**self.call, wants: None})
            width = None if found is None or found.accuracy is None else found.accuracy.half_width
            example = {wants: str(width)} if width else None
        if example is None:
            return None
        # Beside SQL no other argument counts, and whatever else is wrong with the call is another question's.
        others = {
            name: None
            for name in self.call
            if name in self.takes.model_fields and name not in _BESIDES_A_QUESTION
        }
        whole = example if "sql" in example else whole_question(self.table) | example
        for tried in (example, others | whole):
            if await self._price({**self.call, **tried}) is not None:
                return tried
        return None

    def _column(self, failure: Failure) -> str:
        """Return the column of the condition that is refused, as far as that can be read."""
        place = re.match(r"where\[(\d+)\]", failure.field or "")
        where = self.call.get("where") if self._asked is None else self._asked.where
        if not isinstance(where, list) or (place is None and len(where) > 1):
            return ""
        for condition in where[int(place[1]) if place else 0 :]:
            if isinstance(condition, ColumnCondition):
                return condition.column
            return str(condition.get("column", "")) if isinstance(condition, dict) else ""
        return ""

    async def _price(self, call: Given) -> Explanation | None:
        try:
            return await self.client.explain(await message_of(self.client, self.takes.model_validate(call)))
        except (ValidationError, GrisError):
            return None

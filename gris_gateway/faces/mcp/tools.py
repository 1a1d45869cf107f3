"""The five tools: what each takes, what it returns, and how it asks the gateway."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel

from gris_gateway.faces.mcp import descriptions
from gris_gateway.faces.mcp.arguments import (
    Arguments,
    Asked,
    CatalogArguments,
    HistoryArguments,
    Nothing,
    Question,
)
from gris_gateway.faces.mcp.catalog_results import Tables, tables_of
from gris_gateway.faces.mcp.failures import failure_of
from gris_gateway.faces.mcp.refusals import explained
from gris_gateway.faces.mcp.results import (
    Answer,
    Budget,
    History,
    PastAnswer,
    PriceOfQuestion,
    answer_of,
    budget_of,
    only_seen,
    past_answer_of,
    price_of,
)
from pinot_connector.budgets import Level, require_within
from pinot_connector.catalog import BlocksEntry
from pinot_connector.errors import GrisError
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.past_results import PastResult
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation


async def _catalog(client: AsyncGatewayClient, arguments: CatalogArguments) -> Tables:
    return tables_of(await client.catalog(arguments.table), with_values=bool(arguments.table))


async def _blocks(client: AsyncGatewayClient, levels: Sequence[Level]) -> BlocksEntry | None:
    """Return what blocks are called, where some have more left than others."""
    if not any(each.remaining_of_blocks for each in levels):
        return None
    try:
        return (await client.catalog()).blocks
    except GrisError:
        # What was asked for, and perhaps paid for, is shown all the same.
        return None


async def _explain(client: AsyncGatewayClient, arguments: Question) -> PriceOfQuestion:
    explanation = await client.explain(arguments.sql)
    require_within(arguments.max_cost, explanation.worst_case_cost)
    return await _priced(client, explanation)


async def _priced(client: AsyncGatewayClient, explanation: Explanation) -> PriceOfQuestion:
    levels = await client.remaining()
    return price_of(explanation, levels, await _blocks(client, levels))


async def _ask(client: AsyncGatewayClient, arguments: Asked) -> Answer:
    question = sql_question(arguments.sql)
    result = await client.ask(question, confidence=arguments.confidence, max_cost=arguments.max_cost)
    if result.explanation is None:
        return answer_of(result, blocks=await _blocks(client, result.remaining))
    return answer_of(result, explanation=await _priced(client, result.explanation))


async def _history(client: AsyncGatewayClient, arguments: HistoryArguments) -> History:
    answers: list[PastAnswer] = []
    most = arguments.most
    async for release in client.releases(page_size=most):
        answers.append(past_answer_of(PastResult.of(release)))
        if len(answers) == most:
            break
    return History(answers=answers)


async def _budget(client: AsyncGatewayClient, arguments: Nothing) -> Budget:
    levels = await client.remaining()
    return budget_of(levels, await _blocks(client, levels))


@dataclass(frozen=True)
class PrivateTool:
    """A tool: its texts, its schemas, and what it does."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    returns: type[BaseModel]
    run: Callable[[AsyncGatewayClient, Any], Awaitable[BaseModel]]
    is_free: bool = True

    def listed(self) -> Tool:
        """Return what a client is shown of the tool."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.takes.model_json_schema(),
            output_schema=self.returns.model_json_schema(mode="serialization"),
            annotations=ToolAnnotations(
                read_only_hint=self.is_free,
                destructive_hint=False,
                # On a table whose answers do not repeat, a second call is paid again.
                idempotent_hint=self.is_free,
                open_world_hint=False,
            ),
        )

    async def called(self, client: AsyncGatewayClient, arguments: Mapping[str, Any]) -> CallToolResult:
        """Run the tool; whatever goes wrong is a result that says so."""
        try:
            returned = await self.run(client, self.takes.model_validate(dict(arguments)))
        except Exception as error:
            return await self._refused(error, client, arguments)
        content = only_seen(returned.model_dump(mode="json"))
        # Clients that know no structured results read the same as text.
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
        return CallToolResult(content=[TextContent(text=text)], structured_content=content)

    async def _refused(
        self, error: Exception, client: AsyncGatewayClient, arguments: Mapping[str, Any]
    ) -> CallToolResult:
        failure = failure_of(error, self.takes)
        try:
            return (await explained(failure, client, self.takes, arguments)).result()
        except Exception as other:
            return failure_of(other).result()


TOOLS = {
    tool.name: tool
    for tool in (
        PrivateTool("catalog", "What may be asked", descriptions.CATALOG, CatalogArguments, Tables, _catalog),
        PrivateTool(
            "explain", "Price of a question", descriptions.EXPLAIN, Question, PriceOfQuestion, _explain
        ),
        PrivateTool("ask", "Private question", descriptions.ASK, Asked, Answer, _ask, is_free=False),
        PrivateTool("history", "Paid answers", descriptions.HISTORY, HistoryArguments, History, _history),
        PrivateTool("budget", "What is left", descriptions.BUDGET, Nothing, Budget, _budget),
    )
}

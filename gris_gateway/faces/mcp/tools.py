"""The five tools: what each takes, and how it asks the gateway."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from gris_gateway.faces.mcp import descriptions
from gris_gateway.faces.mcp.arguments import (
    Arguments,
    Asked,
    CatalogArguments,
    HistoryArguments,
    Nothing,
    Question,
)
from gris_gateway.faces.mcp.failures import failure_of
from gris_gateway.faces.mcp.refusals import example_for
from gris_gateway.faces.mcp.results import (
    answer_of,
    levels_of,
    only_seen,
    past_answer_of,
    price_of,
    tables_of,
)
from pinot_connector.budgets import require_within
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.past_results import PastResult
from pinot_connector.questions import sql_question


async def _catalog(client: AsyncGatewayClient, arguments: CatalogArguments) -> dict[str, Any]:
    return tables_of(await client.catalog(arguments.table), with_values=bool(arguments.table))


async def _explain(client: AsyncGatewayClient, arguments: Question) -> dict[str, Any]:
    explanation = await client.explain(arguments.sql)
    require_within(arguments.max_cost, explanation.worst_case_cost)
    return price_of(explanation, await client.remaining())


async def _ask(client: AsyncGatewayClient, arguments: Asked) -> dict[str, Any]:
    question = sql_question(arguments.sql)
    result = await client.ask(question, confidence=arguments.confidence, max_cost=arguments.max_cost)
    answer = answer_of(result)
    if result.explanation is not None:
        answer["explanation"] = price_of(result.explanation, await client.remaining())
    return answer


async def _history(client: AsyncGatewayClient, arguments: HistoryArguments) -> dict[str, Any]:
    answers: list[dict[str, Any]] = []
    async for release in client.releases(page_size=arguments.most):
        answers.append(past_answer_of(PastResult.of(release)))
        if len(answers) == arguments.most:
            break
    return {"answers": answers}


async def _budget(client: AsyncGatewayClient, arguments: Nothing) -> dict[str, Any]:
    del arguments
    return {"budget": levels_of(await client.remaining())}


@dataclass(frozen=True)
class PrivateTool:
    """A tool: its texts, the schema of its arguments, and what it does."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    run: Callable[[AsyncGatewayClient, Any], Awaitable[dict[str, Any]]]
    is_free: bool = True

    def listed(self) -> Tool:
        """Return what a client is shown of the tool."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.takes.model_json_schema(),
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
            return CallToolResult(
                content=[_text(await self._refused(error, client, arguments))], is_error=True
            )
        content = only_seen(returned)
        # Clients that know no structured results read the same as text.
        return CallToolResult(content=[_text(content)], structured_content=content)

    async def _refused(
        self, error: Exception, client: AsyncGatewayClient, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        failure = failure_of(error, self.takes)
        try:
            example = await example_for(failure, client, self.takes, arguments)
        except Exception as other:
            return failure_of(other)
        return failure | ({"example": json.dumps(example)} if example else {})


def _text(content: Mapping[str, Any]) -> TextContent:
    return TextContent(text=json.dumps(only_seen(content), ensure_ascii=False, separators=(",", ":")))


TOOLS = {
    tool.name: tool
    for tool in (
        PrivateTool("catalog", "What may be asked", descriptions.CATALOG, CatalogArguments, _catalog),
        PrivateTool("explain", "Price of a question", descriptions.EXPLAIN, Question, _explain),
        PrivateTool("ask", "Private question", descriptions.ASK, Asked, _ask, is_free=False),
        PrivateTool("history", "Paid answers", descriptions.HISTORY, HistoryArguments, _history),
        PrivateTool("budget", "What is left", descriptions.BUDGET, Nothing, _budget),
    )
}

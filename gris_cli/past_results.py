"""Results that a gateway keeps: fetched, and printed for people or as JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import typer
from gris_api.dp.v1 import question_pb2

from gris_cli.clients import gateway_of
from gris_cli.flags import ConnectionFlags
from gris_cli.terminal import grid, print_json, say, show
from pinot_connector import formats
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.past_results import PastResult

SHOWN_ELEMENTS = 3


def past_results(flags: ConnectionFlags, most: int) -> list[PastResult]:
    """Return the newest results of an account.

    Raises:
        typer.BadParameter: No gateway is named.
        GrisError: The gateway refuses, or does not answer.
    """
    if not flags.gateway:
        raise typer.BadParameter(
            "--gateway or GRIS_GATEWAY says which gateway keeps the results; `gris serve --gateway` starts one, and "
            "--embedded has none"
        )
    return asyncio.run(_fetched(flags, most))


async def _fetched(flags: ConnectionFlags, most: int) -> list[PastResult]:
    found: list[PastResult] = []
    async with AsyncGatewayClient(gateway_of(flags), account=flags.account or None) as client:
        async for release in client.releases(page_size=min(most, 100)):
            found.append(PastResult.of(release))
            if len(found) == most:
                break
    return found


def print_past_results(results: list[PastResult], *, as_json: bool) -> None:
    """Print results, newest first."""
    if as_json:
        print_json({"releases": [each.to_dict() for each in results]})
        return
    if not results:
        say("history", "nothing was paid for, or nothing is kept of it")
        return
    show(grid(("asked", "question", "elements", "charged"), map(_cells, results)))


def _cells(past: PastResult) -> Iterator[str]:
    yield f"{past.released_at:%Y-%m-%d %H:%M} UTC"
    yield _format_question(past.question)
    yield _format_elements(past)
    yield "" if past.not_offered else formats.cost(past.result.charged)


def _format_question(question: question_pb2.Question) -> str:
    if question.sql:
        return " ".join(question.sql.split())
    asked = question.structured
    top = f"top {asked.k} " if asked.HasField("k") else ""
    conditions = len(asked.filters) + bool(asked.condition) + asked.HasField("time_range")
    where = "" if not conditions else f", {conditions} condition{'s' if conditions > 1 else ''}"
    return f"{top}{', '.join(asked.dimensions) or 'total'} of {asked.table}{where}"


def _format_elements(past: PastResult) -> str:
    if past.not_offered:
        return "not offered any more"
    if past.elements_omitted:
        return "too many to keep"
    rows = past.result.rows
    if rows and not past.result.columns:
        return "a total"
    first = ", ".join("/".join(map(str, row.element)) for row in rows[:SHOWN_ELEMENTS])
    more = f" and {len(rows) - SHOWN_ELEMENTS} more" if len(rows) > SHOWN_ELEMENTS else ""
    return f"{first}{more}" if rows else "none"

"""A session of the hostile agent, and what is counted of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.exceptions import MCPError

from tests.campaigns.agents.script import Attempt
from tests.campaigns.agents.stage import MARK
from tests.support.agents import Agent, text_of, texts_outside

# What others wrote stands in these fields and in no other.
DATA = frozenset(("columns", "value_names", "element", "question", "values"))
ANSWERED, REPEATED = "answered and paid", "answered again, free"


@dataclass
class Totals:
    """What came of a session.

    Attributes:
        outcomes: How often each aim ended how.
        information: The information units that answers said they charged.
        calls: The calls that they said they charged.
        releases: The ids of what was answered.
        strangers: How many elements were shown whose names strangers wrote.
        leaked: Texts outside the fields of data that a stranger wrote.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    information: int = 0
    calls: int = 0
    releases: set[str] = field(default_factory=set)
    strangers: int = 0
    leaked: list[str] = field(default_factory=list)

    def of(self, aim: str) -> Counter[str]:
        """Return how often an aim ended how."""
        return Counter({outcome: times for (each, outcome), times in self.outcomes.items() if each == aim})

    def ended(self, outcome: str) -> int:
        """Return how many attempts ended so."""
        return sum(times for (_, each), times in self.outcomes.items() if each == outcome)


async def run_session(agent: Agent, attempts: Iterable[Attempt]) -> Totals:
    """Try one attempt after the other, and count how they end."""
    totals = Totals()
    for attempt in attempts:
        totals.outcomes[attempt.aim, await _outcome(agent, attempt, totals)] += 1
    return totals


async def _outcome(agent: Agent, attempt: Attempt, totals: Totals) -> str:
    try:
        result = await agent.client.call_tool(attempt.tool, attempt.arguments)
    except (MCPError, ValueError) as error:
        totals.leaked += [text for text in (str(error),) if MARK in text and isinstance(error, MCPError)]
        return "refused by the protocol"
    shown: dict[str, Any] = json.loads(text_of(result))
    totals.leaked += [text for text in texts_outside(shown, DATA) if MARK in text]
    if result.is_error:
        return str(shown["error"])
    if attempt.tool != "ask":
        return "listed"
    totals.strangers += sum(MARK in str(row["element"]) for row in shown["rows"])
    charged = shown["charged"]
    totals.information += charged["information"]
    totals.calls += charged["calls"]
    is_new = shown["release_id"] not in totals.releases
    totals.releases.add(shown["release_id"])
    assert is_new == bool(charged["information"]), "a release was charged twice, or shown for nothing"
    return ANSWERED if is_new else REPEATED

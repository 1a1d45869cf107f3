"""The membership game: an agent spends its whole budget to find out whether one member is in a table.

It knows everything else: the table, the policy, the noise, and how many others are in the target's cell. Every player
has an account and a table of its own, so that the noise of all games is independent. What the guesses prove about
privacy loss, by the same bounds as the audit's, may not exceed what the account's limit promises.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from pinot_connector.guarantees import Guarantee
from tests.campaigns.agents.script import rephrased
from tests.campaigns.agents.stage import OTHERS, Stage, running_stage
from tests.campaigns.audit.estimating import Event, Finding, proven_delta
from tests.support.agents import text_of

AT_A_TIME = 8
_MOST_TRIES = 50
# 5 units of a budget: a promise that a sure winner of 40 games on each side breaks.
EPSILON_PER = "0.1"
_WINS = (
    Event[float]("the target is in", lambda excess: excess > 1 / 2),
    Event[float]("the target is not in", lambda excess: excess <= 1 / 2),
)


@dataclass(frozen=True)
class Games:
    """What was proven by all games, beside what is promised."""

    promised: Guarantee
    finding: Finding
    won: int
    played: int
    paid_answers: int

    @property
    def keeps_its_promise(self) -> bool:
        """Whether nothing more was proven than is promised."""
        return self.finding.proven_delta <= self.promised.delta


def play(
    folder: Path, times: int, epsilon_per: str = EPSILON_PER, promised: Guarantee | None = None
) -> Games:
    """Play so many games with the target in the table, and as many without.

    Args:
        folder: Where services and gateway are run.
        times: How many games of each kind.
        epsilon_per: What an information unit is worth.
        promised: What the guesses are compared with; None: what the players' limit promises.
    """
    tables = {f"game_{number}": number % 2 == 0 for number in range(2 * times)}
    with running_stage(folder, epsilon_per=epsilon_per, tables=tables) as stage:
        return asyncio.run(_played(stage, tables, promised))


async def _played(stage: Stage, tables: dict[str, bool], promised: Guarantee | None) -> Games:
    limit = asyncio.Semaphore(AT_A_TIME)

    async def one(table: str) -> tuple[float, int]:
        async with limit:
            return await _excess(stage, table)

    found = dict(zip(tables, await asyncio.gather(*map(one, tables)), strict=True))
    excesses = {
        is_in: [found[table][0] for table, has_target in tables.items() if has_target is is_in]
        for is_in in (True, False)
    }
    promise = promised or await stage.promised("acme", "players", next(iter(tables)))
    won = sum(_WINS[0].shows(found[table][0]) is is_in for table, is_in in tables.items())
    finding = proven_delta(
        excesses[True], excesses[False], _WINS, epsilon=promise.epsilon, delta=promise.delta
    )
    return Games(promise, finding, won, len(tables), sum(paid for _, paid in found.values()))


async def _excess(stage: Stage, table: str) -> tuple[float, int]:
    """Spend the whole budget on the target's cell, and return how much it seems to have beyond the others."""
    counts: list[int] = []
    async with stage.connected("player", table) as player:
        for turn in range(_MOST_TRIES):
            result = await player.client.call_tool("ask", rephrased(table, turn))
            if not result.is_error:
                assert result.structured_content is not None
                counts.append(result.structured_content["rows"][0]["count"])
                continue
            # A busy machine may take too long for one; the budget ends the game.
            if json.loads(text_of(result))["error"] == "budget_exhausted":
                break
    assert counts, text_of(result)
    return sum(counts) / len(counts) - OTHERS, len(counts)

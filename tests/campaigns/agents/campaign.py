"""The whole campaign: a session with its totals beside what the ledger says and the limit allows."""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from pinot_connector.budgets import Level
from pinot_connector.guarantees import Guarantee
from tests.campaigns.agents.script import attempts
from tests.campaigns.agents.session import ANSWERED, REPEATED, Totals, run_session
from tests.campaigns.agents.stage import AGENT, MARK, TABLE, VICTIM, Stage, running_stage
from tests.support.agents import text_of

EPSILON_PER = "0.15"
AT_ONCE = 16


@dataclass(frozen=True)
class Report:
    """What a hostile agent got and what it cost, by its own count and by the ledger's."""

    totals: Totals
    own: Level
    victim_before: Level
    victim_after: Level
    victims_past: int
    promised: Guarantee
    log: str

    def faults(self) -> list[str]:
        """Return what should not be."""
        own, totals = self.own, self.totals
        found = {
            "a stranger's text is outside the fields of data": bool(totals.leaked),
            "no element was shown that a stranger named, so that nothing was tried": not totals.strangers,
            "more was spent than the limit": own.over_limit
            or own.spent.information > own.limit.information
            or own.spent.calls > own.limit.calls,
            "the ledger says another sum than the answers": (own.spent.information, own.spent.calls)
            != (totals.information, totals.calls),
            "another's budget was spent": self.victim_before.spent != self.victim_after.spent
            or self.victim_before.reserved != self.victim_after.reserved,
            "another's history has changed": self.victims_past != 1,
            "something that the policy forbids was answered": _answered(totals, "what the policy forbids"),
            "something was answered in another's name": _answered(totals, "another account", "listed"),
            "nonsense was answered": _answered(totals, "nonsense"),
            "what an element said was done": _answered(totals, "as an element says", "listed"),
            "an error was not foreseen": bool(totals.ended("unexpected")),
            "the log has a stranger's text": MARK in self.log,
        }
        return [fault for fault, is_there in found.items() if is_there]

    def lines(self) -> list[str]:
        """Return the report as lines."""
        totals, own = self.totals, self.own
        aims = sorted({aim for aim, _ in totals.outcomes})
        lines = [f"{sum(totals.outcomes.values())} attempts of an agent"]
        for aim in aims:
            ended = ", ".join(f"{outcome} {times}" for outcome, times in sorted(totals.of(aim).items()))
            lines.append(f"  {aim:32}{ended}")
        lines += [
            f"answers: {totals.ended(ANSWERED)} paid, {totals.ended(REPEATED)} free repeats, "
            f"{len(totals.releases)} different releases",
            f"spent: {own.spent.information} of {own.limit.information} information units, {own.spent.calls} of "
            f"{own.limit.calls} calls; by the answers {totals.information} and {totals.calls}",
            f"its limit promises ({self.promised.epsilon:.4g}, {self.promised.delta:.2g})-differential privacy of all "
            "that it was shown",
            f"the other account: {self.victim_before.spent.information} information units spent before, "
            f"{self.victim_after.spent.information} after",
        ]
        return lines


def _answered(totals: Totals, aim: str, *also: str) -> bool:
    ended = totals.of(aim)
    return any(ended[outcome] for outcome in (ANSWERED, REPEATED, *also))


def run_campaign(folder: Path, questions: int, seed: int = 1) -> Report:
    """Run one session of so many questions against services of its own."""
    with running_stage(folder, epsilon_per=EPSILON_PER, tables={TABLE: True}) as stage:
        return asyncio.run(_campaign(stage, questions, seed))


async def _campaign(stage: Stage, questions: int, seed: int) -> Report:
    cells = f"SELECT cell, COUNT(DISTINCT member_id) FROM {TABLE} GROUP BY cell"
    account, victim = ("acme", "agents", AGENT), ("acme", "people", VICTIM)
    async with stage.connected("person", VICTIM) as person:
        await person.call("ask", sql=cells)
    before = (await stage.levels(*victim))[-1]
    async with stage.connected("agent", AGENT) as agent:
        totals = await run_session(agent, attempts(questions, seed))
        # What is held, and what many ask at once, is charged no more than what is asked in turn.
        burst = await asyncio.gather(
            *(
                agent.client.call_tool("ask", {"sql": f"{cells} ORDER BY 2 DESC LIMIT {1 + turn % 2}"})
                for turn in range(AT_ONCE)
            )
        )
    for result in burst:
        if not result.is_error:
            assert result.structured_content is not None
            charged = result.structured_content["charged"]
            totals.information += charged["information"]
            totals.calls += charged["calls"]
        assert MARK not in text_of(result) or not result.is_error
    async with stage.connected("person", VICTIM) as person:
        past = len((await person.call("history"))["answers"])
    return Report(
        totals=totals,
        own=(await stage.levels(*account))[-1],
        victim_before=before,
        victim_after=(await stage.levels(*victim))[-1],
        victims_past=past,
        promised=await stage.promised(*account),
        log=stage.log.read_text(),
    )

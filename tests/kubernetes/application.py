"""An application that asks private questions without pause and counts what becomes of them.

    python application.py --dp dns:///dp-service:50051 --budget dns:///budget-service:50052 --data FILE

Each asker has an account of its own below one root and never asks the same twice, so that no question is free and the
root's level shows what all of them cost. With several ledgers, regions of one budget, each asker keeps to one of them.
A line of JSON a second says what became of the questions. SIGTERM ends it; then it compares what it was charged with
the ledger, and its last line says what the ledger says. It needs the connector alone: in a cluster this file runs in a
pod of the tools' image.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import signal
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

from pinot_connector import AsyncPrivateClient, Credentials, Endpoint, Timeouts
from pinot_connector.budgets import Cost, Level
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, GrisError, OutcomeUnknown, ServiceError

TABLE = "cofacts_feedback"
COLUMN = "article_id"
K = 3
WORST = 2 * K + 1
"""The most that one such question costs, in units of information."""
FIRST_DAY, DAYS = date(2017, 1, 1), 1000
# What budget.yaml says of the accounts that ask here: nobody is refused.
BUDGETS = """\
  - path: [load]
    limit: {information: 1000000000, calls: 100000000}
    window: never
  - path: [load, "*"]
    limit: {information: 1000000000, calls: 100000000}
    window: never
"""
# What a lost reply leaves reserved lapses while a test looks on. On a machine that is busy starting pods the ledger is
# late, and not dead.
TIMEOUTS = Timeouts(dp=5, engine=5, reservation=10, budget_silence=5)
PAUSE_SECONDS = 0.05
# A region gives back what nobody has used for a minute.
SETTLED_SECONDS = 240.0


@dataclass
class Totals:
    """What became of the questions so far; `information` and `calls` are what they are known to have cost.

    `failed` counts those without an answer by their errors, `unknown` those among them that may be charged.
    """

    answered: int = 0
    information: int = 0
    calls: int = 0
    unknown: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def line(self) -> str:
        """Return everything as one line of JSON."""
        return json.dumps(vars(self))


@dataclass(frozen=True)
class Application:
    """Where the services and the data are, with what is shown to them.

    `more` are ledgers of the same budget as `budget`: each asker keeps to one of them.
    """

    dp: Address
    budget: Address
    engine: Engine
    more: tuple[Address, ...] = ()

    async def ask_until(self, stop: asyncio.Event, totals: Totals, askers: int) -> None:
        """Let so many ask one question after another until `stop` is set."""
        ledgers = itertools.cycle((self.budget, *self.more))
        await asyncio.gather(*(self._asker(stop, totals, next(ledgers)) for _ in range(askers)))

    async def _asker(self, stop: asyncio.Event, totals: Totals, budget: Address) -> None:
        client = self._client(uuid.uuid4().hex, budget)
        try:
            for number in itertools.count():
                if stop.is_set():
                    return
                await _ask(client, number, totals)
        finally:
            await client.close()

    async def settled(self) -> Cost:
        """Return what the root has spent, as soon as nothing is reserved; raises TimeoutError after four minutes."""
        async with asyncio.timeout(SETTLED_SECONDS):
            while True:
                with suppress(ServiceError):
                    level = await self._level()
                    if level.reserved.calls == 0:
                        return level.spent
                await asyncio.sleep(0.2)

    async def _level(self) -> Level:
        # What is reserved the ledger tells each account of itself only.
        client = self._client("nobody", self.budget)
        try:
            return (await client.on_behalf_of(("load",)).remaining())[0]
        finally:
            await client.close()

    def _client(self, name: str, budget: Address) -> AsyncPrivateClient:
        account = ("load", name)
        return AsyncPrivateClient(
            dp=self.dp, budget=budget, account=account, engine=self.engine, timeouts=TIMEOUTS
        )


async def _ask(client: AsyncPrivateClient, number: int, totals: Totals) -> None:
    """Ask a question of its own for each number, and count what becomes of it."""
    begin = FIRST_DAY + timedelta(days=number % DAYS)
    end = begin + timedelta(days=DAYS + number // DAYS)
    try:
        result = await client.top_k(TABLE, COLUMN, K, time_range=(begin, end))
    except GrisError as error:
        if isinstance(error, ChargedUnanswered):
            totals.information += error.charged[0]
            totals.calls += error.charged[1]
        totals.failed[f"{type(error).__name__}: {error}"] += 1
        totals.unknown += isinstance(error, OutcomeUnknown)
        # Nobody asks a service that is away again without drawing breath.
        await asyncio.sleep(PAUSE_SECONDS)
    else:
        totals.answered += 1
        totals.information += result.charged.information
        totals.calls += result.charged.calls


def charged(totals: Totals, before: Cost, after: Cost) -> Cost:
    """Return what the ledger says that the questions cost; raises AssertionError where it contradicts the askers."""
    cost = Cost(after.information - before.information, after.calls - before.calls, after.unit_id)
    said = f"{totals.line()}, and the ledger: {cost}"
    assert totals.calls <= cost.calls <= totals.calls + totals.unknown, said
    assert totals.information <= cost.information <= totals.information + WORST * totals.unknown, said
    return cost


async def _run(application: Application, askers: int) -> None:
    stop, totals, before = asyncio.Event(), Totals(), await application.settled()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    asking = asyncio.create_task(application.ask_until(stop, totals, askers))
    while not asking.done():
        await asyncio.wait((asking,), timeout=1.0)
        print(totals.line(), flush=True)
    await asking
    cost = charged(totals, before, await application.settled())
    print(json.dumps({**vars(totals), "charged_information": cost.information, "charged_calls": cost.calls}))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser("application")
    for name in ("dp", "data"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--budget", required=True, nargs="+")
    parser.add_argument("--askers", type=int, default=4)
    for name in ("ca-file", "certificate-file", "key-file"):
        parser.add_argument(f"--{name}", type=Path)
    chosen = parser.parse_args()
    addresses: list[Address] = [chosen.dp, *chosen.budget]
    if chosen.ca_file is not None:
        shown = Credentials(chosen.ca_file, chosen.certificate_file, chosen.key_file)
        addresses = [Endpoint(each, shown) for each in (chosen.dp, *chosen.budget)]
    dp, budget, *more = addresses
    engine = DuckDBEngine({TABLE: chosen.data})
    asyncio.run(_run(Application(dp, budget, engine, tuple(more)), chosen.askers))
    engine.close()


if __name__ == "__main__":
    main()

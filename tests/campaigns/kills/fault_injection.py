"""SIGKILL of random processes at random moments, and rows that change under the questions."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

from tests.campaigns.kills.questions import TABLES, VERSIONS
from tests.campaigns.kills.stage import Stage

LONGEST_QUIET_SECONDS = 5.0
LONGEST_DEATH_SECONDS = 0.3
# How many die together, by how many chances of six.
TOGETHER = (1, 1, 1, 1, 2, 3)
STORE_TOO = 0.25


@dataclass
class FaultInjector:
    """Kills what runs, and starts it again before it kills the next."""

    stage: Stage
    rng: random.Random
    store_kills: int = 0
    replaced: int = 0

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.store_kills + sum(server.kills for server in self.stage.servers)

    async def kill(self) -> None:
        """Kill one process or several, after a while in which things may go well."""
        await asyncio.sleep(self.rng.random() * LONGEST_QUIET_SECONDS)
        # Of all processes, a gateway does the most between two steps of a question.
        choices = [*self.stage.servers, *self.stage.gateways]
        victims = self.rng.sample(choices, self.rng.choice(TOGETHER))
        dead = [server for server in self.stage.servers if server in victims]
        store = self.stage.store if self.rng.random() < STORE_TOO else None
        if store is not None:
            store.kill()
            self.store_kills += 1
        for server in self.rng.sample(dead, len(dead)):
            server.kill()
            server.kills += 1
            await asyncio.sleep(self.rng.random() * LONGEST_DEATH_SECONDS)
        if store is not None:
            await asyncio.to_thread(store.start)
        await asyncio.gather(*(server.start() for server in dead))

    async def replace_rows(self, stop: asyncio.Event) -> None:
        """Exchange the rows of one table after another."""
        while not stop.is_set():
            await asyncio.sleep(2 * self.rng.random())
            self.stage.rows.put(self.rng.choice(TABLES), self.rng.randrange(VERSIONS))
            self.replaced += 1

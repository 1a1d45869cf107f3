"""Which policy the caller's audience is asked under, by the name that dp_service's catalogue gives it.

The names that an audience was shown belong to one policy: under the next one it may be offered less.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from gris_api.dp.v1 import dp_pb2

from gris_gateway.callers import current_caller
from pinot_connector import telemetry
from pinot_connector.errors import GrisError

# A name that was heard so long ago is heard again before a question, and no question waits longer for it.
REMEMBERED_SECONDS = 10.0
ASKING_SECONDS = 1.0
# Of callers without an audience: everybody is offered everything.
OF_EVERYBODY = ""


class Catalogue(Protocol):
    """What a client says of the policy to its audience."""

    async def catalog_page(self, request: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        """Return a page of the catalogue, with the name of the policy."""
        ...

    async def offers_all(self) -> bool:
        """Return whether everybody is offered everything."""
        ...


class PolicyNames:
    """The names of policies that dp_service serves, as it last said.

    Args:
        client: Returns what asks as the audience of the caller.
        clock: Returns seconds that never go back.
    """

    def __init__(self, client: Callable[[], Catalogue], clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known = ""
        self._known_until = float("-inf")

    async def before(self) -> str | None:
        """Return the name of a policy that was served a moment ago, or is now; None: it cannot be had."""
        if current_caller.get().audience is None:
            return OF_EVERYBODY
        return self._known if self._clock() < self._known_until else await self._heard_soon()

    async def is_served(self, name: str | None) -> bool:
        """Return whether a policy that was served `before` is served still."""
        if current_caller.get().audience is None:
            return name == OF_EVERYBODY
        return name is not None and name == await self._heard_soon()

    async def present(self) -> str | None:
        """Return the name of the policy that is served now; None: callers without an audience are offered nothing.

        Raises:
            RefusedByPolicy: It does not know the audience.
            ServiceUnavailable: dp_service does not answer.
        """
        if current_caller.get().audience is None:
            return OF_EVERYBODY if await self._client().offers_all() else None
        return await self._heard()

    async def _heard_soon(self) -> str | None:
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                return await self._heard()
        except (GrisError, TimeoutError):
            return None

    async def _heard(self) -> str:
        with telemetry.asking_for(current_caller.get().name):
            page = await self._client().catalog_page(dp_pb2.GetCatalogRequest(page_size=1))
        self._known, self._known_until = page.policy_id, self._clock() + REMEMBERED_SECONDS
        return page.policy_id

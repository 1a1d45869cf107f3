"""Which tables of the policy a gateway offers: those that its engine has.

A policy may list tables of several engines. What this gateway cannot ask, its catalogue leaves out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol

from gris_api.dp.v1 import dp_pb2

from gris_gateway.rpc_errors import RequestError
from pinot_connector.engines.base import Engine
from pinot_connector.errors import EngineError

REMEMBERED_SECONDS = 10.0

log = logging.getLogger(__name__)


class ListingEngine(Engine, Protocol):
    """An engine that lists its tables."""

    def tables(self) -> frozenset[str]:
        """Return the names that questions may give its tables.

        Raises:
            EngineError: It cannot say.
        """
        ...


class OfferedTables:
    """Leaves tables that the engine lacks out of pages of the catalogue.

    While the engine cannot say which tables it has, every table of the policy is listed: the policy is no secret, and
    only the engine decides which questions it answers.

    Args:
        listed: Returns the names of the engine's tables, and may take a while.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self, listed: Callable[[], frozenset[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._listed = listed
        self._clock = clock
        self._known: frozenset[str] | None = None
        self._known_until = float("-inf")

    async def of_page(self, page: dp_pb2.GetCatalogResponse, table: str) -> dp_pb2.GetCatalogResponse:
        """Return a page with the engine's tables alone.

        Args:
            page: The page.
            table: The only table that was asked for; empty: all.

        Raises:
            RequestError: The engine does not have that table.
        """
        names = await self._names()
        if names is None:
            return page
        if table and table not in names:
            raise RequestError("table", "expected a table of this gateway's engine")
        offered = [each for each in page.tables if each.name in names]
        kept = dp_pb2.GetCatalogResponse()
        kept.CopyFrom(page)
        del kept.tables[:]
        kept.tables.extend(offered)
        return kept

    async def _names(self) -> frozenset[str] | None:
        if self._clock() >= self._known_until:
            try:
                self._known = await asyncio.to_thread(self._listed)
            except EngineError as error:
                self._known = None
                fields = {"error": type(error).__name__}
                log.warning(
                    "The engine does not list its tables.",
                    extra={"event": "tables.unknown", "fields": fields},
                )
            self._known_until = self._clock() + REMEMBERED_SECONDS
        return self._known

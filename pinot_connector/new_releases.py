"""Draws new releases: the query runs, noise is added to its answer, and the engine confirms that the answer was whole.

These are steps 3 and 4 of the query pipeline (`query_pipeline`). True counts exist only here, in local variables: they
go from the engine to dp_service, and no further.
"""

from __future__ import annotations

from gris_api.dp.v1 import dp_pb2

from pinot_connector.concurrency import run_both
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engine_calls import EngineCalls
from pinot_connector.engine_queries import second_query
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.errors import IntegrityError
from pinot_connector.histograms import checked
from pinot_connector.releases import verify
from pinot_connector.reservations import Reservation
from pinot_connector.translations import Translated


class BudgetNotFreeError(Exception):
    """Others hold the budget, and the caller does not wait for it."""


class NewReleases:
    """Draws releases on one engine, for any account.

    Args:
        noise: dp_service.
        engine: answers queries with true counts.
        confidence: that of the intervals of counts.
        reserve_first: whether the engine is asked only once the reservation is made, whatever the policy says.
    """

    def __init__(
        self, noise: DpServiceClient, engine: EngineCalls, *, confidence: float, reserve_first: bool
    ) -> None:
        self._noise = noise
        self._engine = engine
        self._confidence = confidence
        self._reserve_first = reserve_first

    async def drawn(
        self, asked: Translated, query: EngineQuery, reservation: Reservation, *, waits: bool
    ) -> dp_pb2.Release:
        """Returns a release that nobody has seen yet; noise is drawn only once the reservation is made.

        Args:
            asked: the translated question.
            query: its query for the engine, on `asked.data_version`.
            reservation: holds the worst case of the question.
            waits: whether budget that others hold is waited for.

        Raises:
            BudgetNotFreeError: others hold the budget, and it is not waited for.
            GrisError: a step failed; see `errors` for what each kind means.
        """
        translation = asked.translation
        if translation.reserve_first or self._reserve_first:
            await _reserved(reservation, waits=waits)
        running = self._engine.run(query, asked.data_version)
        answer, _ = await run_both(running, _reserved(reservation, waits=waits))
        answer, plan = checked(query, answer), translation.plan
        if not translation.HasField("unfinished"):
            return await self._confirmed(asked, plan, query, answer)
        # Names are drawn only from an answer that is known to be whole.
        await self._engine.confirm(query, answer)
        await reservation.given_back_unless_it_lasts()
        await _reserved(reservation, waits=waits)
        reservation.first_look_begins()
        async with reservation.before_it_lapses():
            named = await self._add_noise(asked, plan, query, answer)
            if isinstance(named, dp_pb2.Release):
                return named
            return await self._second_look(asked, query, named)

    async def _second_look(
        self, asked: Translated, first: EngineQuery, look: dp_pb2.NextLook
    ) -> dp_pb2.Release:
        """Counts the names that the first look found."""
        query = second_query(first, look, self._engine.engine.dialect)
        answer = checked(query, await self._engine.run(query, asked.data_version))
        return await self._confirmed(asked, look.plan, query, answer)

    async def _confirmed(
        self, asked: Translated, plan: bytes, query: EngineQuery, answer: EngineAnswer
    ) -> dp_pb2.Release:
        """Returns the release of an answer that turned out to be whole meanwhile."""
        confirming = self._engine.confirm(query, answer)
        drawn, _ = await run_both(self._add_noise(asked, plan, query, answer), confirming)
        if not isinstance(drawn, dp_pb2.Release):
            raise IntegrityError("dp_service asks for one look more than there are")
        return drawn

    async def _add_noise(
        self, asked: Translated, plan: bytes, query: EngineQuery, answer: EngineAnswer
    ) -> dp_pb2.Release | dp_pb2.NextLook:
        header = dp_pb2.ReleaseHeader(
            plan=plan, data_version=answer.data_version, confidence=self._confidence, keep=True
        )
        drawn = await self._noise.add_noise(header, query.columns, answer)
        if isinstance(drawn, dp_pb2.Release):
            verify(drawn, drawn.kept, asked.translation)
        return drawn


async def _reserved(reservation: Reservation, *, waits: bool) -> None:
    if waits:
        await reservation.made()
    elif not await reservation.made_at_once():
        raise BudgetNotFreeError

"""Draws new releases: the query runs, noise is added to its answer, and the engine confirms that the answer was whole.

These are the states reserved, read and drawn of a question (`query_pipeline`). True counts exist only here, in local
variables and in `Read`: they go from the engine to dp_service, and no further.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

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


@dataclass(frozen=True)
class Reserved:
    """A translated question and the reservation of its worst case, which may still be under way.

    Attributes:
        asked: The question.
        reservation: The reservation.
        confidence: That of the intervals to show.
    """

    asked: Translated
    reservation: Reservation
    confidence: float

    async def is_made(self) -> bool:
        """Returns whether the worst case is held. Where tasks draw in turns, none waits for budget that others hold."""
        if self.asked.may_be_repeated:
            return await self.reservation.made_at_once()
        return bool(await self.reservation.made())


@dataclass(frozen=True)
class Read:
    """What the engine answered to a question whose reservation is made: noise may be drawn."""

    reserved: Reserved
    plan: bytes
    query: EngineQuery = field(repr=False)
    answer: EngineAnswer = field(repr=False)


@dataclass(frozen=True)
class Drawn:
    """A release that nobody has seen yet; its answer was whole, and it is verified."""

    reserved: Reserved
    release: dp_pb2.Release = field(repr=False)


class NewReleases:
    """Draws releases on one engine, for any account.

    Args:
        noise: dp_service.
        engine: answers queries with true counts.
        reserve_first: whether the engine is asked only once the reservation is made, whatever the policy says.
    """

    def __init__(self, noise: DpServiceClient, engine: EngineCalls, *, reserve_first: bool) -> None:
        self._noise = noise
        self._engine = engine
        self._reserve_first = reserve_first

    async def read(self, reserved: Reserved, query: EngineQuery) -> Read | None:
        """Returns what the engine answers to the question's query, None if others hold the budget.

        Raises:
            GrisError: a step failed; see `errors` for what each kind means.
        """
        asked, translation = reserved.asked, reserved.asked.translation
        if (translation.reserve_first or self._reserve_first) and not await reserved.is_made():
            return None
        running = self._engine.run(query, asked.data_version)
        answer, is_made = await run_both(running, reserved.is_made())
        if answer is None or not is_made:
            return None
        read = Read(reserved, translation.plan, query, checked(query, answer))
        if translation.HasField("unfinished"):
            # Names are drawn only from an answer that is known to be whole.
            await self._engine.confirm(query, read.answer)
            await reserved.reservation.given_back_unless_it_lasts()
            if not await reserved.is_made():
                return None
        return read

    async def drawn(self, read: Read) -> Drawn:
        """Returns the release of an answer, or of that of a second look at the names that are drawn from it.

        Raises:
            GrisError: a step failed; see `errors` for what each kind means.
        """
        if not read.reserved.asked.translation.HasField("unfinished"):
            return await self._confirmed(read)
        reservation = read.reserved.reservation
        reservation.first_look_begins()
        async with reservation.before_it_lapses():
            named = await self._noise_added(read)
            if isinstance(named, dp_pb2.Release):
                return Drawn(read.reserved, named)
            query = second_query(read.query, named, self._engine.engine.dialect)
            answer = checked(query, await self._engine.run(query, read.reserved.asked.data_version))
            return await self._confirmed(replace(read, plan=named.plan, query=query, answer=answer))

    async def _confirmed(self, read: Read) -> Drawn:
        """Returns the release of an answer that turned out to be whole meanwhile."""
        confirming = self._engine.confirm(read.query, read.answer)
        release, _ = await run_both(self._noise_added(read), confirming)
        if not isinstance(release, dp_pb2.Release):
            raise IntegrityError("dp_service asks for one look more than there are")
        return Drawn(read.reserved, release)

    async def _noise_added(self, read: Read) -> dp_pb2.Release | dp_pb2.NextLook:
        version, confidence = read.answer.data_version, read.reserved.confidence
        header = dp_pb2.ReleaseHeader(plan=read.plan, data_version=version, confidence=confidence, keep=True)
        release = await self._noise.add_noise(header, read.query.columns, read.answer)
        if isinstance(release, dp_pb2.Release):
            verify(release, release.kept, read.reserved.asked.translation, confidence)
        return release

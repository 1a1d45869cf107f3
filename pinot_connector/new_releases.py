"""Draws new releases: the query runs, the engine confirms that its answer was whole, and noise is added to it.

These are the states reserved, read and drawn of a question (`query_pipeline`). True counts exist only here, in local
variables and in `Read`: they go from the engine to dp_service, and no further.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
        translated: The question.
        reservation: The reservation.
        confidence: That of the intervals to show.
    """

    translated: Translated
    reservation: Reservation
    confidence: float

    async def is_made(self) -> bool:
        """Returns whether the worst case is held. Where tasks draw in turns, none waits for budget that others hold."""
        if self.translated.answers_repeat:
            return await self.reservation.made_at_once()
        return bool(await self.reservation.made())


@dataclass(frozen=True)
class Read:
    """A whole answer of the engine to a question whose reservation is made: noise may be drawn."""

    reserved: Reserved
    plan: bytes
    query: EngineQuery = field(repr=False)
    answer: EngineAnswer = field(repr=False)


@dataclass(frozen=True)
class Drawn:
    """A release that nobody has seen yet; it is verified."""

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

        Noise is drawn only from an answer that is known to be whole, so no failure of the engine depends on it.

        Raises:
            GrisError: a step failed; see `errors` for what each kind means.
        """
        asked, translation = reserved.translated, reserved.translated.translation
        if (translation.reserve_first or self._reserve_first) and not await reserved.is_made():
            return None
        running = self._engine.run(query, asked.data_version)
        answer, is_made = await run_both(running, reserved.is_made())
        if answer is None or not is_made:
            return None
        read = await self._whole(Read(reserved, translation.plan, query, answer))
        await reserved.reservation.given_back_unless_it_lasts()
        return read if await reserved.is_made() else None

    async def drawn(self, read: Read) -> Drawn:
        """Returns the release of an answer, or of that of a second look at the names that are drawn from it.

        Raises:
            GrisError: a step failed; see `errors` for what each kind means.
        """
        async with read.reserved.reservation.before_it_lapses():
            drawn = await self._noise_added(read)
            if isinstance(drawn, dp_pb2.NextLook):
                query = second_query(read.query, drawn, self._engine.engine.dialect)
                answer = await self._engine.run(query, read.reserved.translated.data_version)
                read = await self._whole(Read(read.reserved, drawn.plan, query, answer))
                drawn = await self._noise_added(read)
            if not isinstance(drawn, dp_pb2.Release):
                raise IntegrityError("dp_service asks for one look more than there are")
            return Drawn(read.reserved, drawn)

    async def _whole(self, read: Read) -> Read:
        checked(read.query, read.answer)
        await self._engine.confirm(read.query, read.answer)
        return read

    async def _noise_added(self, read: Read) -> dp_pb2.Release | dp_pb2.NextLook:
        version, confidence = read.answer.data_version, read.reserved.confidence
        header = dp_pb2.ReleaseHeader(plan=read.plan, data_version=version, confidence=confidence, keep=True)
        with read.reserved.reservation.from_the_draw_on():
            release = await self._noise.add_noise(header, read.query.columns, read.answer)
            if isinstance(release, dp_pb2.Release):
                verify(release, release.kept, read.reserved.translated.translation, confidence)
            return release

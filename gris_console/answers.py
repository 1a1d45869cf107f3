"""Answers that were given a short while ago, so that a page can be looked at again; the gateway keeps all of them."""

from __future__ import annotations

import asyncio
import datetime
from collections import OrderedDict
from dataclasses import dataclass

from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import question_pb2

from gris_console.sessions import Session
from pinot_connector.errors import OutcomeUnknown
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.past_results import PastResult
from pinot_connector.results import PrivateResult
from pinot_connector.rpc_errors import Service

MOST_ROWS = 400_000
PAGE = 20
# Further back than this nobody turns pages.
MOST_LISTED = 2000


@dataclass(frozen=True)
class Answer:
    """A question with its answer.

    `name` is how pages call it: the request's id, or the release's where the request had none. `released_at` is None
    where it was given just now. `is_omitted`: the gateway lists it without its elements, for it has too many, or the
    account is not offered the question any more.
    """

    name: str
    question: question_pb2.Question
    result: PrivateResult
    released_at: datetime.datetime | None = None
    is_omitted: bool = False
    not_offered: bool = False

    @classmethod
    def of(cls, message: app_pb2.PastRelease) -> Answer:
        """Return an answer of the history."""
        past = PastResult.of(message)
        name = past.request_id or past.result.release_id
        return cls(
            name, past.question, past.result, past.released_at, past.elements_omitted, past.not_offered
        )


class RecentAnswers:
    """Answers by log-in and name, as many as fit; the oldest make room."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._rows = 0
        self._held: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    def add(self, session: str, answer: Answer) -> None:
        """Keep an answer for a while."""
        self._drop((session, answer.name))
        self._held[session, answer.name] = answer
        self._rows += _size(answer)
        while self._rows > self._most_rows and len(self._held) > 1:
            self._drop(next(iter(self._held)))

    def find(self, session: str, name: str) -> Answer | None:
        """Return an answer of a log-in."""
        return self._held.get((session, name))

    def _drop(self, key: tuple[str, str]) -> None:
        dropped = self._held.pop(key, None)
        if dropped is not None:
            self._rows -= _size(dropped)


def _size(answer: Answer) -> int:
    # Even an answer without a row takes some room.
    return len(answer.result.rows) + len(answer.result.totals or ()) + 10


class QuestionsInFlight:
    """Questions that are being asked. The same form in two tabs, or sent twice, waits for one answer."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str, bytes], asyncio.Task[PrivateResult]] = {}

    async def ask(self, session: Session, question: question_pb2.Question, request_id: str) -> PrivateResult:
        """Return the answer of a question, which is asked once for a request id.

        Raises:
            GrisError: There is no answer.
        """
        key = (session.key, request_id, question.SerializeToString(deterministic=True))
        task = self._running.get(key)
        if task is None:
            task = asyncio.create_task(_asked(session, question, request_id))
            self._running[key] = task
            task.add_done_callback(lambda _: self._running.pop(key, None))
        # Somebody who leaves takes nothing from the others, and a question that is paid for is finished.
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # The console ends, and has closed the connection that the question was asked by.
            raise OutcomeUnknown(Service.GATEWAY, "the connection was closed before an answer came") from None


async def _asked(session: Session, question: question_pb2.Question, request_id: str) -> PrivateResult:
    async with session.used():
        return await session.gateway.ask(question, request_id=request_id)


def is_cancelled() -> bool:
    """Return whether the running task is being cancelled itself, and not only what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def listed(gateway: AsyncGatewayClient, page: int) -> tuple[list[Answer], bool]:
    """Return a page of what an account has paid for, newest first, and whether there are older ones.

    Args:
        gateway: The gateway, for this account.
        page: Which page, from 1 on.

    Raises:
        GrisError: The gateway refuses, or does not answer.
    """
    first, place = (page - 1) * PAGE, 0
    found: list[Answer] = []
    async for release in gateway.releases(page_size=PAGE):
        if place >= min(first + PAGE, MOST_LISTED):
            return found, place < MOST_LISTED
        if place >= first:
            found.append(Answer.of(release))
        place += 1
    return found, False


async def past_answer(gateway: AsyncGatewayClient, name: str) -> Answer | None:
    """Return what the gateway keeps under a name; None: nothing.

    Raises:
        GrisError: The gateway refuses, or does not answer.
    """
    place = 0
    async for release in gateway.releases(page_size=100):
        if name in (release.request_id, release.result.shown.release_id):
            return Answer.of(release)
        place += 1
        if place >= MOST_LISTED:
            break
    return None

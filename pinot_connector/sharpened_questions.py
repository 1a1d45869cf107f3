"""Translates sharpenings: a question that counts again what earlier releases have shown, with those releases.

What is sharpened has been paid for by the account, so only releases that it has paid for are taken from what is kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NoReturn, TypeAlias

from gris_api.dp.v1 import question_pb2

from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engine_calls import EngineCalls
from pinot_connector.errors import IntegrityError, NotSharpenable
from pinot_connector.release_store.interface import KeptRelease, ReleaseStore
from pinot_connector.translations import Translated, Translator

MAX_KNOWN = 256

_KeptAs: TypeAlias = Callable[[], Awaitable[tuple[str, ...] | None]]


class _KnownLooks:
    """By which query_id the looks of a chain were kept, so that a chain is not translated again for each look more.

    What is known may be out of date: the policy or the data may be others by now. dp_service finds that out when it is
    shown the looks, and then they are to be translated again.
    """

    def __init__(self) -> None:
        self._query_ids: dict[tuple[bytes, tuple[str, ...]], str] = {}

    def query_id(self, question: question_pb2.Question, before: Sequence[KeptRelease]) -> str | None:
        """Returns the query_id of a look after those before it, None if it was not translated lately."""
        return self._query_ids.get(_key(question, before))

    def learn(self, question: question_pb2.Question, before: Sequence[KeptRelease], query_id: str) -> None:
        """Notes the query_id of a look."""
        if len(self._query_ids) >= MAX_KNOWN:
            del self._query_ids[next(iter(self._query_ids))]
        self._query_ids[_key(question, before)] = query_id


def _key(question: question_pb2.Question, before: Sequence[KeptRelease]) -> tuple[bytes, tuple[str, ...]]:
    return question.SerializeToString(deterministic=True), tuple(each.release_id for each in before)


def _questions_before(question: question_pb2.Question) -> Iterator[question_pb2.Question]:
    """Yields the questions whose releases a question sharpens, in order; none if it asks for no sharpening."""
    for number in range(len(question.sharpening.units)):
        before = question_pb2.Question()
        before.CopyFrom(question)
        if number:
            del before.sharpening.units[number:]
        else:
            before.ClearField("sharpening")
        yield before


class SharpenedQuestions:
    """Translates questions, and brings the releases before it to each that is a sharpening.

    Args:
        translator: translates any question, with the looks before it.
        noise: dp_service, which says why a question cannot be sharpened.
        releases: what is kept, and who has paid for it.
        engine: the engine, for whose dialect they are translated.
    """

    def __init__(
        self, translator: Translator, noise: DpServiceClient, releases: ReleaseStore, engine: EngineCalls
    ) -> None:
        self._translator = translator
        self._noise = noise
        self._releases = releases
        self._engine = engine
        self._known_looks = _KnownLooks()

    async def translated(self, question: question_pb2.Question, kept_as: _KeptAs) -> Translated:
        """Returns the translation of a question that an account asks.

        Args:
            question: the question.
            kept_as: returns what names the account in the release store.

        Raises:
            NotSharpenable: a release that it sharpens is not kept, or the account has not paid for it.
        """
        before = await self._looks_before(question, kept_as, self._known_looks)
        try:
            return await self._translator.translated(question, before)
        except NotSharpenable:
            if not before:
                raise
            # What was known of the looks may be of another policy or version of the data.
            before = await self._looks_before(question, kept_as, _KnownLooks())
        return await self._translator.translated(question, before)

    async def _looks_before(
        self, question: question_pb2.Question, kept_as: _KeptAs, known: _KnownLooks
    ) -> tuple[KeptRelease, ...]:
        """Returns the releases that a question sharpens, all of which the account has paid for; a price needs none.

        Whether there are any follows from what was paid for and from the version of the data, never from the data.
        """
        before: tuple[KeptRelease, ...] = ()
        for each in _questions_before(question):
            query_id = known.query_id(each, before)
            found = None if query_id is None else await self._paid_for(query_id, kept_as)
            if found is None:
                asked = await self._translator.translated(each, before)
                if asked.translation.HasField("price"):
                    return ()
                found = await self._paid_for(asked.query_id, kept_as)
                if found is None:
                    return await self._refused(question, asked.data_version)
                # Also where `known` was forgotten on purpose: what is out of date there is replaced.
                self._known_looks.learn(each, before, asked.query_id)
            before = (*before, found)
        return before

    async def _paid_for(self, query_id: str, kept_as: _KeptAs) -> KeptRelease | None:
        account = await kept_as()
        found = None if account is None else await self._releases.find(query_id, account)
        return None if found is None or found.payment is None else found.kept

    async def _refused(self, question: question_pb2.Question, data_version: str) -> NoReturn:
        """Has dp_service say why: it knows what the policy allows, and whether the data have the version of before."""
        await self._noise.translate(question, data_version, self._engine.engine.dialect)
        raise IntegrityError("dp_service is older than this connector: it knows no sharpening")

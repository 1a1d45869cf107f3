"""Translates questions under the policy of now, and reads the engine's versions that translation needs.

Only dp_service knows which table a text of SQL is about, and whether it may be asked. So the engine is asked about a
table only once the policy has accepted it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.base import Engine
from pinot_connector.errors import IntegrityError, InvalidQuestion, RefusedByPolicy
from pinot_connector.single_flight import SharedCalls

MAX_REMEMBERED = 256

# dp_service needs a version to report which table a question is about and whether it may be asked.
NO_VERSION_YET = "none"

ReadVersion: TypeAlias = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Translated:
    """A question that the policy accepts.

    Attributes:
        question: The question.
        translation: Its translation.
        data_version: The engine's version that the plan was made for.
        is_present: Whether that version was read for this question, so that the engine can be asked for it.
    """

    question: question_pb2.Question
    translation: dp_pb2.TranslateQueryResponse
    data_version: str
    is_present: bool

    @property
    def query_id(self) -> str:
        """The name of the question on its version of the data."""
        return self.translation.query_id

    @property
    def answers_repeat(self) -> bool:
        """Whether the same question on the same data has the same answer."""
        return self.translation.parameters.consistency == dp_pb2.CONSISTENCY_KEYED


@dataclass(frozen=True)
class _Reading:
    version: str
    read_at: float


class Translator:
    """Translates questions for one engine. Use it in one event loop.

    Args:
        noise: dp_service.
        engine: The engine.
        read_version: Reads the engine's version of a table.
        version_seconds: How old a reading may be by which a kept release is looked up.
    """

    def __init__(
        self, noise: DpServiceClient, engine: Engine, read_version: ReadVersion, version_seconds: float
    ) -> None:
        self._noise = noise
        self._engine = engine
        self._read_version = read_version
        self._version_seconds = version_seconds
        # Tables that the policy lists for an audience, and whether it fixes the version of their data.
        self._accepted: dict[tuple[bytes, str], bool] = {}
        # The tables that answered texts of SQL, and structured questions about another table, which has a copy.
        self._answering: dict[str | bytes, str] = {}
        self._readings: dict[str, _Reading] = {}
        self._translating: SharedCalls[dp_pb2.TranslateQueryResponse] = SharedCalls()

    async def translated(self, question: question_pb2.Question) -> Translated:
        """Returns the translation by which a kept release is looked up.

        If the policy fixes the version of the data, the engine is not asked. Otherwise its version was read for this
        question, or shortly before.

        Args:
            question: The question.
        """
        table = self._answering.get(_key(question)) or question.structured.table
        if self._accepted.get(_offered(question, table)) is False and self._recent(table) is None:
            return await self._on_present_version(question, table)
        reading = self._readings.get(table)
        version = NO_VERSION_YET if reading is None else reading.version
        translation = await self._translate(question, version, table)
        if is_free(translation) or translation.version_is_fixed or self._recent(table) is not None:
            return Translated(question, translation, version, is_present=False)
        return await self._on_present_version(question, translation.table)

    async def audience_rows(self, question: question_pb2.Question) -> str | None:
        """Returns the name of the rows that a question's audience is restricted to; None: it may not ask it.

        Raises:
            GrisError: dp_service does not say.
        """
        try:
            translation = await self._noise.translate(question, NO_VERSION_YET, self._engine.dialect)
        except (InvalidQuestion, RefusedByPolicy):
            return None
        return translation.audience_rows

    def close(self) -> None:
        """Ends what is under way."""
        self._translating.cancel()

    def forget_versions(self) -> None:
        """Makes the next questions read the engine's versions anew: they are known to be no longer true."""
        self._readings.clear()

    async def on_present_version(self, translated: Translated) -> Translated:
        """Returns the translation for the engine's present version; under it the engine can be asked."""
        if translated.is_present:
            return translated
        table = translated.translation.table
        version = await self._read(table)
        if version == translated.data_version:
            return replace(translated, is_present=True)
        translation = await self._translate(translated.question, version, table)
        return replace(translated, translation=translation, data_version=version, is_present=True)

    async def _on_present_version(self, question: question_pb2.Question, table: str) -> Translated:
        version = await self._read(table)
        translation = await self._translate(question, version, table)
        # It is of another table if a prepared copy has begun to answer, or does so no more.
        is_present = translation.table == table
        return Translated(question, translation, version, is_present=is_present)

    async def _read(self, table: str) -> str:
        began = asyncio.get_running_loop().time()
        version = await self._read_version(table)
        self._readings[table] = _Reading(version, began)
        return version

    def _recent(self, table: str) -> _Reading | None:
        reading = self._readings.get(table)
        if reading is None or asyncio.get_running_loop().time() - reading.read_at >= self._version_seconds:
            return None
        return reading

    async def _translate(
        self, question: question_pb2.Question, version: str, named: str
    ) -> dp_pb2.TranslateQueryResponse:
        translation = await self._translated_once(question, version)
        if is_free(translation):
            # Nothing is known of the table's versions, and none will be asked for.
            return translation
        if question.structured.table not in ("", translation.table):
            raise IntegrityError("dp_service translated a question about another table")
        unfinished = translation.unfinished
        if (unfinished.query_id, unfinished.cost) != (translation.query_id, translation.worst_case_cost):
            raise IntegrityError("dp_service asks for another question, or price, than it translated")
        self._accepted[_offered(question, translation.table)] = translation.version_is_fixed
        if named != translation.table:
            self._remember(question, translation.table)
        return translation

    async def _translated_once(
        self, question: question_pb2.Question, version: str
    ) -> dp_pb2.TranslateQueryResponse:
        """Returns the translation of all who ask the same at the same time; where answers do not repeat, one alone."""
        asked = []

        async def translate() -> dp_pb2.TranslateQueryResponse:
            asked.append(question)
            return await self._noise.translate(question, version, self._engine.dialect)

        key = question.SerializeToString(deterministic=True), version
        translation = await self._translating.joined(key, translate)
        if asked or translation.parameters.consistency == dp_pb2.CONSISTENCY_KEYED:
            return translation
        # Its noise is that of another question.
        return await translate()

    def _remember(self, question: question_pb2.Question, table: str) -> None:
        if len(self._answering) >= MAX_REMEMBERED:
            del self._answering[next(iter(self._answering))]
        self._answering[_key(question)] = table


def _offered(question: question_pb2.Question, table: str) -> tuple[bytes, str]:
    return question.audience.SerializeToString(deterministic=True), table


def is_free(translation: dp_pb2.TranslateQueryResponse) -> bool:
    """Returns whether a question needs no release: then neither ledger nor engine hears of it."""
    return translation.HasField("free") or translation.HasField("price")


def _key(question: question_pb2.Question) -> str | bytes:
    is_plain = question.sql and not question.HasField("audience")
    return question.sql if is_plain else question.SerializeToString(deterministic=True)

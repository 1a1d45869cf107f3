"""What a question shows of a kept release: k, confidence, alias and columns are applied when it is read.

dp_service computes the intervals, by the functions that compute them for a new release.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Charge
from pinot_connector.dp_service_client import DpServiceClient, release_of, show_requests
from pinot_connector.element_messages import without
from pinot_connector.engine_queries import expected_columns
from pinot_connector.engines.base import Element
from pinot_connector.release_store.interface import KeptRelease
from pinot_connector.releases import element_tuples, shown_of, verify
from pinot_connector.results import PrivateResult, prepared
from pinot_connector.single_flight import SharedCalls, SingleFlight

# What is remembered of one client's releases, in bytes of memory.
MAX_REMEMBERED_BYTES = 64 * 2**20
# More elements than this take longer than the event loop, which all callers share, should be held up.
MAX_ROWS_AT_ONCE = 1000
# About what a result takes, each of its rows besides the values of its element, and one of these, in bytes of memory.
RESULT_BYTES = 8192
ROW_BYTES = 320
CELL_BYTES = 64

Completed: TypeAlias = Callable[[Charge], PrivateResult]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ShownRelease:
    """A release as a question shows it: what to charge for it, and the result that it becomes once that is done."""

    bill: dp_pb2.Bill = field(repr=False)
    completed: Completed


@dataclass(frozen=True)
class _Displayed:
    """A release as questions show it, with the ticket of one plan: `plan` is its digest."""

    shown: ShownRelease
    plan: bytes


@dataclass(frozen=True)
class _Remembered:
    value: Any
    size: int


class ShownReleases:
    """Shows releases, and remembers how the last ones are shown. Use it in one event loop.

    A free repeat must not hold up other callers. So large releases are shown in a thread, by one question at a time for
    each release.
    """

    def __init__(self, noise: DpServiceClient) -> None:
        self._noise = noise
        # By how a question shows a release: the result, and its last ticket. By release: the ranks of all its elements.
        self._remembered: OrderedDict[bytes | str, _Remembered] = OrderedDict()
        self._remembered_bytes = 0
        self._showing: SingleFlight[str] = SingleFlight(lambda _: False)
        self._ticketing: SharedCalls[ShownRelease] = SharedCalls()
        # More threads would only take turns at the interpreter. A caller who leaves cannot start a second one.
        self._thread = ThreadPoolExecutor(1, "gris-shown-releases")

    async def completed(
        self,
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        confidence: float,
    ) -> Completed:
        """Returns the result that a kept release becomes, for an account that has paid for it."""
        if (known := self._displayed(translation, kept, confidence)) is not None:
            return known.shown.completed
        async with self._alone(kept):
            # The question that had the turn before may have shown the same.
            known = self._displayed(translation, kept, confidence)
            if known is not None:
                return known.shown.completed
            return (await self._show(translation, kept, confidence)).completed

    async def shown(
        self,
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        confidence: float,
    ) -> ShownRelease:
        """Returns a kept release with a ticket to charge it with under the policy of now.

        Questions that were translated together share the ticket.
        """
        known = self._displayed(translation, kept, confidence)
        if known is not None and known.plan == _digest_of(translation.plan):
            return known.shown
        key = _key_of(translation, kept.release_id, confidence), translation.plan

        async def show() -> ShownRelease:
            async with self._alone(kept):
                return await self._show(translation, kept, confidence)

        return await self._ticketing.joined(key, show)

    async def of(
        self, translation: dp_pb2.TranslateQueryResponse, release: dp_pb2.Release, kept: dp_pb2.Kept
    ) -> ShownRelease:
        """Returns what a question shows of a verified release, of which `kept` is all.

        Everything else of it that can fail is done here.
        """

        def made() -> tuple[Completed, int]:
            shown, elements = shown_of(release, kept, translation)
            return prepared(shown, elements), _result_bytes(shown, elements)

        completed, size = await self._computed(kept.element_count, made)
        # A part of a message keeps the whole of it in memory.
        bill = dp_pb2.Bill()
        bill.CopyFrom(release.bill)
        shown = ShownRelease(bill, completed)
        key = _key_of(translation, bill.release_id, release.shown.confidence)
        self._remember(key, _Displayed(shown, _digest_of(translation.plan)), len(key) + size)
        return shown

    def close(self) -> None:
        """Ends what is under way, and the thread."""
        self._ticketing.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _show(
        self,
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        confidence: float,
    ) -> ShownRelease:
        known, content = self._known(kept.release_id), kept.content
        columns = expected_columns(translation)

        def asked() -> tuple[array[int], list[dp_pb2.ShowReleaseRequest]]:
            elements = element_tuples(columns, content)
            ranks = _ranks(elements) if known is None else known
            header = dp_pb2.KeptHeader(
                plan=translation.plan,
                confidence=confidence,
                kept=without(content, "elements"),
            )
            rows = dp_pb2.KeptChunk(
                # dp_service needs no names.
                elements=without(content.elements, "columns"),
                element_ranks=ranks,
            )
            return ranks, show_requests(header, rows)

        def verified() -> dp_pb2.Release:
            release = release_of(parts)
            verify(release, content, translation, confidence)
            return release

        ranks, requests = await self._computed(content.element_count, asked)
        self._remember(kept.release_id, ranks, len(ranks) * ranks.itemsize)
        parts = await self._noise.show(requests)
        return await self.of(translation, await self._computed(content.element_count, verified), content)

    @asynccontextmanager
    async def _alone(self, kept: KeptRelease) -> AsyncIterator[None]:
        """Lets one question at a time show a large release."""
        if kept.content.element_count <= MAX_ROWS_AT_ONCE:
            yield
            return
        while (turn := self._showing.turn(kept.release_id)) is None:
            await self._showing.wait(kept.release_id)
        with turn:
            yield

    async def _computed(self, rows: int, work: Callable[[], _Answer]) -> _Answer:
        if rows <= MAX_ROWS_AT_ONCE:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _displayed(
        self, translation: dp_pb2.TranslateQueryResponse, kept: KeptRelease, confidence: float
    ) -> _Displayed | None:
        known: _Displayed | None = self._known(_key_of(translation, kept.release_id, confidence))
        return known

    def _known(self, key: bytes | str) -> Any:
        if (known := self._remembered.get(key)) is None:
            return None
        self._remembered.move_to_end(key)
        return known.value

    def _remember(self, key: bytes | str, value: object, size: int) -> None:
        if size > MAX_REMEMBERED_BYTES:
            return
        if (before := self._remembered.pop(key, None)) is not None:
            self._remembered_bytes -= before.size
        self._remembered[key] = _Remembered(value, size)
        self._remembered_bytes += size
        while self._remembered_bytes > MAX_REMEMBERED_BYTES:
            _, oldest = self._remembered.popitem(last=False)
            self._remembered_bytes -= oldest.size


def _digest_of(plan: bytes) -> bytes:
    # That of a large domain would be the largest part of what is remembered.
    return hashlib.sha256(plan).digest()


def _key_of(translation: dp_pb2.TranslateQueryResponse, release_id: str, confidence: float) -> bytes:
    """Returns a name of the release together with everything that decides how it is shown."""
    shown = dp_pb2.TranslateQueryResponse(
        query_id=translation.query_id,
        view_id=translation.view_id,
        parameters=translation.parameters,
        count_alias=translation.count_alias,
        columns=translation.columns,
        selected=translation.selected,
        requested_k=translation.requested_k,
        audience_rows=translation.audience_rows,
    )
    return f"{release_id} {confidence!r} ".encode() + shown.SerializeToString(deterministic=True)


def _result_bytes(shown: dp_pb2.Shown, elements: dp_pb2.ShownElements) -> int:
    """Returns about how much memory a result takes, with its messages."""
    numbers = 1 + len(elements.aggregates) + len(elements.quantiles)
    row = numbers * ROW_BYTES + len(elements.columns) * CELL_BYTES
    # The letters of names are in the message and in the rows.
    return RESULT_BYTES + shown.element_count * row + 2 * elements.ByteSize()


def _ranks(elements: Sequence[tuple[Element, ...]]) -> array[int]:
    """Returns the place of each element among all of them in ascending order."""
    ranks = array("Q", bytes(8 * len(elements)))
    positions = range(len(elements))
    # One long sort would keep the interpreter, and so the event loop, from running anything else.
    parts = [
        sorted(positions[start : start + MAX_ROWS_AT_ONCE], key=elements.__getitem__)
        for start in positions[::MAX_ROWS_AT_ONCE]
    ]
    for rank, position in enumerate(heapq.merge(*parts, key=elements.__getitem__)):
        ranks[position] = rank
    return ranks

"""What a question shows of a kept release: k, confidence, alias and columns are applied when it is read.

dp_service computes the intervals, by the functions that compute them for a new release.
"""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import secrets
import sys
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Charge
from pinot_connector.channels import MAX_MESSAGE_BYTES
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.base import Element, ExpectedColumn
from pinot_connector.errors import ReleaseTooLarge
from pinot_connector.histograms import element_columns
from pinot_connector.release_store.interface import KeptRelease
from pinot_connector.releases import NoisyHistogram, merged, part_shown, verify, write_counts
from pinot_connector.results import PrivateResult, prepared
from pinot_connector.sharpening import counts_before
from pinot_connector.single_flight import SharedCalls, SingleFlight

# What is remembered of one client's releases, in bytes of memory.
MAX_REMEMBERED_BYTES = 64 * 2**20
# More elements than this take longer than the event loop, which all callers share, should be held up.
MAX_ROWS_AT_ONCE = 1000
# How large the numbers of a release may be that is kept: the rest of a message is left for the plan.
MAX_SHOWN_BYTES = MAX_MESSAGE_BYTES - 4 * 2**20
# About what a result takes, and each of its rows besides the values of its element, in bytes of memory.
RESULT_BYTES = 8192
MARK_BYTES = 16
ROW_BYTES = 320

Completed: TypeAlias = Callable[[Charge], PrivateResult]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ShownRelease:
    """A release as a question shows it: what to charge for it, and the result that it becomes once that is done."""

    release: dp_pb2.Release
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
    """Shows releases with one confidence, and remembers how the last ones are shown. Use it in one event loop.

    A free repeat must not hold up other callers. So large releases are shown in a thread, by one question at a time for
    each release.
    """

    def __init__(self, noise: DpServiceClient, confidence: float) -> None:
        self._noise = noise
        self._confidence = confidence
        # By how a question shows a release: the result, and its last ticket. By release: the ranks of all its elements.
        self._remembered: OrderedDict[bytes | str, _Remembered] = OrderedDict()
        self._remembered_bytes = 0
        self._showing: SingleFlight[str] = SingleFlight(lambda _: False)
        self._ticketing: SharedCalls[ShownRelease] = SharedCalls()
        # More threads would only take turns at the interpreter. A caller who leaves cannot start a second one.
        self._thread = ThreadPoolExecutor(1, "gris-shown-releases")

    async def completed(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        before: Sequence[KeptRelease] = (),
    ) -> Completed:
        """Returns the result that a kept release becomes, for an account that has paid for it.

        `before` are the looks that it is combined with, where the question asks for a sharpening.
        """
        if (known := self._displayed(translation, kept)) is not None:
            return known.shown.completed
        async with self._alone(kept):
            # The question that had the turn before may have shown the same.
            known = self._displayed(translation, kept)
            if known is not None:
                return known.shown.completed
            return (await self._show(columns, translation, kept, before)).completed

    async def shown(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        before: Sequence[KeptRelease] = (),
    ) -> ShownRelease:
        """Returns a kept release with a ticket to charge it with under the policy of now.

        Questions that were translated together share the ticket. `before` are the looks that it is combined with, where
        the question asks for a sharpening.
        """
        known = self._displayed(translation, kept)
        if known is not None and known.plan == _digest_of(translation.plan):
            return known.shown
        key = _key_of(translation, kept.release_id), translation.plan

        async def show() -> ShownRelease:
            async with self._alone(kept):
                return await self._show(columns, translation, kept, before)

        return await self._ticketing.joined(key, show)

    async def of_noisy(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        noisy: NoisyHistogram,
    ) -> ShownRelease:
        """Returns a release that dp_service has just made or shown; everything of it that can fail is done here."""

        def made() -> tuple[Completed, int]:
            verify(noisy, translation)
            requested_k, part = translation.requested_k or None, part_shown(noisy)
            completed = prepared(columns, translation.count_alias or None, part, requested_k)
            return completed, _result_bytes(part)

        completed, size = await self._computed(noisy.release.element_count, made)
        release = noisy.release
        shown = ShownRelease(release, completed)
        if release.HasField("shown_count"):
            key = _key_of(translation, release.release_id)
            displayed = _Displayed(shown, _digest_of(translation.plan))
            self._remember(key, displayed, len(key) + size)
        return shown

    def close(self) -> None:
        """Ends what is under way, and the thread."""
        self._ticketing.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _show(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
        before: Sequence[KeptRelease],
    ) -> ShownRelease:
        known = self._known(kept.release_id)

        def asked() -> tuple[NoisyHistogram, array[int], dp_pb2.ShowReleaseRequest]:
            whole = merged(columns, [kept.content.elements], kept.content.release)
            ranks = _ranks(whole.elements) if known is None else known
            request = dp_pb2.ShowReleaseRequest(
                plan=translation.plan,
                release=whole.release,
                element_ranks=ranks,
                noisy_counts=whole.noisy_counts,
                confidence=self._confidence,
                sums=map(_sums_message, whole.sums),
                before=counts_before(columns, before, _ascending(whole.elements, ranks)),
                cells=map(_cells_message, whole.cells),
            )
            return whole, ranks, request

        whole, ranks, request = await self._computed(kept.content.release.element_count, asked)
        self._remember(kept.release_id, ranks, len(ranks) * ranks.itemsize)
        response = await self._noise.show(request)
        lower, upper = list(response.interval_lower), list(response.interval_upper)
        noisy = replace(
            whole,
            lower=lower,
            upper=upper,
            release=response.release,
            aggregates=list(response.aggregates),
            quantiles=list(response.quantiles),
        )
        if before:
            sharpened = response.release.parameters.contributions.sharpened
            numerators = list(response.combined_numerators)
            noisy = replace(noisy, noisy_counts=numerators, denominator=sharpened.denominator)
        return await self.of_noisy(columns, translation, noisy)

    @asynccontextmanager
    async def _alone(self, kept: KeptRelease) -> AsyncIterator[None]:
        """Lets one question at a time show a large release."""
        if kept.content.release.element_count <= MAX_ROWS_AT_ONCE:
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

    def _displayed(self, translation: dp_pb2.TranslateQueryResponse, kept: KeptRelease) -> _Displayed | None:
        known: _Displayed | None = self._known(_key_of(translation, kept.release_id))
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


def kept_release(
    columns: tuple[ExpectedColumn, ...], noisy: NoisyHistogram, *, version_is_fixed: bool
) -> KeptRelease | None:
    """Returns what is kept of a release; None if it is not whole, as from a dp_service of an older version.

    If its numbers fit into no message in which dp_service could be asked how to show it, only its name is kept: were
    it drawn again, a repeat would show whether the rows behind it have changed.
    """
    if not noisy.release.HasField("shown_count"):
        return None
    elements = dp_pb2.ReleasedElements(
        columns=element_columns(columns, noisy.columns),
        sums=map(_sums_message, noisy.sums),
        cells=map(_cells_message, noisy.cells),
    )
    write_counts(elements, noisy.noisy_counts, noisy.denominator)
    if _question_bytes(elements, noisy) > MAX_SHOWN_BYTES:
        return KeptRelease(_name_of(noisy.release), version_is_fixed)
    content = dp_pb2.AddNoiseUnaryResponse(elements=elements, release=noisy.release)
    # What the question that it was drawn for shows of it is no part of it.
    content.release.shown_count = 0
    del content.release.shown_rows[:]
    content.release.interval_kind = dp_pb2.INTERVAL_KIND_NONE
    content.release.ClearField("confidence")
    content.release.ClearField("totals")
    return KeptRelease(content, version_is_fixed)


def require_whole(kept: KeptRelease) -> KeptRelease:
    """Returns a release that can be shown.

    Raises:
        ReleaseTooLarge: only its name is kept.
    """
    if not kept.is_whole:
        raise ReleaseTooLarge
    return kept


def _name_of(release: dp_pb2.Release) -> dp_pb2.AddNoiseUnaryResponse:
    return dp_pb2.AddNoiseUnaryResponse(
        release=dp_pb2.Release(
            release_id=release.release_id,
            query_id=release.query_id,
            key_id=release.key_id,
            # No ticket: it tells this name from the one that another client keeps for the same release at the same
            # time. Only the first of them shows its release, whether or not both have drawn the same.
            charge_ticket=secrets.token_bytes(MARK_BYTES),
        )
    )


def _question_bytes(elements: dp_pb2.ReleasedElements, noisy: NoisyHistogram) -> int:
    """Returns at least how many bytes the numbers of a release take in a ShowReleaseRequest, with their ranks."""
    numbers = dp_pb2.ReleasedElements(sums=elements.sums)
    write_counts(numbers, noisy.noisy_counts, noisy.denominator)
    rows = noisy.release.element_count
    totals = noisy.release.kept_totals.ByteSize()
    return numbers.ByteSize() + totals + rows * max(1, -(-rows.bit_length() // 7))


def _digest_of(plan: bytes) -> bytes:
    # That of a large domain would be the largest part of what is remembered.
    return hashlib.sha256(plan).digest()


def _sums_message(sums: list[int]) -> histogram_pb2.CentredSums:
    return histogram_pb2.CentredSums(values=sums)


def _cells_message(cells: list[int]) -> dp_pb2.ChosenCells:
    return dp_pb2.ChosenCells(cells=cells)


def _key_of(translation: dp_pb2.TranslateQueryResponse, release_id: str) -> bytes:
    """Returns a name of the release together with everything that decides how it is shown."""
    shown = dp_pb2.TranslateQueryResponse(
        query_id=translation.query_id,
        parameters=translation.parameters,
        count_alias=translation.count_alias,
        columns=translation.columns,
        requested_k=translation.requested_k,
    )
    return release_id.encode() + shown.SerializeToString(deterministic=True)


def _result_bytes(noisy: NoisyHistogram) -> int:
    """Returns about how much memory a result takes."""
    cells = sum(sum(map(sys.getsizeof, column)) for column in noisy.columns)
    rows = noisy.release.element_count * (1 + len(noisy.aggregates) + len(noisy.quantiles))
    return RESULT_BYTES + rows * ROW_BYTES + cells


def _ascending(elements: Sequence[tuple[Element, ...]], ranks: array[int]) -> list[tuple[Element, ...]]:
    """Returns elements in ascending order."""
    return [elements[position] for position in sorted(range(len(elements)), key=ranks.__getitem__)]


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

"""What a question shows of a kept release: k, confidence, alias and columns are applied when it is read.

dp_service computes the intervals, by the functions that compute them for a new release.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Charge
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.base import Element, ExpectedColumn
from pinot_connector.histograms import element_columns
from pinot_connector.release_store.interface import KeptRelease
from pinot_connector.releases import Noisy, merged, part_shown, verify
from pinot_connector.results import PrivateResult, prepared

MAX_REMEMBERED = 512
# The results of larger ones would take much memory; they are shown anew each time.
MAX_REMEMBERED_ROWS = 1000

Completed: TypeAlias = Callable[[Charge], PrivateResult]


@dataclass(frozen=True)
class Shown:
    """A release as a question shows it: what to charge for it, and the result that it becomes once that is done."""

    release: dp_pb2.Release
    completed: Completed


class ShownReleases:
    """Shows releases with one confidence, and remembers how the last ones are shown."""

    def __init__(self, noise: DpServiceClient, confidence: float) -> None:
        self._noise = noise
        self._confidence = confidence
        self._remembered: OrderedDict[bytes, Completed] = OrderedDict()

    async def completed(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
    ) -> Completed:
        """Returns the result that a kept release becomes, for an account that has paid for it."""
        key = _key(translation, kept)
        if (known := self._remembered.get(key)) is not None:
            self._remembered.move_to_end(key)
            return known
        return (await self.shown(columns, translation, kept)).completed

    async def shown(
        self,
        columns: tuple[ExpectedColumn, ...],
        translation: dp_pb2.TranslateQueryResponse,
        kept: KeptRelease,
    ) -> Shown:
        """Returns a kept release with a ticket to charge it with under the policy of now."""
        whole = merged(columns, [kept.content.elements], kept.content.release)
        request = dp_pb2.ShowReleaseRequest(
            plan=translation.plan,
            release=whole.release,
            element_ranks=_ranks(whole.columns),
            noisy_counts=whole.noisy_counts,
            confidence=self._confidence,
        )
        response = await self._noise.show(request)
        noisy = Noisy(
            whole.columns,
            whole.noisy_counts,
            list(response.interval_lower),
            list(response.interval_upper),
            response.release,
        )
        return self.of_noisy(columns, translation, noisy)

    def of_noisy(
        self, columns: tuple[ExpectedColumn, ...], translation: dp_pb2.TranslateQueryResponse, noisy: Noisy
    ) -> Shown:
        """Returns a release that dp_service has just made or shown; everything of it that can fail is done here."""
        verify(noisy, translation)
        requested_k = translation.requested_k or None
        completed = prepared(columns, translation.count_alias or None, part_shown(noisy), requested_k)
        self._remember(translation, noisy, completed)
        return Shown(noisy.release, completed)

    def _remember(
        self, translation: dp_pb2.TranslateQueryResponse, noisy: Noisy, completed: Completed
    ) -> None:
        release = noisy.release
        if not release.HasField("shown_count") or release.shown_count > MAX_REMEMBERED_ROWS:
            return
        while len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.popitem(last=False)
        self._remembered[_key_of(translation, release.release_id)] = completed


def kept_release(
    columns: tuple[ExpectedColumn, ...], noisy: Noisy, *, version_is_fixed: bool
) -> KeptRelease | None:
    """Returns what is kept of a release; None if it is not whole, as from a dp_service of an older version."""
    if not noisy.release.HasField("shown_count"):
        return None
    elements = dp_pb2.ReleasedElements(
        columns=element_columns(columns, noisy.columns), noisy_counts=noisy.noisy_counts
    )
    content = dp_pb2.AddNoiseUnaryResponse(elements=elements, release=noisy.release)
    # What the question that it was drawn for shows of it is no part of it.
    content.release.shown_count = 0
    content.release.interval_kind = dp_pb2.INTERVAL_KIND_NONE
    content.release.ClearField("confidence")
    return KeptRelease(content, version_is_fixed)


def _key(translation: dp_pb2.TranslateQueryResponse, kept: KeptRelease) -> bytes:
    return _key_of(translation, kept.release_id)


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


def _ranks(columns: Sequence[Sequence[Element]]) -> list[int]:
    """Returns the place of each element among all of them in ascending order."""
    elements = list(zip(*columns, strict=True))
    ranks = [0] * len(elements)
    for rank, position in enumerate(sorted(range(len(elements)), key=elements.__getitem__)):
        ranks[position] = rank
    return ranks

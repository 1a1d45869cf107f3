"""Receives a kept release that is to be shown again, as a stream of header, chunks and end.

The header proves that this deployment made the release for the plan's question, before anything else is received. Its
elements need no proof, because they only come back to the caller that sent them.
"""

from __future__ import annotations

import hmac
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from gris_api.dp.v1 import dp_pb2
from numpy.typing import NDArray

from dp_service.mechanisms.parameters import Cost
from dp_service.mechanisms.selection import Selection
from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.releases.kinds import AnyKind, kind_of
from dp_service.releases.kinds.views import Counts
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.plan import Plan, signing_key, verify_plan
from dp_service.releases.ticket import charge_ticket
from dp_service.server.errors import ReleaseNotAuthenticError, RequestError
from dp_service.server.stream_assembler import CHUNK_LIMIT_BYTES, checked_confidence

Integers = NDArray[np.int64]
_COUNTS = "chunk.elements.noisy_counts"
_Received: TypeAlias = "tuple[str, list[array[int]], Sequence[Sequence[int]]]"
"""A field, the numbers of it that were received before, and those of a chunk: a list for each column."""


@dataclass
class KeptAssembler:
    """The numbers of a kept release received so far, one of each for each element.

    Attributes:
        plan: The plan of the question that shows it.
        key: The key that signed the plan.
        confidence: Of each interval.
        kept: The release, without its elements.
        denominator: What divides the noisy counts; 0: nothing does.
    """

    plan: Plan
    key: NoiseKey
    confidence: float
    kept: dp_pb2.Kept = field(repr=False)
    denominator: int = 0
    # 8 bytes a number.
    _ranks: array[int] = field(init=False, repr=False)
    _counts: array[int] = field(init=False, repr=False)
    _sums: list[array[int]] = field(init=False, repr=False)
    _cells: list[array[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = self._kind
        self._ranks, self._counts = _empty(2)
        self._sums = _empty(len(kind.clamps) + len(kind.own_counts))
        self._cells = _empty(kind.chosen_cells)

    @property
    def _kind(self) -> AnyKind:
        return kind_of(self.plan.parameters)

    @property
    def _has_counts(self) -> bool:
        """Whether nothing can be shown without counts."""
        return self.plan.parameters.with_counts

    @property
    def row_count(self) -> int:
        """How many elements were received so far."""
        return len(self._ranks)

    def add(self, chunk: dp_pb2.KeptChunk) -> None:
        """Add elements, at most as many as the header says; surplus ones are refused before they are stored.

        Raises:
            RequestError: The chunk is too large, or its numbers do not belong together.
        """
        if chunk.ByteSize() > CHUNK_LIMIT_BYTES:
            raise RequestError("chunk", f"expected at most {CHUNK_LIMIT_BYTES} bytes")
        rows, counts = len(chunk.element_ranks), _counts_of(chunk.elements)
        if self.row_count + rows > self.kept.element_count:
            raise RequestError("chunk.element_ranks", "expected at most element_count in all chunks")
        self._require_counts(counts, rows, chunk.elements.noisy_denominator)
        others = self._others(chunk)
        for name, held, received in others:
            if len(held) != len(received) or any(len(each) != rows for each in received):
                raise RequestError(f"chunk.{name}", "expected as the release has them, for each element")
        self.denominator = chunk.elements.noisy_denominator
        self._ranks.extend(chunk.element_ranks)
        self._counts.extend(counts)
        for _, held, received in others:
            for numbers, more in zip(held, received, strict=True):
                numbers.extend(more)

    def _require_counts(self, counts: Sequence[int], rows: int, denominator: int) -> None:
        if len(counts) not in (0, rows) or (rows and not counts and self._has_counts):
            raise RequestError(_COUNTS, "expected one for each element")
        if self.row_count and rows and bool(counts) is not bool(self._counts):
            raise RequestError(_COUNTS, "expected in all chunks, or in none")
        if self.row_count and denominator != self.denominator:
            raise RequestError("chunk.elements.noisy_denominator", "expected the same in all chunks")

    def _others(self, chunk: dp_pb2.KeptChunk) -> tuple[_Received, ...]:
        elements = chunk.elements
        return (
            ("elements.sums", self._sums, [each.values for each in elements.sums]),
            ("elements.cells", self._cells, [each.cells for each in elements.cells]),
        )

    @property
    def counts(self) -> Counts:
        """The noisy counts, in the order of the release; none if it has none."""
        return Counts(_numbers(self._counts), self.denominator or 1)

    def drawn(self) -> MechanismOutput:
        """Return the release as its mechanism returned it, with ranks in place of positions in the histogram.

        Raises:
            RequestError: The ranks are none.
        """
        kept, ranks = self.kept, _numbers(self._ranks)
        if ranks.size != kept.element_count or (np.sort(ranks) != np.arange(ranks.size)).any():
            raise RequestError("chunk.element_ranks", "expected each number from 0 to element_count - 1 once")
        selection = Selection(
            ranks,
            _numbers(self._counts) if self._counts or self._has_counts else None,
            kept.ended_in_bottom,
            kept.bottom if kept.HasField("bottom") else None,
        )
        return MechanismOutput(
            selection,
            total=kept.total if kept.HasField("total") else None,
            sums=tuple(map(_numbers, self._sums)),
            cells=tuple(map(_numbers, self._cells)),
        )


def begin_showing(header: dp_pb2.KeptHeader, keys: KeySet, *, now: int) -> KeptAssembler:
    """Check a header and begin to receive.

    Args:
        header: The plan, and the release without its elements.
        keys: The live keys.
        now: Seconds since 1970 (UTC).

    Raises:
        PlanError: The plan is not authentic, or too old.
        ReleaseNotAuthenticError: This deployment did not make the release for the plan's question.
        RequestError: The confidence is out of range, or the release has more elements than any of the plan's.
    """
    key = signing_key(header.plan, keys)
    plan = verify_plan(header.plan, key, now=now)
    confidence = checked_confidence("header.confidence", header.confidence)
    _require_authentic(plan, header.kept.bill, key)
    if not 0 <= header.kept.element_count <= plan.row_limit:
        raise RequestError("header.kept.element_count", f"expected at most the plan's {plan.row_limit} rows")
    if header.kept.HasField("elements"):
        raise RequestError("header.kept.elements", "expected them in chunks")
    return KeptAssembler(plan, key, confidence, header.kept)


def _require_authentic(plan: Plan, bill: dp_pb2.Bill, key: NoiseKey) -> None:
    """Make sure that this deployment made a release for the question of a plan.

    Raises:
        ReleaseNotAuthenticError: It did not.
    """
    cost = Cost(bill.cost.information, bill.cost.calls)
    is_of_plan = bill.query_id == plan.query_id and bill.cost.unit_id == plan.paid_by.unit_id
    # No release has a price below 0.
    if not is_of_plan or min(cost.information, cost.calls) < 0:
        raise ReleaseNotAuthenticError
    expected = charge_ticket(
        key,
        release_id=bill.release_id,
        query_id=bill.query_id,
        cost=cost,
        unit_id=bill.cost.unit_id,
        blocks=tuple(bill.cost.blocks),
        policy_statement=bill.policy_statement,
    )
    if not hmac.compare_digest(bill.charge_ticket, expected):
        raise ReleaseNotAuthenticError


def _empty(columns: int) -> list[array[int]]:
    return [array("q") for _ in range(columns)]


def _numbers(received: array[int]) -> Integers:
    return np.array(received, dtype=np.int64)


def _counts_of(elements: dp_pb2.KeptElements) -> Sequence[int]:
    return elements.noisy_counts or elements.noisy_numerators

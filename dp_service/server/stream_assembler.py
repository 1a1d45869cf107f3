"""Receives rows as a stream of header, chunks and end; and those of a histogram, in one message too."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import grpc
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.queries.answer_columns import CELL_COLUMN
from dp_service.releases.histogram import HistogramError, TypedHistogram, checked_histogram
from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.releases.kinds import AnyKind, kind_of
from dp_service.releases.kinds.quantiles import CELL_TYPE
from dp_service.releases.plan import Plan, signing_key, verify_plan
from dp_service.server.errors import DataChangedError, RequestError
from dp_service.server.messages import column_values
from dp_service.terms import ColumnType, Scalar

DEFAULT_CONFIDENCE = 0.95
# The most that fits into a message of AddNoiseUnary; clients send chunks of a third of it.
CHUNK_LIMIT_BYTES = 3 * 2**20
DRAIN_SECONDS = 1.0


class Rows(Protocol):
    """What the header of a stream begins, and its chunks are added to."""

    @property
    def row_count(self) -> int:
        """How many rows were received so far."""
        ...

    def add(self, chunk: Any) -> None:
        """Add a chunk; one that does not fit is refused before it is stored."""
        ...


_Rows = TypeVar("_Rows", bound=Rows)


@dataclass
class StreamAssembler:
    """The rows received so far for one plan, and the key that signed it."""

    plan: Plan
    key: NoiseKey
    confidence: float
    whole: bool = False
    columns: list[list[Scalar]] = field(init=False, repr=False)
    counts: list[int] = field(init=False, repr=False, default_factory=list)
    first_counts: list[int] = field(init=False, repr=False, default_factory=list)
    sums: list[list[int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in self._columns]
        self.sums = [[] for _ in (*self._kind.clamps, *self._kind.own_counts)]

    @property
    def row_count(self) -> int:
        """How many rows were received so far."""
        return len(self.counts)

    @property
    def _columns(self) -> tuple[tuple[str, ColumnType], ...]:
        """The columns of the answer to the plan's query: those of the elements, and for quantiles that of the cells."""
        cell = ((CELL_COLUMN, CELL_TYPE),) if self.plan.parameters.counts_cells else ()
        return (*self.plan.columns, *cell)

    @property
    def _kind(self) -> AnyKind:
        return kind_of(self.plan.parameters)

    def add(self, chunk: histogram_pb2.Histogram) -> None:
        """Add rows, at most as many as the plan's query can return; surplus rows are refused before they are stored.

        Raises:
            HistogramError: The chunk is too large, or does not fit the plan.
        """
        if chunk.ByteSize() > CHUNK_LIMIT_BYTES:
            raise HistogramError(f"expected chunks of at most {CHUNK_LIMIT_BYTES} bytes")
        names = [column.name for column in chunk.columns]
        if names != [name for name, _ in self._columns]:
            raise HistogramError("expected the plan's element columns, in their order")
        if len(self.counts) + len(chunk.counts) > self.plan.row_limit:
            raise HistogramError(f"expected at most the plan's {self.plan.row_limit} rows")
        columns = [column_values(column) for column in chunk.columns]
        if any(len(column) != len(chunk.counts) for column in columns):
            raise HistogramError("expected as many values in every column as there are counts")
        if len(chunk.first_counts) != (
            len(chunk.counts) if self.plan.parameters.counts_first_elements else 0
        ):
            raise HistogramError("expected first_counts exactly where the plan's query answers them")
        if len(chunk.sums) != len(self.sums) or any(
            len(each.values) != len(chunk.counts) for each in chunk.sums
        ):
            raise HistogramError(
                "expected as many sums of each of the plan's value columns, and own counts, as there are counts"
            )
        for held, column in zip(self.columns, columns, strict=True):
            held.extend(column)
        for sums, added in zip(self.sums, chunk.sums, strict=True):
            sums.extend(added.values)
        self.counts.extend(chunk.counts)
        self.first_counts.extend(chunk.first_counts)

    def histogram(self) -> TypedHistogram:
        """Return all rows as a checked histogram.

        Raises:
            HistogramError: The rows cannot be the answer to the plan's query.
        """
        types = tuple(kind for _, kind in self._columns)
        return checked_histogram(
            types,
            self.columns,
            self.counts,
            self.sums,
            row_limit=self.plan.row_limit,
            first_counts=self.first_counts if self.plan.parameters.counts_first_elements else None,
            clamps=self._kind.clamps,
            scales=self._kind.scales,
            own_counts=self._kind.own_counts,
        )


def begin(header: dp_pb2.ReleaseHeader, keys: KeySet, *, now: int) -> StreamAssembler:
    """Check a header and begin to receive.

    Raises:
        PlanError: The plan is not authentic, or too old.
        DataChangedError: The data changed since the question was translated.
        RequestError: The confidence is out of range.
    """
    key = signing_key(header.plan, keys)
    plan = verify_plan(header.plan, key, now=now)
    if header.data_version != plan.engine_data_version:
        raise DataChangedError
    confidence = checked_confidence("header.confidence", header.confidence)
    return StreamAssembler(plan, key, confidence, header.keep)


def checked_confidence(field_name: str, confidence: float) -> float:
    """Return the confidence of intervals; 0 stands for the default.

    Raises:
        RequestError: It is out of range.
    """
    chosen = confidence or DEFAULT_CONFIDENCE
    if not (math.isfinite(chosen) and 0.5 < chosen < 1):
        raise RequestError(field_name, f"expected a number strictly between 0.5 and 1, got {confidence}")
    return chosen


async def receive_stream(requests: AsyncIterator[Any], begun: Callable[[Any], Awaitable[_Rows]]) -> _Rows:
    """Receive a whole stream of messages with a header, chunks and an end, in this order.

    Args:
        requests: The messages.
        begun: Checks a header and returns what its chunks are added to; what it refuses is refused at once.

    Raises:
        RequestError: The stream is incomplete or out of order.
        Exception: What `begun` and the rows raise.
    """
    rows: _Rows | None = None
    ended = False
    async for request in requests:
        if ended:
            raise RequestError("end", "expected nothing after it")
        if request.HasField("header") is not (rows is None):
            raise RequestError("header", "expected first, and once")
        if not request.ListFields():
            raise RequestError("part", "expected a header, a chunk or an end")
        if rows is None:
            rows = await begun(request.header)
        if request.HasField("chunk"):
            rows.add(request.chunk)
        if request.HasField("end"):
            _check_end(request.end, rows)
            ended = True
    if rows is None or not ended:
        raise RequestError("end", "expected a header, the rows and an end; the stream is incomplete")
    return rows


async def drain(requests: AsyncIterator[Any]) -> None:
    """Read what a client is still sending, for at most a second: otherwise gRPC may answer before we do."""
    reading = asyncio.ensure_future(_read_all(requests))
    await asyncio.wait({reading}, timeout=DRAIN_SECONDS)
    reading.cancel()


async def _read_all(requests: AsyncIterator[Any]) -> None:
    # A client that disconnects meanwhile needs no answer.
    with suppress(grpc.RpcError, asyncio.CancelledError):
        async for _ in requests:
            pass


def _check_end(end: dp_pb2.ReleaseEnd, rows: Rows) -> None:
    if end.row_count != rows.row_count:
        raise RequestError("end.row_count", "expected the number of rows in all chunks together")

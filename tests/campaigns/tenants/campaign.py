"""Asks as tenants, and in worlds that have nothing but what each is offered: all is alike.

There a question is priced as it is, which says whether it names anything that is not there. If it does, both refusals
are the same to the letter. Otherwise it is asked with the tenant's own condition in it, which makes it the question
that the gateway of all tenants must have asked: with the same noise, so that its numbers are the same if and only if
the same rows were counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from math import ceil
from pathlib import Path
from typing import Any

import grpc
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2
from grpc_status import rpc_status
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from dp_service.queries.structured import HistogramQuery
from tests.campaigns.sensitivity.campaign import DRAWN

from .questions import QUERIES, Asked
from .stage import TENANTS, Stage, Tenant, World, running_stage

AT_ONCE, ASKING = 25, 5
"""How many questions a tenant asks at once, and how many tenants ask the same."""
CONTRADICTION = "no row can meet them"
# How a question is written, in the names that it gives.
_WRITTEN = ("columns", "count_alias", "selected", "audience_rows")
_SECONDS = 120


@dataclass
class Totals:
    """What a campaign has looked at."""

    questions: int = 0
    different: set[bytes] = field(default_factory=set)
    answered: int = 0
    elements: int = 0
    refused: int = 0
    empty: int = 0
    unsound: int = 0
    tenants: set[tuple[str, ...]] = field(default_factory=set)

    def __str__(self) -> str:
        return (
            f"{self.questions} questions of {len(self.tenants)} tenants, in {len(self.different)} texts: "
            f"{self.answered} answered alike, with {self.elements} elements, {self.refused} refused alike, "
            f"{self.empty} of rows that a tenant cannot have, {self.unsound} not judged, as what they mean is not "
            "known; 0 outside"
        )


@contextmanager
def asking(folder: Path) -> Iterator[Campaign]:
    """Run everything, for campaigns that ask."""
    with asyncio.Runner() as runner:
        opened = AsyncExitStack()
        try:
            yield Campaign(runner, runner.run(opened.enter_async_context(running_stage(folder))))
        finally:
            runner.run(opened.aclose())


class Campaign:
    """Asks what is drawn.

    Args:
        runner: Where everything runs.
        stage: Whom to ask.
    """

    def __init__(self, runner: asyncio.Runner, stage: Stage) -> None:
        self._runner = runner
        self._stage = stage
        self._requests = dict.fromkeys((each.account for each in TENANTS), 0)
        self.totals = Totals()

    def run(self, questions: int, *, seed_: int = 0) -> Totals:
        """Ask at least so many questions, the same of some tenants in turn.

        Raises:
            AssertionError: A tenant learns something of what it is not offered.
        """
        in_turn, numbers, outside = cycle(TENANTS), count(seed_ * 10**6), list[str]()

        @seed(seed_)
        @settings(DRAWN, max_examples=ceil(questions / AT_ONCE / ASKING), phases=[Phase.generate])
        @given(st.lists(QUERIES, min_size=AT_ONCE, max_size=AT_ONCE))
        def ask(queries: list[HistogramQuery]) -> None:
            asked = [Asked(query, number) for query, number in zip(queries, numbers, strict=False)]
            # What is found is not drawn again: by then others ask.
            for tenant in () if outside else islice(in_turn, ASKING):
                outside.extend(
                    f"{tenant.account}: {fault}" for fault in self._runner.run(self._round(tenant, asked))
                )

        ask()
        assert not outside, "\n".join(outside)
        return self.totals

    async def _round(self, tenant: Tenant, asked: list[Asked]) -> list[str]:
        alone, caller = self._stage.alone(tenant), self._stage.of(tenant)
        # What is named for another tenant is seen in a history.
        first, own = self._requests[tenant.account], f"{TENANTS.index(tenant)}r"
        self._requests[tenant.account] += len(asked)
        self.totals.tenants.add(tenant.account)
        calls = [
            self._faults(tenant, each, alone, caller, f"{own}{first + place}")
            for place, each in enumerate(asked)
        ]
        found = [fault for faults in await asyncio.gather(*calls) for fault in faults]
        names = {f"{own}{each}" for each in range(self._requests[tenant.account])}
        return found + [fault async for fault in self._read(alone, caller, names)]

    async def _faults(
        self, tenant: Tenant, asked: Asked, alone: World, caller: list[tuple[str, str]], request_id: str
    ) -> list[str]:
        totals, plain = self.totals, asked.question()
        totals.questions += 1
        totals.different.add(plain.SerializeToString(deterministic=True))
        mine = await _answer(self._stage.whole, plain, caller, request_id)
        priced = await _refusal(
            alone.stub.Explain(app_pb2.ExplainRequest(question=plain), metadata=caller, timeout=_SECONDS)
        )
        if priced is not None and _is_empty(mine):
            # What is forced may be at odds with a condition before anything else is.
            totals.empty += 1
            return []
        if priced is not None:
            totals.refused += 1
            return [] if mine == priced else [f"{plain} is answered with {mine} instead of {priced}"]
        if not asked.is_sound:
            totals.unsound += 1
            return []
        theirs = await _answer(alone, asked.question(tenant.rows[asked.query.table]), caller, request_id)
        if _is_empty(mine) and _is_empty(theirs):
            totals.empty += 1
        elif mine != theirs:
            return [f"{plain} is answered with {mine} instead of {theirs}"]
        elif isinstance(mine, _Answer):
            totals.answered += 1
            totals.elements += len(mine.elements.noisy_counts)
        else:
            totals.refused += 1
        return []

    async def _read(self, alone: World, caller: list[tuple[str, str]], names: set[str]) -> AsyncIterator[str]:
        """Yield what catalogue and history have of others."""
        request = app_pb2.GetCatalogRequest()
        mine, theirs = [
            (await each.stub.GetCatalog(request, metadata=caller, timeout=_SECONDS)).page
            for each in (self._stage.whole, alone)
        ]
        for each in (mine, theirs):
            # The keyed name of the policy, and that of the audience, which is its own.
            each.ClearField("policy_id")
            each.ClearField("audience")
        if mine != theirs:
            yield f"the catalogue is {mine} instead of {theirs}"
        past = app_pb2.ListReleasesRequest(page_size=100)
        listed = await self._stage.whole.stub.ListReleases(past, metadata=caller, timeout=_SECONDS)
        if others := {each.request_id for each in listed.releases} - names:
            yield f"the history has requests of others: {others}"


@dataclass(frozen=True)
class _Answer:
    """What is shown of an answer, but for the names that its question gives."""

    shown: dp_pb2.Shown
    elements: dp_pb2.ShownElements


Said = _Answer | tuple[object, ...]
"""An answer, or a refusal: its code, its words and its details."""


async def _answer(
    world: World, question: question_pb2.Question, caller: list[tuple[str, str]], request_id: str
) -> Said:
    request = app_pb2.AskRequest(question=question, request_id=request_id)
    call = world.stub.Ask(request, metadata=caller, timeout=_SECONDS)
    try:
        parts = [each async for each in call]
    except grpc.aio.AioRpcError as error:
        return _refused(error)
    elements, shown = dp_pb2.ShownElements(), parts[-1].end.shown
    for part in parts[:-1]:
        elements.MergeFrom(part.chunk)
    for column in elements.columns:
        column.name = ""
    for each in _WRITTEN:
        shown.ClearField(each)
    said = [each for each in shown.statements if each.code != "rows.audience"]
    del shown.statements[:]
    shown.statements.extend(said)
    return _Answer(shown, elements)


async def _refusal(call: Any) -> tuple[object, ...] | None:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return _refused(error)
    return None


def _refused(error: grpc.aio.AioRpcError) -> tuple[object, ...]:
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # the same methods
    assert status is not None, error
    # Under which name a refusal is kept says nothing.
    details = tuple(each.value for each in status.details if not each.type_url.endswith("RequestInfo"))
    return error.code(), error.details() or "", details


def _is_empty(said: Said) -> bool:
    return isinstance(said, tuple) and CONTRADICTION in str(said[1])

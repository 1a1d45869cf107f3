"""A service for practice: the rows that it is asked about are made up, and everything that it says, says so.

It has a noise key of its own, as every deployment has: what was drawn for made-up rows under the key of a real one
would show the noise of real answers.
"""
# ruff: noqa: N802 - the names of the RPCs are the contract's

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from gris_api.dp.v1 import dp_pb2

from dp_service.releases.saying import OF_PRACTICE
from dp_service.server.errors import NotMadeUpError
from dp_service.server.messages import statement_message
from dp_service.server.service import Context, DpServicer


class PracticeServicer(DpServicer):
    """Implements the RPCs with one statement more, which comes first, for made-up rows alone.

    Args:
        arguments: As those of a service of real rows.
        versions: The data versions of the made-up rows. Questions about others are refused with FAILED_PRECONDITION.
    """

    def __init__(self, *arguments: Any, versions: Collection[str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._versions = frozenset(versions)

    def _translate(self, request: dp_pb2.TranslateQueryRequest) -> dp_pb2.TranslateQueryResponse:
        # The engine's own version, whatever a policy declares: what is said of an answer would be false of other rows.
        if request.data_version not in self._versions:
            raise NotMadeUpError
        return super()._translate(request)

    async def TranslateQuery(
        self, request: dp_pb2.TranslateQueryRequest, context: Context
    ) -> dp_pb2.TranslateQueryResponse:
        """Turn a question into a query; an answer that needs none says that it is practice."""
        response = await super().TranslateQuery(request, context)
        if response.HasField("free"):
            _mark(response.free.shown)
        if response.HasField("price"):
            _mark(response.price.estimate)
        return response

    async def EstimateCost(
        self, request: dp_pb2.EstimateCostRequest, context: Context
    ) -> dp_pb2.EstimateCostResponse:
        """Return the worst-case cost of a question."""
        response = await super().EstimateCost(request, context)
        _mark(response.estimate)
        return response

    async def AddNoiseUnary(
        self, request: dp_pb2.AddNoiseUnaryRequest, context: Context
    ) -> dp_pb2.AddNoiseUnaryResponse:
        """Release a small histogram."""
        response = await super().AddNoiseUnary(request, context)
        if response.HasField("release"):
            _mark(response.release.shown)
        return response

    async def AddNoise(
        self, request_iterator: AsyncIterator[dp_pb2.AddNoiseRequest], context: Context
    ) -> AsyncIterator[dp_pb2.AddNoiseResponse]:
        """Release a histogram that arrives in chunks."""
        async for response in super().AddNoise(request_iterator, context):
            if response.HasField("end"):
                _mark(response.end.shown)
            yield response

    async def ShowRelease(
        self, request_iterator: AsyncIterator[dp_pb2.ShowReleaseRequest], context: Context
    ) -> AsyncIterator[dp_pb2.ShowReleaseResponse]:
        """Show a kept release under the plan of a question."""
        async for response in super().ShowRelease(request_iterator, context):
            if response.HasField("end"):
                _mark(response.end.shown)
            yield response


def _mark(said: Any) -> None:
    """Put the statement before those of a message."""
    others = list(said.statements)
    del said.statements[:]
    said.statements.append(statement_message(OF_PRACTICE))
    said.statements.extend(others)

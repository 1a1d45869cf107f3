"""The gateway's gRPC: each RPC of `gris.app.v1.PrivateQueryService` is a function of `questions`."""
# ruff: noqa: N802 - the names of the RPCs are the proto's

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc

from gris_gateway.admission import current_call, current_caller
from gris_gateway.questions import Call, Questions
from gris_gateway.rpc_errors import end_call
from gris_serving.identity import Context

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


class PrivateQueryServicer(app_pb2_grpc.PrivateQueryServiceServicer):
    """Answers the calls that `GatewayAdmission` has admitted."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def Ask(self, request: app_pb2.AskRequest, context: Context) -> AsyncIterator[app_pb2.AskResponse]:
        """Answer a question."""
        answer = await _answered(self._questions.ask, request, context)
        for message in answer.messages:
            yield message

    async def Explain(self, request: app_pb2.ExplainRequest, context: Context) -> app_pb2.ExplainResponse:
        """Return what a question would cost."""
        return await _answered(self._questions.explain, request, context)

    async def GetRemaining(
        self, request: app_pb2.GetRemainingRequest, context: Context
    ) -> app_pb2.GetRemainingResponse:
        """Return what is left."""
        return await _answered(self._questions.remaining, request, context)

    async def GetGuarantee(
        self, request: app_pb2.GetGuaranteeRequest, context: Context
    ) -> app_pb2.GetGuaranteeResponse:
        """Return the guarantee of an account."""
        return await _answered(self._questions.guarantee, request, context)

    async def GetCatalog(
        self, request: app_pb2.GetCatalogRequest, context: Context
    ) -> app_pb2.GetCatalogResponse:
        """Return a page of what may be asked."""
        return await _answered(self._questions.catalog, request, context)

    async def ListReleases(
        self, request: app_pb2.ListReleasesRequest, context: Context
    ) -> app_pb2.ListReleasesResponse:
        """List what an account has paid for."""
        return await _answered(self._questions.releases, request, context)


async def _answered(
    ask: Callable[[Call, _Request], Awaitable[_Answer]], request: _Request, context: Context
) -> _Answer:
    call = Call(current_caller.get(), current_call.get(), context.time_remaining())
    try:
        return await ask(call, request)
    except grpc.aio.AioRpcError as refused:
        await end_call(context, refused)

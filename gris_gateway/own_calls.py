"""Calls of the gateway from inside its own process, for faces that speak another protocol than gRPC.

They are limited, counted and logged as those of gRPC.
"""
# ruff: noqa: N802, ASYNC109 - a gateway's client calls them as those of a stub

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import grpc
from gris_api.app.v1 import app_pb2

from gris_gateway.accounts import Caller
from gris_gateway.questions import Answer, Call, Questions
from gris_gateway.rate_limits import Limiter, TooManyError
from gris_gateway.rpc_errors import LOG_LEVELS, too_many
from gris_gateway.upstream_health import SERVICE_NAME
from gris_serving.instrumentation import Instrumentation
from gris_serving.logs import Metadata

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class OwnCalls:
    """What calls of this process share: the gateway's functions, the limits of callers, and what records calls."""

    questions: Questions
    limiter: Limiter
    instrumentation: Instrumentation


@dataclass(frozen=True)
class CallsOfCaller:
    """The calls of one caller, who has been identified. Each raises `grpc.aio.AioRpcError` if it is refused."""

    calls: OwnCalls
    caller: Caller

    async def Ask(
        self, request: app_pb2.AskRequest, *, timeout: float, metadata: Metadata
    ) -> AsyncIterator[app_pb2.AskResponse]:
        """Answer a question."""
        answer: Answer = await self._answered("Ask", self.calls.questions.ask, request, timeout, metadata)
        for message in answer.messages:
            yield message

    async def Explain(
        self, request: app_pb2.ExplainRequest, *, timeout: float, metadata: Metadata
    ) -> app_pb2.ExplainResponse:
        """Return what a question would cost."""
        return await self._answered("Explain", self.calls.questions.explain, request, timeout, metadata)

    async def GetRemaining(
        self, request: app_pb2.GetRemainingRequest, *, timeout: float, metadata: Metadata
    ) -> app_pb2.GetRemainingResponse:
        """Return what is left."""
        return await self._answered(
            "GetRemaining", self.calls.questions.remaining, request, timeout, metadata
        )

    async def GetGuarantee(
        self, request: app_pb2.GetGuaranteeRequest, *, timeout: float, metadata: Metadata
    ) -> app_pb2.GetGuaranteeResponse:
        """Return the guarantee of an account."""
        return await self._answered(
            "GetGuarantee", self.calls.questions.guarantee, request, timeout, metadata
        )

    async def GetCatalog(
        self, request: app_pb2.GetCatalogRequest, *, timeout: float, metadata: Metadata
    ) -> app_pb2.GetCatalogResponse:
        """Return a page of what may be asked."""
        return await self._answered("GetCatalog", self.calls.questions.catalog, request, timeout, metadata)

    async def ListReleases(
        self, request: app_pb2.ListReleasesRequest, *, timeout: float, metadata: Metadata
    ) -> app_pb2.ListReleasesResponse:
        """List what an account has paid for."""
        return await self._answered("ListReleases", self.calls.questions.releases, request, timeout, metadata)

    async def _answered(
        self,
        name: str,
        ask: Callable[[Call, _Request], Awaitable[_Answer]],
        request: _Request,
        seconds: float,
        metadata: Metadata,
    ) -> _Answer:
        async def answered() -> _Answer:
            with self.calls.instrumentation.in_process(SERVICE_NAME, name, metadata, LOG_LEVELS):
                try:
                    async with self.calls.limiter.entered(self.caller.name, seconds) as admitted:
                        return await ask(Call(self.caller, admitted, seconds), request)
                except TooManyError as error:
                    raise too_many(error) from None

        # A task of its own, as gRPC has one for each call.
        calling = asyncio.create_task(answered())
        try:
            async with asyncio.timeout(seconds):
                return await calling
        except TimeoutError:
            nothing = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, nothing, nothing) from None

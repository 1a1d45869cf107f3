"""The context of calls that no connection carries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import grpc

from gris_gateway.accounts import Caller
from gris_serving.admitting import Sender
from gris_serving.identity import CERTIFICATE_KEY

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]


class InProcessContext:
    """The context of a call that no connection carries: what handlers ask of it, and how they end it.

    Args:
        metadata: What the caller sends with the call.
        seconds: How long the call may take; None: any time.
        certificate: That of the caller's own connection; None: none.
        caller: The caller, where it has been identified already.
    """

    def __init__(
        self,
        metadata: Metadata = (),
        seconds: float | None = None,
        *,
        certificate: bytes | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.caller = caller
        self._metadata = metadata
        self._certificate = certificate
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._code = grpc.StatusCode.OK
        self._details = ""
        self._trailing: Metadata = ()
        self.answers: list[Any] = []

    @classmethod
    def of(cls, sender: Sender) -> InProcessContext:
        """Return the context by which a sender is identified."""
        return cls(
            [("authorization", value) for value in sender.authorization], certificate=sender.certificate
        )

    def invocation_metadata(self) -> Metadata:
        """Return what the caller sent with the call."""
        return self._metadata

    def auth_context(self) -> Mapping[str, Sequence[bytes]]:
        """Return the certificate as gRPC does."""
        return {} if self._certificate is None else {CERTIFICATE_KEY: (self._certificate,)}

    def time_remaining(self) -> float | None:
        """Return how much time is left."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def code(self) -> grpc.StatusCode:
        """Return how the call ended."""
        return self._code

    def details(self) -> str:
        """Return the message that it ended with."""
        return self._details

    def trailing_metadata(self) -> Metadata:
        """Return what it ended with besides."""
        return self._trailing

    async def send_initial_metadata(self, _: Metadata) -> None:
        """Do nothing: there is nothing to begin."""

    async def write(self, message: Any) -> None:
        """Keep an answer for the caller."""
        self.answers.append(message)

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Metadata = ()
    ) -> NoReturn:
        """End the call."""
        self._code, self._details, self._trailing = code, details, tuple(trailing_metadata)
        raise grpc.aio.AbortError

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """End the call."""
        await self.abort(status.code, status.details, tuple(status.trailing_metadata or ()))

    @staticmethod
    def out_of_time() -> grpc.aio.AioRpcError:
        """Return what gRPC would raise at a caller whose deadline has passed."""
        nothing = grpc.aio.Metadata()
        return grpc.aio.AioRpcError(grpc.StatusCode.DEADLINE_EXCEEDED, nothing, nothing)

    def error(self) -> grpc.aio.AioRpcError:
        """Return what gRPC would raise at the caller."""
        trailing = grpc.aio.Metadata(*self._trailing)
        return grpc.aio.AioRpcError(self._code, grpc.aio.Metadata(), trailing, details=self._details)

"""How requests are decoded, so that one which cannot be used is refused by name.

gRPC takes an exception of a decoder for an error of this program, and ends the call with a text of its own. Here a
decoder returns an `UnusableRequest` instead, or raises an `UnusableRequestError` in a stream that a service itself
reads; the instrumentation ends the call with its reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError

Decoder: TypeAlias = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class UnusableRequest:
    """Stands for a request that is refused: with this reason in its ErrorInfo, and this message."""

    reason: str
    message: str


class UnusableRequestError(BaseException):
    """A message of a stream cannot be used. Not an Exception, so that no service takes it for its own error."""

    def __init__(self, request: UnusableRequest) -> None:
        super().__init__(request.reason)
        self.request = request


UNDECODABLE = UnusableRequest(
    reason="UNDECODABLE", message="the request cannot be decoded: expected a message of this method's type"
)
UNFINISHED = UnusableRequest(reason="REQUEST_UNFINISHED", message="expected one whole request")


def marking(decoder: Decoder, most_bytes: int | None = None) -> Decoder:
    """Return a decoder whose result is an `UnusableRequest` if there is none.

    Args:
        decoder: Decodes a message.
        most_bytes: The largest message that is decoded. A decoded message can take twenty times its size in memory.
    """
    too_large = _too_large(most_bytes)

    def decoded(message: bytes) -> Any:
        if most_bytes is not None and len(message) > most_bytes:
            return too_large
        try:
            return decoder(message)
        except DecodeError:
            return UNDECODABLE

    return decoded


def raising(decoder: Decoder, most_bytes: int | None = None) -> Decoder:
    """Return a decoder that raises an `UnusableRequestError` where `marking` returns an `UnusableRequest`."""
    marked = marking(decoder, most_bytes)

    def decoded(message: bytes) -> Any:
        found = marked(message)
        if isinstance(found, UnusableRequest):
            raise UnusableRequestError(found)
        return found

    return decoded


def _too_large(most_bytes: int | None) -> UnusableRequest:
    return UnusableRequest("REQUEST_TOO_LARGE", f"expected a request of at most {most_bytes} bytes")

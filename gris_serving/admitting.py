"""What servers that speak another protocol than gRPC ask of what knows their callers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

Client_co = TypeVar("Client_co", covariant=True)


class Admitting(Protocol[Client_co]):
    """Knows who sends requests."""

    def name_of(self, authorization: Sequence[str], account: str | None = None) -> str:
        """Return the name of a sender; arguments and errors as for `admitted`, which alone counts requests."""
        ...

    def admitted(
        self, authorization: Sequence[str], account: str | None = None
    ) -> AbstractAsyncContextManager[Client_co]:
        """Admit a request while the block runs, and yield the client by which its sender asks.

        Args:
            authorization: The values of the header Authorization, as HTTP has it.
            account: Whose budget pays; None: the sender's own.

        Raises:
            HttpRefusalError: The sender is not known, has no account, or asks too much.
        """
        ...

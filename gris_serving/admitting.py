"""What servers that speak another protocol than gRPC ask of what knows their callers."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

Client_co = TypeVar("Client_co", covariant=True)


@dataclass(frozen=True)
class Sender:
    """How the sender of a request identifies itself.

    Attributes:
        authorization: The values of the header Authorization, as HTTP has it, or of gRPC's metadata of that name.
        certificate: The certificate (PEM) that TLS has verified on its connection; None: there is none.
        shown: What it shows besides, by which alone somebody at a web page is known: a header, or a cookie.
    """

    authorization: tuple[str, ...] = field(default=(), repr=False)
    certificate: bytes | None = None
    shown: tuple[str, ...] = field(default=(), repr=False)


class Admitting(Protocol[Client_co]):
    """Knows who sends requests."""

    def admitted(self, sender: Sender, account: str | None = None) -> AbstractAsyncContextManager[Client_co]:
        """Admit a request while the block runs, and yield the client by which its sender asks.

        Args:
            sender: How its sender identifies itself.
            account: Whose budget pays; None: the sender's own.

        Raises:
            HttpRefusalError: The sender is not known, has no account, or asks too much.
        """
        ...

    def require_known(self, sender: Sender) -> object:
        """Refuse a sender whose token or certificate has expired since it was admitted.

        Raises:
            HttpRefusalError: The sender is not known any more.
        """
        ...

"""The RPCs of a gateway, for whatever calls them: a connection, or a program in the gateway's own process."""

from __future__ import annotations

from typing import Any, Protocol


class GatewayCalls(Protocol):
    """The gateway's RPCs for a program in its own process, which needs no connection; called as those of a stub."""

    @property
    def Ask(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Answers a question, as an iterator of messages."""

    @property
    def Explain(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Says what a question would cost."""

    @property
    def GetRemaining(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Says what is left."""

    @property
    def GetGuarantee(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Says how private everything is that the account is shown."""

    @property
    def GetCatalog(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Says what may be asked."""

    @property
    def ListReleases(self) -> Any:  # noqa: N802 - the name of the RPC is the proto's
        """Lists what was paid for."""

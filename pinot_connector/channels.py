"""What all remote calls share: how long they may take, and the channel they go through."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

MAX_MESSAGE_BYTES = 16 * 2**20

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A service that was restarted should be found again within the deadline of one call.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)


@dataclass(frozen=True)
class Timeouts:
    """How long each part of a question may take, in seconds.

    `dp` bounds a call to dp_service and `engine` a call to the engine. `budget_attempt` bounds one call to
    budget_service, and `budget` that call with all its repeats. `reservation` is how long the worst case is held: it
    must outlast the engine.
    """

    dp: float = 30.0
    engine: float = 45.0
    budget_attempt: float = 2.0
    budget: float = 8.0
    reservation: int = 60


def open_channel(address: str) -> grpc.aio.Channel:
    """Opens a channel to a service on the trusted network; it belongs to the running event loop."""
    return grpc.aio.insecure_channel(address, options=_OPTIONS)

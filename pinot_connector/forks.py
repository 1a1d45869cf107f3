"""What a fork leaves of connections to services: nothing, so that clients of a gateway give theirs up before it.

gRPC's threads do not exist in the child of a fork, and whatever waits for them hangs or aborts the process. A client
that is idle closes its connection before the fork; its next call opens another, in the parent and in the child alike. A
connection that stays open, because a question is running or because its client cannot be opened again, makes every
client of the child refuse its calls.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

import grpc


class ForkedError(RuntimeError):
    """This process was forked while a connection was open."""

    def __init__(self) -> None:
        super().__init__(
            "this process was forked while a client had a connection open, which gRPC does not survive: create the "
            "client in each worker process, after the fork, and fork while no question is running"
        )


class Idling(Protocol):
    """A client that opens its connection again when it needs one."""

    def close_if_idle(self) -> None:
        """Closes the connection, unless a call is running; the caller holds `starting`."""
        ...


starting = threading.Lock()
"""Held while a call starts or ends, and during a fork."""
_idling: WeakSet[Idling] = WeakSet()
_channels: WeakSet[grpc.aio.Channel] = WeakSet()
"""Those in use: gRPC's threads run until nothing refers to a channel, closed or not."""
_THREADS = ("grpc", "event_engine", "lifeguard")
_THREADS_END_SECONDS = 2.0
_inherited: list[grpc.aio.Channel] = []
"""Those open at the fork that made this process. They are kept, for releasing one waits for gRPC's threads."""


def close_before_forks(client: Idling) -> None:
    """Has a client close its connection before each fork, if it is idle."""
    _idling.add(client)


def watched(channel: grpc.aio.Channel) -> grpc.aio.Channel:
    """Returns a channel that a fork of this process looks for."""
    _channels.add(channel)
    return channel


def require_usable() -> None:
    """Checks that this process can make calls.

    Raises:
        ForkedError: it was forked while a connection was open.
    """
    if _inherited:
        raise ForkedError


def _before() -> None:
    starting.acquire()
    was_open = bool(_channels) and not _inherited
    for client in list(_idling):
        client.close_if_idle()
    if _channels and not _inherited:
        # What a traceback or a cycle refers to still counts as in use.
        gc.collect()
    if was_open and not _channels:
        _wait_for_threads()


def _wait_for_threads() -> None:
    """Waits for gRPC to end its threads, after the last channel is gone: a child that is forked before that hangs."""
    ends = time.monotonic() + _THREADS_END_SECONDS
    while _has_threads() and time.monotonic() < ends:
        time.sleep(0.001)


def _has_threads() -> bool:
    """Returns whether a thread has a name of gRPC's, where the system tells."""
    for task in Path("/proc/self/task").glob("*/comm"):
        # It may have ended meanwhile.
        with suppress(OSError):
            if task.read_text().startswith(_THREADS):
                return True
    return False


def _after_in_child() -> None:
    _inherited.extend(_channels)
    # A fork by other code than Python's runs nothing before it.
    if starting.locked():
        starting.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=starting.release, after_in_child=_after_in_child)

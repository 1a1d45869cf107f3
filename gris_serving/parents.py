"""What ends a server: a signal, or the end of the program that started it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable


def stop_event() -> asyncio.Event:
    """Return what SIGTERM and SIGINT set from here on. SIGHUP does nothing: files are read again when they change."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return stop


def stop_with_parent(stop: Callable[[], object]) -> None:
    """Call `stop` when the parent has ended, for whatever reason: stdin is a pipe that breaks only then."""
    stdin = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(stdin, 1):
            loop.remove_reader(stdin)
            stop()

    loop.add_reader(stdin, readable)

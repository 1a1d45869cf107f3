"""How a server ends with the program that has started it, in whatever way that ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable


def stop_with_parent(stop: Callable[[], object]) -> None:
    """Call `stop` when the parent has ended, for whatever reason: stdin is a pipe that breaks only then."""
    stdin = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(stdin, 1):
            loop.remove_reader(stdin)
            stop()

    loop.add_reader(stdin, readable)

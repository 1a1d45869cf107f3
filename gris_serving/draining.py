"""How a server ends without losing a call.

`grpc.aio.Server.stop` cancels calls that have arrived and were not taken up yet, with CANCELLED, which clients do not
retry. So a server must have no connections left when it stops:

    1. it reports NOT_SERVING, and goes on serving; clients that watch its health leave at once
    2. it waits longer than a connection lives; clients whose name service has forgotten it do not come back
    3. it stops; calls that are still running get a grace period
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc

from gris_serving.health import Health

# gRPC lets a connection live up to a tenth longer or shorter than this.
PART_OF_A_CONNECTION = 0.5


def connection_options(
    drain_seconds: float, *, grace_seconds: float | None = None
) -> tuple[tuple[str, int], ...]:
    """Return the options of a server that is to be drained for `drain_seconds`; none if it is not drained.

    With `grace_seconds` a connection whose time is over is closed that much later, even if it still has calls.
    """
    if not drain_seconds:
        return ()
    age = ("grpc.max_connection_age_ms", max(1, int(1000 * PART_OF_A_CONNECTION * drain_seconds)))
    if grace_seconds is None:
        return (age,)
    return (age, ("grpc.max_connection_age_grace_ms", int(1000 * grace_seconds)))


async def drain_and_stop(
    server: grpc.aio.Server,
    health: Health,
    names: Sequence[str],
    *,
    drain_seconds: float,
    grace_seconds: float,
) -> None:
    """End a server that has reported `names` as serving, and that was made with `connection_options`."""
    health.withdraw(names)
    await asyncio.sleep(drain_seconds)
    health.end()
    await server.stop(grace_seconds)

"""Messages of PostgreSQL's protocol, as the gateway reads them."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gris_gateway.faces.postgres.wire import ConnectionOver, Wire


def test_a_client_that_sends_half_a_message_is_let_go() -> None:
    """Between messages a client may be silent for as long as it wants; within one it may not."""

    async def read_half() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        wire = Wire(ours)
        try:
            await wire.open(None, 1)
            theirs.sendall(b"Q\x00\x00\x00\x20SELECT")
            await asyncio.wait_for(wire.frame(100, 0.05), 30)
        finally:
            wire.close()
            theirs.close()

    with pytest.raises(ConnectionOver):
        asyncio.run(read_half())

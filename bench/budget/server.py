"""budget_service, put together from its own parts, with an empty echo on the same server and event loop.

python -m bench.budget.server --config budget.yaml --store sqlite:ledger.db [--uvloop]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty

from budget_service.hosting import new_server, serving, spare_the_collector
from budget_service.settings import LiveSettings, load_settings
from budget_service.stores.opening import open_store

ECHO = "/gris.bench.Echo/Echo"


class Echo(grpc.GenericRpcHandler):
    """Answers an empty message with an empty message."""

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        """Return the handler of the one method."""
        if details.method != ECHO:
            return None
        return grpc.unary_unary_rpc_method_handler(_echo, Empty.FromString, Empty.SerializeToString)


async def _echo(request: Empty, _: Any) -> Empty:
    return request


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = LiveSettings(load_settings(options.config))
    store = await open_store(options.store, allow_volatile=False)
    spare_the_collector()
    server = new_server()
    server.add_generic_rpc_handlers((Echo(),))
    async with serving(store, settings, "127.0.0.1:0", server=server) as address:
        sys.stdout.write(json.dumps({"address": address}) + "\n")
        sys.stdout.flush()
        await stop.wait()
    await store.close()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser("python -m bench.budget.server", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    if options.uvloop:
        import uvloop  # noqa: PLC0415 - only for the comparison

        uvloop.run(_run(options))
    else:
        asyncio.run(_run(options))


if __name__ == "__main__":
    main()

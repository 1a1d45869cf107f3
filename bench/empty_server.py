"""A server whose one method does nothing, behind the interceptors of the services: what a call costs by itself.

    python -m bench.empty_server

It says its address in one line of JSON, and serves until SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty

from gris_serving.garbage_collection import spared_collector
from gris_serving.instrumentation import NOTHING
from gris_serving.unfinished_requests import UnfinishedRequests

SERVICE = "gris.bench.Nothing"
METHOD = f"/{SERVICE}/Nothing"


async def _nothing(request: Empty, _: Any) -> Empty:
    return request


async def _serve() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    interceptor = UnfinishedRequests("gris.bench", NOTHING, most=1024, seconds=10.0)
    server = grpc.aio.server(interceptors=(interceptor,))
    handler = grpc.unary_unary_rpc_method_handler(_nothing, Empty.FromString, Empty.SerializeToString)
    NOTHING.before(server).add_registered_method_handlers(SERVICE, {"Nothing": handler})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sys.stdout.write(json.dumps({"address": f"127.0.0.1:{port}"}) + "\n")
    sys.stdout.flush()
    with spared_collector():
        await stop.wait()
    await server.stop(None)


if __name__ == "__main__":
    asyncio.run(_serve())

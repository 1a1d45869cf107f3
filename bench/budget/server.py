"""budget_service, put together from its own parts, with an empty echo on the same server and event loop.

Both are counted as a service with `--metrics-listen` counts.

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

from budget_service.__main__ import ledger_metrics
from budget_service.hosting import new_server, serving, spare_the_collector
from budget_service.settings import LiveSettings, load_settings
from budget_service.stores.opening import open_store
from serving.options import Operating
from serving.watching import Watched, watched

ECHO_SERVICE = "gris.bench.Echo"
ECHO = f"/{ECHO_SERVICE}/Echo"


async def _echo(request: Empty, _: Any) -> Empty:
    return request


def _add_echo(server: Any) -> None:
    handler = grpc.unary_unary_rpc_method_handler(_echo, Empty.FromString, Empty.SerializeToString)
    server.add_registered_method_handlers(ECHO_SERVICE, {"Echo": handler})


async def _run(options: argparse.Namespace, seen: Watched) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = LiveSettings(load_settings(options.config))
    metrics = ledger_metrics(seen.registry)
    if metrics is None:
        raise RuntimeError("nothing is counted")
    store = await open_store(options.store, allow_volatile=False, committed=metrics.committed)
    spare_the_collector()
    server = new_server()
    _add_echo(seen.sight.before(server))
    serving_ = serving(
        store, settings, "127.0.0.1:0", server=server, sight=seen.sight, effects=metrics.effects()
    )
    async with serving_ as address:
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

        run = uvloop.run
    else:
        run = asyncio.run
    with watched("budget_service", Operating(metrics_listen="127.0.0.1:0")) as seen:
        run(_run(options, seen))


if __name__ == "__main__":
    main()

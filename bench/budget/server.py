"""budget_service, put together from its own parts, with two yardsticks on the same server and event loop.

One is an empty echo, the other a call that does nothing but write one row to the disk. All are counted as a service
with `--metrics-listen` counts.

python -m bench.budget.server --config budget.yaml --store sqlite:ledger.db [--uvloop]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty

from budget_service.server.hosting import new_server, serving
from budget_service.server.ledger import Ledger
from budget_service.server.process import ledger_metrics
from budget_service.server.settings import LiveSettings, load_settings
from budget_service.stores.opening import open_store
from budget_service.stores.sqlite.file import connect
from gris_serving.garbage_collection import spared_collector
from gris_serving.options import OperatingOptions
from gris_serving.telemetry import Telemetry, start_telemetry

YARDSTICKS = "gris.bench.Yardsticks"
ECHO, ONE_ROW = f"/{YARDSTICKS}/Echo", f"/{YARDSTICKS}/OneRow"

# As long as a line of the journal.
ROW = "INSERT INTO yardstick VALUES (zeroblob(300))"


async def _echo(request: Empty, _: Any) -> Empty:
    return request


@contextmanager
def _rows(path: Path) -> Iterator[Any]:
    """Give the method that writes one row, as durably as the ledger, and as it does apart from the event loop."""
    with closing(connect(path)) as connection, ThreadPoolExecutor(max_workers=1) as writer:
        connection.execute("CREATE TABLE IF NOT EXISTS yardstick (content BLOB NOT NULL)")

        async def one_row(request: Empty, _: Any) -> Empty:
            await asyncio.get_running_loop().run_in_executor(writer, connection.execute, ROW)
            return request

        yield one_row


def _add_yardsticks(server: Any, one_row: Any) -> None:
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(method, Empty.FromString, Empty.SerializeToString)
        for name, method in (("Echo", _echo), ("OneRow", one_row))
    }
    server.add_registered_method_handlers(YARDSTICKS, handlers)


async def _run(options: argparse.Namespace, seen: Telemetry) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = LiveSettings(load_settings(options.config))
    metrics = ledger_metrics(seen.registry)
    if metrics is None:
        raise RuntimeError("nothing is counted")
    store = await open_store(options.store, allow_volatile=False, committed=metrics.committed)
    server = new_server()
    with _rows(options.config.with_name("yardstick.db")) as one_row:
        _add_yardsticks(seen.instrumentation.before(server), one_row)
        serving_ = serving(
            Ledger(store),
            settings,
            "127.0.0.1:0",
            server=server,
            instrumentation=seen.instrumentation,
            recorders=metrics.recorders(),
        )
        async with serving_ as address:
            sys.stdout.write(json.dumps({"address": address}) + "\n")
            sys.stdout.flush()
            with spared_collector():
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
    with start_telemetry("budget_service", OperatingOptions(metrics_listen="127.0.0.1:0")) as seen:
        run(_run(options, seen))


if __name__ == "__main__":
    main()

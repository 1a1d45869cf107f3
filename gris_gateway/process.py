"""The process of the gateway.

When it can serve it prints one line of JSON, `{"service": "gateway", "address": "127.0.0.1:PORT"}`, with the
`metrics_address`, the `mcp_address` and the `page_link` if there are any; its log goes to standard error. It exits with
2 if its options or configuration cannot be used.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from pathlib import Path

from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.hosting import Gateway
from gris_serving import logs
from gris_serving.documents import read_document
from gris_serving.garbage_collection import spared_collector
from gris_serving.options import OperatingError, add_operating_options, operating_of
from gris_serving.parents import stop_event, stop_with_parent
from gris_serving.reloading_files import SecurityError
from gris_serving.telemetry import Telemetry, start_telemetry
from pinot_connector.errors import GrisError

EXIT_MISCONFIGURED = 2


def main(arguments: list[str] | None = None) -> int:
    """Run the gateway until it receives SIGTERM or SIGINT, and return the exit code."""
    options = _parser().parse_args(arguments)
    operating = operating_of(options)
    logs.configure(operating.log_format, operating.log_level)
    # It would log each request to Pinot, several for a question; the metrics count them.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        gateway = Gateway(read_document(options.config, GatewayConfiguration))
        try:
            if not options.validate:
                # The connector's spans are what a question is made of.
                with start_telemetry(
                    "gateway", operating, trusted=False, of_libraries=True
                ) as process_telemetry:
                    running = _run(
                        gateway,
                        process_telemetry,
                        operating.drain_seconds,
                        with_stdin=options.stop_with_stdin,
                    )
                    asyncio.run(running)
        finally:
            gateway.close()
    except (SecurityError, OperatingError, GrisError) as error:
        sys.stderr.write(f"gateway: {error}\n")
        return EXIT_MISCONFIGURED
    return 0


async def _run(
    gateway: Gateway, process_telemetry: Telemetry, drain_seconds: float, *, with_stdin: bool
) -> None:
    stop = stop_event()
    if with_stdin:
        stop_with_parent(stop.set)
    async with gateway.serving(process_telemetry, drain_seconds) as address:
        ready = {"service": "gateway", "address": address, **process_telemetry.addresses}
        ready |= {f"{name}_address": address for name, address in gateway.face_addresses.items()}
        if gateway.page_link is not None:
            ready["page_link"] = gateway.page_link
        # Standard output has this line and nothing else, for the program that started the process.
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        with spared_collector():
            await stop.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m gris_gateway",
        description="Serve private questions to callers that must not see true counts.",
    )
    parser.add_argument("--config", type=Path, required=True, help="the configuration, gateway.yaml")
    parser.add_argument("--validate", action="store_true", help="only check the configuration and its files")
    parser.add_argument("--stop-with-stdin", action="store_true", help=argparse.SUPPRESS)
    add_operating_options(parser)
    return parser

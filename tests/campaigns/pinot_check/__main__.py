"""Tries every row on the cluster of PINOT_BROKER and PINOT_CONTROLLER; exit code 1 if one does not hold.

Exit code 2: nothing could be tried.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import httpx

from gris_cli.data.engines import PinotAccess
from tests.campaigns.pinot_check.cluster import CheckedCluster
from tests.campaigns.pinot_check.rows import Outcome, Row, tried
from tests.campaigns.pinot_check.table import ROWS


def main(arguments: Sequence[str] | None = None, rows: Sequence[Row] = ROWS) -> int:
    """Run the command line."""
    chosen = _parser().parse_args(arguments)
    access = PinotAccess(*(_file(name) for name in ("AUTHORIZATION", "CA", "CERTIFICATE")))
    # The variable that `gris` reads, for the option that the gateway has too.
    asks_servers = os.environ.get("PINOT_SERVER_ADMIN", "").lower() in ("1", "true")
    options = {"server_admin": True} if asks_servers else {}
    failed = 0
    streams = {"kafka": chosen.kafka, "own_table": chosen.table}
    with CheckedCluster(
        chosen.controller, chosen.broker, access, chosen.tenant, options, **streams
    ) as cluster:
        try:
            _describe(cluster)
        except httpx.HTTPError as error:
            print(f"the controller {chosen.controller} cannot be asked: {error}", file=sys.stderr)
            return 2
        for result in tried(rows, cluster):
            failed += result.outcome is Outcome.DID_NOT
            remark = f" ({result.remark})" if result.remark else ""
            print(f"{result.outcome.value:9}  {result.row.says}{remark}", flush=True)
    print(f"{failed} of {len(rows)} rows did not hold" if failed else "what could be tried held")
    return 1 if failed else 0


def _describe(cluster: CheckedCluster) -> None:
    version = cluster.get("/version")["pinot-controller"]
    servers = len(cluster.servers)
    print(
        f"Pinot {version}, {servers} servers in {cluster.tenant}; tables have one replica unless a row says two"
    )


def _file(name: str) -> Path | None:
    value = os.environ.get(f"PINOT_{name}_FILE")
    return Path(value) if value else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.pinot_check", description="What holds on a running Pinot, as a table."
    )
    for role in ("broker", "controller"):
        default = os.environ.get(f"PINOT_{role.upper()}") or None
        parser.add_argument(f"--{role}", metavar="URL", default=default, required=default is None)
    parser.add_argument("--tenant", default=os.environ.get("PINOT_TENANT") or "DefaultTenant")
    parser.add_argument(
        "--kafka",
        metavar="HOST:PORT",
        default=os.environ.get("PINOT_KAFKA") or None,
        help="a Kafka that this machine and Pinot's servers reach, for tables that take in a stream",
    )
    parser.add_argument(
        "--table",
        default=os.environ.get("PINOT_TABLE") or None,
        help="a table of yours that takes in a stream: what Pinot tells of it is read, and no row",
    )
    return parser


if __name__ == "__main__":
    # On SIGTERM too, the tables are removed first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

"""Tries every row on the cluster of PINOT_BROKER and PINOT_CONTROLLER, or on one that is started for it.

Exit code 1: a row does not hold. Exit code 2: nothing could be tried.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from deploy.pinot.cluster import PinotCluster, Ports
from gris_cli.data.engines import PinotAccess
from tests.campaigns.pinot_check.cluster import CheckedCluster
from tests.campaigns.pinot_check.rows import Outcome, Row, tried
from tests.campaigns.pinot_check.table import ROWS


def main(arguments: Sequence[str] | None = None, rows: Sequence[Row] = ROWS) -> int:
    """Run the command line."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if (chosen.broker is None) is not (chosen.controller is None):
        parser.error("expected both --broker and --controller, or none of them")
    wanted = [each for each in rows if re.search(chosen.only, each.says)]
    failed = 0
    with _cluster(chosen) as cluster:
        try:
            _describe(cluster)
        except httpx.HTTPError as error:
            print(f"the controller {chosen.controller} cannot be asked: {error}", file=sys.stderr)
            return 2
        for result in tried(wanted, cluster):
            failed += result.outcome is Outcome.DID_NOT
            remark = f" ({result.remark})" if result.remark else ""
            print(f"{result.outcome.value:9}  {result.row.says}{remark}", flush=True)
    print(f"{failed} of {len(wanted)} rows did not hold" if failed else "what could be tried held")
    return 1 if failed else 0


@contextmanager
def _cluster(chosen: argparse.Namespace) -> Iterator[CheckedCluster]:
    if chosen.broker is None:
        with (
            tempfile.TemporaryDirectory() as folder,
            PinotCluster(2, directory=Path(folder), ports=Ports.free(2)) as own,
            CheckedCluster(own.controller_url, own.broker_url) as cluster,
        ):
            yield cluster
        return
    access = PinotAccess(*(_file(name) for name in ("AUTHORIZATION", "CA", "CERTIFICATE")))
    # The variable that `gris` reads, for the option that the gateway has too.
    asks_servers = os.environ.get("PINOT_SERVER_ADMIN", "").lower() in ("1", "true")
    options = {"server_admin": True} if asks_servers else {}
    streams = {"kafka": chosen.kafka, "own_table": chosen.table}
    with CheckedCluster(
        chosen.controller, chosen.broker, access, chosen.tenant, options, **streams
    ) as cluster:
        yield cluster


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
        prog="python -m tests.campaigns pinot_check", description="What holds on a running Pinot, as a table."
    )
    for role in ("broker", "controller"):
        default = os.environ.get(f"PINOT_{role.upper()}") or None
        parser.add_argument(f"--{role}", metavar="URL", default=default)
    parser.add_argument("--tenant", default=os.environ.get("PINOT_TENANT") or "DefaultTenant")
    parser.add_argument("--only", metavar="PATTERN", default="", help="rows whose text it is found in")
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

"""The demo on a real Apache Pinot that is started for it, with two servers, and stopped in the end.

    python -m examples.demo_on_pinot        # what `make demo ENGINE=pinot` runs; more options go to `gris demo`

Needs Java 17 and, the first time, Maven.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.pinot.cluster import ClusterError, PinotCluster, Ports
from examples.load import TABLES, load

SERVERS = 2


def main(options: Sequence[str]) -> int:
    """Start, load, run the demo, stop; return the demo's exit code."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _demo(Path(folder), options)
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 5


def _demo(folder: Path, options: Sequence[str]) -> int:
    print("starting an Apache Pinot; the first time, its jars are fetched (about 200 MB)", file=sys.stderr)
    with PinotCluster(SERVERS, directory=folder, ports=Ports.free(SERVERS)) as cluster:
        for table, parquet in TABLES.items():
            load(parquet, table, controller=cluster.controller_url, broker=cluster.broker_url)
        addresses = {"PINOT_CONTROLLER": cluster.controller_url, "PINOT_BROKER": cluster.broker_url}
        command = [sys.executable, "-m", "gris_cli", "demo", "--engine", "pinot", *options]
        return subprocess.run(command, env=os.environ | addresses, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Mutated messages of PostgreSQL and requests of HTTP, seeded, at a real gateway.

A failure names its conversation, which `--port postgres --seed 1 --only 1234` sends alone. The exit code is 1 if the
gateway ends, hangs, grows, fails, charges what is no question, or logs an error or a literal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.wires.campaign import PORTS, run_campaign


def main() -> int:
    """Run, and print what came of it."""
    parser = argparse.ArgumentParser("python -m tests.campaigns wires", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="how many, to each port")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", choices=PORTS, help="the only port")
    parser.add_argument("--only", type=int, help="the number of the only conversation")
    options = parser.parse_args()
    faults = 0
    for port in PORTS if options.port is None else (options.port,):
        with tempfile.TemporaryDirectory() as folder:
            report = run_campaign(Path(folder), port, options.messages, options.seed, options.only)
        print(*report.lines(), sep="\n", flush=True)
        faults += len(report.faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

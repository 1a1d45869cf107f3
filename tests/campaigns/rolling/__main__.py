"""Restarts two replicas of each service in turn under load and prints what was lost; the exit code is 1 if it was.

python -m tests.campaigns rolling --rounds 10 --drain-seconds 2
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.campaigns.rolling.replicas import running_replicas
from tests.campaigns.rolling.restarting import restart_under_load


def main() -> int:
    """Run it and print a table."""
    parser = argparse.ArgumentParser("python -m tests.campaigns rolling", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="how often each of the four is restarted")
    parser.add_argument("--drain-seconds", type=float, default=2.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="gris-rolling-") as folder,
        running_replicas(Path(folder), options.drain_seconds) as replicas,
    ):
        totals = asyncio.run(restart_under_load(replicas, options.rounds))
        if totals.lost:
            sys.stderr.write((Path(folder) / "log").read_text())
    print(f"{'restarts':34}{len(totals.exit_codes):>10,}")
    for kind, count in sorted(totals.answered.items()):
        print(f"{'answered: ' + kind:34}{count:>10,}")
    print(f"{'answered':34}{totals.answered.total():>10,}")
    for kind, count in sorted(totals.lost.items()):
        print(f"{'lost: ' + kind:34}{count:>10,}")
    print(f"{'lost':34}{totals.lost.total():>10,}")
    return 1 if totals.lost or any(totals.exit_codes) else 0


if __name__ == "__main__":
    sys.exit(main())

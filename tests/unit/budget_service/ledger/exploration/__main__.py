"""Explores small worlds, to their ends or a depth: states, edges, seconds, or a shortest history that breaks a promise.

python -m tests.campaigns exploration --world blocks
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.unit.budget_service.ledger.exploration.explorer import BrokenError, explored
from tests.unit.budget_service.ledger.exploration.leases import LEASED
from tests.unit.budget_service.ledger.exploration.worlds import WORLDS

EXPLORED = (*WORLDS, LEASED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore; the exit code is 1 if a promise is broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--world", choices=[each.name for each in EXPLORED], help="only this one")
    options.add_argument("--depth", type=int, help="histories of so many acts at most")
    chosen = options.parse_args(arguments)
    for world in EXPLORED:
        if chosen.world in (None, world.name):
            try:
                for each in explored(world, chosen.depth):
                    print(f"{world.name}: {each}", flush=True)
            except BrokenError as error:
                print(f"{world.name}: {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

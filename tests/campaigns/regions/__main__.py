"""Simulates histories by seed; a failing seed is printed, and shows the same again: `--seed N`.

python -m tests.campaigns regions --seeds 10000
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import repeat

from tests.campaigns.regions.injected_bugs import BUGS
from tests.campaigns.regions.loop import run
from tests.campaigns.regions.world import World


def simulated(seed: int, seconds: float, bug: str = "") -> tuple[int, Counter[str], str]:
    """Run one history, with a bug put in if one is named; return its faults, and what was broken."""
    logging.disable(logging.CRITICAL)
    if bug:
        inject_bug, skew_beyond = BUGS[bug]
        world = World(seed, seconds, inject_bug, skew_beyond)
    else:
        world = World(seed, seconds)
    try:
        run(world.history())
    except AssertionError as error:
        return seed, world.oracle.faults, str(error) or "an assertion"
    return seed, world.oracle.faults, ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate; the exit code is 1 if a seed has failed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=1000, help="how many")
    options.add_argument("--seed", type=int, help="only this one")
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--seconds", type=float, default=240.0, help="of each history, in its own time")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument(
        "--bug", choices=BUGS, default="", help="put this bug in, to see which seeds find it"
    )
    chosen = options.parse_args(arguments)
    seeds = [chosen.seed] if chosen.seed is not None else range(chosen.first, chosen.first + chosen.seeds)
    totals: Counter[str] = Counter()
    broken = []
    with ExitStack() as stack:
        work = simulated, seeds, repeat(chosen.seconds), repeat(chosen.bug)
        # A single history needs no other process, and can be looked at with a debugger.
        found = map(*work) if chosen.processes == 1 else _in_processes(stack, chosen.processes)(*work)
        for seed, faults, problem in found:
            totals += faults
            totals["histories"] += 1
            if problem:
                broken.append(seed)
                again = f"python -m tests.campaigns regions --seed {seed}"
                again += f" --bug {chosen.bug}" if chosen.bug else ""
                print(f"seed {seed}: {problem}; again: {again}", flush=True)
    for name, count in sorted(totals.items()):
        print(f"{count:>12}  {name}")
    print(f"{len(broken)} of {totals['histories']} histories broke the promise")
    return 1 if broken else 0


def _in_processes(stack: ExitStack, count: int) -> Callable[..., Iterator[tuple[int, Counter[str], str]]]:
    pool = stack.enter_context(ProcessPoolExecutor(count))
    return partial(pool.map, chunksize=4)


if __name__ == "__main__":
    sys.exit(main())

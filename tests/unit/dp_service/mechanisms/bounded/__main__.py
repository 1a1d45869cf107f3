"""The worst that is found of every variant beside its promise: the campaign `bounded`.

A promise is kept if the excess of delta is at most 0 and the ratio of rho at most 1. An excess of -inf: there are too
many outcomes for hockey-sticks, and only Renyi divergences were computed.
"""

import argparse
import sys
import time

from .laws import ROUNDING_ERROR
from .promises import LONG


def main() -> int:
    """Print one line for each promise; return 1 if one is broken."""
    parser = argparse.ArgumentParser("python -m tests.campaigns bounded", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="every second, third, .. variant alone")
    every: int = parser.parse_args().every
    broken = False
    print(f"{'excess of delta':>16} {'rho / promised':>15} {'seconds':>8}  variant")
    for promise in LONG[::every]:
        start = time.perf_counter()
        worst = promise.worst()
        seconds = time.perf_counter() - start
        print(f"{worst.excess:16.3e} {worst.relative_rho:15.6f} {seconds:8.1f}  {promise}", flush=True)
        broken |= worst.excess > ROUNDING_ERROR or worst.relative_rho > 1 + ROUNDING_ERROR
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())

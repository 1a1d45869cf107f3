"""How many files a change touches: a new kind of answer should cost at most 8, a view 3, an option 2.

    python -m tests.cost_of_change main..my-branch

Generated code, tests, examples and pages are not counted: they follow what the product says.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("tests/", "docs/", "examples/", "bench/", "protos/generated/")


def counted(paths: Iterable[str]) -> Iterator[str]:
    """Yield those of some paths that cost: product code, protos and what deploys them."""
    yield from (path for path in paths if not path.startswith(LEFT_OUT) and not path.endswith(".md"))


def main() -> int:
    """Print what a range of commits changes; return 2 without one."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    command = ["git", "diff", "--numstat", sys.argv[1], "--"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    numbers = {path: (added, removed) for added, removed, path in (line.split("\t") for line in lines)}
    found = list(counted(numbers))
    for path in found:
        print(f"{numbers[path][0]:>6} {numbers[path][1]:>6}  {path}")
    print(f"{len(found)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())

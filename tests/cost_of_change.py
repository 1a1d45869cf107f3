"""How many files a change touches: a new kind of answer should cost at most 8, a view 3, an option 2.

    python -m tests.cost_of_change main..my-branch --limit 3

Generated code, tests, examples and pages are not counted: they follow what the product says. Exit code 1 if there are
more files than the limit, which is that of a kind by default.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = ("tests/", "docs/", "examples/", "bench/", "protos/generated/")
FILES_OF_A_KIND = 8


def counted(paths: Iterable[str]) -> Iterator[str]:
    """Yield those of some paths that cost: product code, protos and what deploys them."""
    yield from (path for path in paths if not path.startswith(LEFT_OUT) and not path.endswith(".md"))


def main(arguments: Sequence[str] | None = None, *, root: Path = ROOT) -> int:
    """Print what a range of commits changes; return 1 if that is more than the limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commits", metavar="A..B", help="the range of commits")
    parser.add_argument("--limit", type=int, default=FILES_OF_A_KIND, help="the most files")
    options = parser.parse_args(arguments)
    command = ["git", "diff", "--numstat", options.commits, "--"]
    lines = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()
    numbers = {path: (added, removed) for added, removed, path in (line.split("\t") for line in lines)}
    found = list(counted(numbers))
    for path in found:
        print(f"{numbers[path][0]:>6} {numbers[path][1]:>6}  {path}")
    print(f"{len(found)} files, of at most {options.limit}")
    return 0 if len(found) <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())

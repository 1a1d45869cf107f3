"""Run one benchmark: python -m bench NAME [options]; --help behind the name tells its options."""

from __future__ import annotations

import argparse
import runpy
import sys

MODULES = {
    "answers": "answers",
    "bounded_served": "bounded_served",
    "budget": "budget.__main__",
    "readings": "readings",
    "cpu": "question_cpu",
    "faces": "faces",
    "repeats": "repeats",
    "noise": "noise",
}


def main() -> None:
    """Run the module of a name as a program with all further arguments."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("name", choices=MODULES)
    module = f"bench.{MODULES[parser.parse_args(sys.argv[1:2]).name]}"
    del sys.argv[1]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

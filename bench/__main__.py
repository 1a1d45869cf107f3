"""Run one benchmark: python -m bench NAME [options]; without a name, the list; --help behind a name: its options."""

from __future__ import annotations

import runpy
import sys
from typing import NamedTuple


class Bench(NamedTuple):
    """A module, what it measures, and the options of its smallest form, which only shows that it runs."""

    module: str
    says: str
    smallest: str


BENCHES = {
    "answers": Bench(
        "bench.answers",
        "useful answers a month at the default promise",
        "--only Cofacts --asking dashboard --most 5",
    ),
    "bounded_served": Bench(
        "bench.bounded_served",
        "how exact bounded counts and sums are beside goals, and the CPU of their queries",
        "--runs 1 --only cpu",
    ),
    "budget": Bench(
        "bench.budget.__main__",
        "charges of the ledger beside an empty call and one durable row",
        "--store sqlite --accounts 10 --callers 1 --seconds .1 --rounds 1 --crowd 4",
    ),
    "entries": Bench(
        "bench.budget.entries",
        "a budget.yaml with many entries beside one with few",
        "--entries 30 60 --calls 5",
    ),
    "readings": Bench(
        "bench.readings",
        "charges beside verifying and listing all of a ledger",
        "--entries 1000",
    ),
    "cpu": Bench(
        "bench.question_cpu",
        "the CPU of a question beside its engine, in each process",
        "--questions 5",
    ),
    "faces": Bench(
        "bench.faces",
        "a new question by Pinot's and PostgreSQL's protocols beside the gateway's own Ask",
        "--questions 5",
    ),
    "repeats": Bench(
        "bench.repeats",
        "a repeated question at a gateway beside an empty call",
        "--calls 10",
    ),
    "noise": Bench(
        "bench.noise",
        "time and memory of exact noise, beside numpy, OpenDP and PyDP",
        "--rounds 1",
    ),
}


def main() -> None:
    """Run the module of a name as a program with all further arguments."""
    name = sys.argv[1] if sys.argv[1:] else ""
    if name not in BENCHES:
        print(__doc__, *(f"  {name:16}{each.says}" for name, each in BENCHES.items()), sep="\n")
        sys.exit(name not in ("", "-h", "--help"))
    runpy.run_module(BENCHES[sys.argv.pop(1)].module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

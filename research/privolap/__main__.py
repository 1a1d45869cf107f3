"""Useful answers of four scripts at equal user-level promises, and thirteen traps, as two Markdown tables.

    python -m research.privolap [--runs 20] [--epsilon 3] [--systems Gris OpenDP] [--system module:Class]

Every system is set up as its documentation has it and, `tuned` or `planned`, as a specialist would. An answer is
useful if 95 % of the names are right, where names are asked for, and its numbers are off by at most 10 % on average,
beside the answer of all rows. A system whose library is not installed is left out, by name; `make -C research
benchmark` installs all. Fast systems are measured; with `--all` those that take hours are too. Scores and verdicts
that are kept are shown without any library, by `--runs 0`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from research.privolap.kept import KeptError
from research.privolap.options import between, picture, system_of, whole
from research.privolap.picture import draw
from research.privolap.questions import AdapterError, System
from research.privolap.results import Results, Setting, mean_and_error
from research.privolap.scripts import QUESTIONS, SCRIPTS
from research.privolap.systems import dpsqlplus, smartnoise, tumult
from research.privolap.systems.dpsqlplus import DPSQLPlus
from research.privolap.systems.gris import Gris
from research.privolap.systems.opendp import OpenDP
from research.privolap.systems.pipelinedp import PipelineDP
from research.privolap.systems.smartnoise import SmartNoise
from research.privolap.systems.suppressing import Suppressing
from research.privolap.systems.tumult import Tumult
from research.privolap.verdicts import Verdicts

RUNS, LONG_RUNS = 4, 20
"""How many runs fit an hour of a laptop with the fast systems and all traps, and how many the documentation has."""

Needed = tuple[System, str | Path]

SYSTEMS: tuple[Needed, ...] = (
    (Gris(), "research.lab"),
    (Gris(planned=True), "scipy"),
    (OpenDP(), "opendp"),
    (OpenDP(tuned=True), "opendp"),
    (Suppressing(), "duckdb"),
)
"""What is fast, and the package, or the interpreter that has it, that it needs."""

SLOW: tuple[Needed, ...] = (
    (PipelineDP(), "pipeline_dp"),
    (PipelineDP(tuned=True), "pipeline_dp"),
    (SmartNoise(), smartnoise.PYTHON),
    (SmartNoise(tuned=True), smartnoise.PYTHON),
    (DPSQLPlus(), dpsqlplus.PYTHON),
    (DPSQLPlus(tuned=True), dpsqlplus.PYTHON),
    (Tumult(), tumult.PYTHON),
    (Tumult(tuned=True), tumult.PYTHON),
)
"""What takes hours, and is measured with `--all`, or where it is named."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        results = Results(options.kept)
    except KeptError as error:
        parser.error(f"argument --kept: {error}")
    try:
        verdicts = Verdicts(options.kept_traps)
    except KeptError as error:
        parser.error(f"argument --kept-traps: {error}")
    chosen = _chosen(options)
    systems = list(_installed(chosen)) if options.runs else [system for system, _ in chosen]
    try:
        _show(results, verdicts, systems, options)
    except AdapterError as error:
        parser.exit(1, f"{parser.prog}: error: {error}\n")


def _show(
    results: Results, verdicts: Verdicts, systems: Sequence[System], options: argparse.Namespace
) -> None:
    setting = Setting(options.epsilon, options.delta, tuple(options.scripts), options.most)
    if options.only != "traps":
        results.measure(systems, setting, options.runs)
        print(
            f"Useful answers of {options.most}, at ({options.epsilon:g}, {options.delta:g}) for a script of "
            f"{QUESTIONS}; means of runs with standard errors\n"
        )
        print_scores(results, systems, setting)
        if options.picture:
            draw(results, systems, setting, options.picture)
    if options.only != "scores":
        if options.runs:
            verdicts.measure(systems)
        print("", *verdicts.table(systems), sep="\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="research.privolap", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=whole(0), default=RUNS, help=f"{RUNS} unless said, {LONG_RUNS} for long"
    )
    parser.add_argument("--epsilon", type=between(0, math.inf), default=10.0)
    parser.add_argument("--delta", type=between(0, 1), default=1e-6)
    parser.add_argument("--systems", nargs="+", choices=[each.name for each, _ in (*SYSTEMS, *SLOW)])
    parser.add_argument("--all", action="store_true", help="measure slow systems too")
    parser.add_argument(
        "--system",
        type=system_of,
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="measure a system of your own as well; of several, each has an option",
    )
    parser.add_argument("--scripts", nargs="+", choices=SCRIPTS, default=[*SCRIPTS])
    parser.add_argument(
        "--most",
        type=whole(1, QUESTIONS),
        default=QUESTIONS,
        help="how many questions of each script are asked",
    )
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("build/privolap.jsonl"),
        help="where scores are kept; what is there is not measured again",
    )
    parser.add_argument(
        "--kept-traps",
        type=Path,
        default=Path("build/privolap-traps.jsonl"),
        help="where verdicts of traps are kept; what is there is not tried again",
    )
    parser.add_argument("--picture", type=picture, help="where scores are drawn")
    parser.add_argument("--only", choices=("scores", "traps"))
    return parser


def _chosen(options: argparse.Namespace) -> list[Needed]:
    own: list[Needed] = [(system, "duckdb") for system in options.system]
    if options.systems:
        return [*(each for each in (*SYSTEMS, *SLOW) if each[0].name in options.systems), *own]
    return [*SYSTEMS, *(SLOW if options.all else ()), *own]


def _installed(chosen: Sequence[tuple[System, str | Path]]) -> Iterator[System]:
    for system, needed in chosen:
        if needed.exists() if isinstance(needed, Path) else find_spec(needed) is not None:
            yield system
        else:
            print(f"{system.name} is left out, for {needed} is not installed", file=sys.stderr)


def print_scores(results: Results, systems: Sequence[System], setting: Setting) -> None:
    """Print how many answers of each script are useful, and of how many runs the means are."""
    print(f"| | {' | '.join(setting.scripts)} | runs |\n|---|{'---|' * len(setting.scripts)}---|")
    for system in systems:
        found = [results.of(system.name, script, setting) for script in setting.scripts]
        runs = [len(each) for each in found]
        of_each = runs[:1] if len(set(runs)) == 1 else runs
        print(f"| {system.name} | {' | '.join(map(_cell, found))} | {', '.join(map(str, of_each))} |")


def _cell(found: Sequence[int]) -> str:
    mean, error = mean_and_error(found)
    if math.isnan(mean):
        return ""
    return f"{mean:g}" if math.isnan(error) else f"{mean:.1f} ± {error:.1f}"


if __name__ == "__main__":
    main()

"""The figures and tables of the papers, by the mechanisms and methods of Gris: printed, and drawn into a folder.

    python -m research.figures [--only "S1 figure 3" ..] [--trials 100] [--out build/figures]

S1 is Rogers et al. 2020, S2 Durfee and Rogers 2019, S3 Durfee and Rogers 2021, S4 Swanberg et al. 2023. Runs have
seeds: the same command prints the same numbers. What is simulated looks at true counts, and is for their owner.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np

from dp_service.accounting.bounds import Portion
from dp_service.accounting.composition import guarantee, guarantee_of_the_theorem
from dp_service.mechanisms import Currency, Histogram, UnkLap
from dp_service.noise import KeyedNoise, KeyedStream
from dp_service.partitions import Method
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.sheets import Column, Sheet, plainly, upwards
from research.accounting.adaptive import upper_tables
from research.accounting.checked_steps import budget_epsilon
from research.accounting.composed import compose_sheet, composed, ratios
from research.accounting.deployments import Loss, deployments_sheet
from research.lab.domain_comparison import compared, grid_of, iterations_sheet, methods_sheet
from research.lab.domain_plots import draw_compared
from research.lab.expectations import curve_sheet, found_sheet
from research.lab.histograms import histogram_of_members
from research.lab.mechanisms import catalogue
from research.lab.mechanisms.standard_deviations import standard_deviations
from research.lab.plots import draw_composition, draw_curve, draw_found
from research.lab.simulation import Draws, curve, found, gumbel_mechanisms
from research.lab.synthetic_data import synthetic

EXAMPLES = Path(__file__).parents[1] / "examples"
FEEDBACK = EXAMPLES / "cofacts" / "feedback.parquet"
WORDS = EXAMPLES / "ubuntu_irc" / "words.parquet"
SEED = 2020
DELTA, PAPERS_DELTA, SLACK = Fraction("1e-11"), Fraction("1e-10"), Fraction("1e-9")
E, UNITS, CALLS = Fraction("0.15"), 3000, 300
ROUNDS = 3


@dataclass(frozen=True)
class Options:
    """How often simulations run, where pictures are drawn, and of how many members synthetic data are."""

    trials: int
    out: Path
    members: int


def default_budget(_options: Options) -> Iterator[Sheet]:
    """What the default budget is worth: as Gris states it, by the theorem of S1, and by the smallest bound."""
    worth = {"information": UNITS, "calls": CALLS, "slack": SLACK}
    stated = guarantee(E, DELTA, **worth)  # type: ignore[arg-type]
    theorem = guarantee_of_the_theorem(E, DELTA, **worth)  # type: ignore[arg-type]
    # What calls add to every epsilon.
    added = theorem.epsilon - guarantee_of_the_theorem(E, DELTA, **(worth | {"calls": 0})).epsilon  # type: ignore[arg-type]
    rows: list[tuple[str, float, str]] = [
        ("theorem 2 of S1", theorem.epsilon, "by a proof on paper"),
        ("stated by Gris", stated.epsilon, "by a proof on paper"),
    ]
    for name, gaussian in (("the smallest", False), ("the smallest, with Gaussian noise", True)):
        of = budget_epsilon(E, UNITS, SLACK, gaussian=gaussian)
        checked = "tables checked in whole numbers" if of.is_checked else "tables in floats"
        rows.append((name, of.enough + added, f"{checked}; some mechanisms need {math.floor(of.needed * 1000) / 1000:.3f}"))
    yield Sheet(
        (
            Column("bound", "bound", is_text=True),
            Column("epsilon", "epsilon", upwards),
            Column("how", "how", is_text=True),
        ),
        rows,
        (("delta", plainly(stated.delta)),),
    )


def elements_returned(options: Options) -> Iterator[Sheet]:
    """S1, figure 3: elements of a top 50 of an unknown domain against epsilon_per."""
    named = histogram_of_members(FEEDBACK, "article_id", "member_id")
    epsilons = [Fraction(each, 50) for each in range(1, 11)]
    mechanisms = gumbel_mechanisms(epsilons, [100, 400, 1600], delta=PAPERS_DELTA, k=50, tau=1)
    points = list(curve(named, mechanisms, Draws(SEED), trials=options.trials))
    title = f"{named.source}: elements of a top 50, delta = 1e-10, {options.trials} runs a point"
    draw_curve(points, options.out / "s1-figure-3.svg", k=50, title=title)
    yield curve_sheet(points)


def counts_found(options: Options) -> Iterator[Sheet]:
    """S1, figure 4: true and noisy counts, and how often each element is found."""
    named = histogram_of_members(FEEDBACK, "cohort", "member_id")
    epsilons = [Fraction("0.1"), Fraction("0.2")]
    runs = [
        found(
            named,
            UnkLap(Currency(each, PAPERS_DELTA), 1, 1000, 1),
            Draws(SEED),
            shown=100,
            trials=options.trials,
        )
        for each in epsilons
    ]
    title = f"{named.source}: UnkLap, d_bar = 1000, delta = 1e-10, {options.trials} runs"
    draw_found(epsilons, runs, options.out / "s1-figure-4.svg", title=title)
    yield found_sheet(epsilons, runs)


def deployments(_options: Options) -> Iterator[Sheet]:
    """S1, table 2: other deployments, and the default budget below them."""
    own = guarantee(E, DELTA, information=UNITS, calls=CALLS, slack=SLACK)
    yield deployments_sheet(own, Loss(float(E), float(DELTA)), f"{UNITS} and {CALLS} a month")


def composition(options: Options) -> Iterator[Sheet]:
    """S2, figure 1: what bounded range gains, and every bound."""
    delta, count = Fraction("1e-6"), 500
    epsilons = [Fraction(each) for each in ("0.05", "0.1", "0.5", "1")]
    tables = {each: list(islice(upper_tables(each), count + 1)) for each in epsilons}
    steps = sorted({1 + step * (count - 1) // 199 for step in range(200)})
    lines = list(ratios(epsilons, steps, delta, tables))
    bounds = composed(epsilons[0], steps, delta, tables)
    title = "Composition at a delta of at most 1e-06; no data enter"
    draw_composition(lines, epsilons[0], bounds, options.out / "s2-figure-1.svg", title=title)
    yield compose_sheet([Portion(each, of) for each in epsilons for of in (100, count)], delta, tables)


def mechanisms_compared(options: Options) -> Iterator[Sheet]:
    """S2 and S3: every mechanism, served or published elsewhere, for a top 10 of Zipf's counts at about one price.

    `right` is how many of what is shown are among the ten largest; choices compose better than epsilon.
    """
    counts = 20_000 // np.arange(1, 1001)
    histogram = Histogram.from_element_order(np.random.default_rng(0).permutation(counts))
    largest = set(histogram.canonical_order[:10].tolist())
    rows = []
    for each in catalogue(Currency(Fraction("0.019"), Fraction("1e-6")), k=10, d_bar=100, delta_l0=1, tau=1):
        shown = [
            each.run(histogram, KeyedNoise(KeyedStream(seed.to_bytes(32, "big")))).indices[:10].tolist()
            for seed in range(options.trials)
        ]
        right = sum(len(largest.intersection(one)) for one in shown) / options.trials
        promise = each.guarantee()
        mean = sum(map(len, shown)) / options.trials
        rows.append((each.label, promise.epsilon, promise.delta, promise.choices, mean, right))
    names = ("epsilon", "delta", "choices", "shown", "right")
    yield Sheet(
        (Column("mechanism", "mechanism", is_text=True), *(Column(each, each) for each in names)), rows
    )


def one_shot_noise(_options: Options) -> Iterator[Sheet]:
    """S3: standard deviations of one-shot Laplace and of Gumbel's choices and counts at one (epsilon, delta)."""
    rows = []
    for k in (1, 10, 100):
        each = standard_deviations(epsilon=1, delta=1e-6, k=k, domain_size=10_000)
        rows.append((k, each.one_shot_laplace, each.gumbel_choices, each.gumbel_counts))
    names = ("k", "one-shot Laplace", "KnownGumb's choices", "its counts")
    yield Sheet(tuple(Column(each, each) for each in names), rows)


def domains(options: Options) -> Iterator[Sheet]:
    """S4, tables 2 to 5 and figures 6 and 7: how many elements each method releases."""
    delta, typical, rhos = Fraction(1, 10**5), 100, [Fraction(1, 100), Fraction(1, 10), Fraction(1)]
    asked = grid_of(list(Method), rhos, delta, typical, range(1, 6))
    for name, source in (
        ("words of Ubuntu IRC", Source(WORDS, "member_id", "word")),
        (
            f"{options.members} synthetic members",
            Source(synthetic(options.members, seed=1), "member", "element"),
        ),
    ):
        result = compared(source, asked, runs=ROUNDS, seed=SEED)
        path = options.out / f"s4-{name.replace(' ', '-').lower()}.svg"
        draw_compared(result, path, iterations=ROUNDS, title=f"{name}: delta = 1e-05, {ROUNDS} runs a point")
        yield methods_sheet(result, ROUNDS)
        yield iterations_sheet(result)


FIGURES: dict[str, Callable[[Options], Iterator[Sheet]]] = {
    "S1 figure 3": elements_returned,
    "S1 figure 4": counts_found,
    "S1 table 2": deployments,
    "S2 figure 1": composition,
    "S2 and S3 mechanisms": mechanisms_compared,
    "S3 noise": one_shot_noise,
    "S4 tables 2-5": domains,
    "default budget": default_budget,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and draw what is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=[*FIGURES])
    parser.add_argument("--trials", type=int, default=1000, help="runs of a simulation")
    parser.add_argument("--members", type=int, default=100_000, help="members of synthetic data")
    parser.add_argument("--out", type=Path, default=Path("build/figures"))
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        print(f"\n{name}: {(FIGURES[name].__doc__ or '').strip()}\n")
        for sheet in FIGURES[name](Options(options.trials, options.out, options.members)):
            print_sheet(sheet)


def print_sheet(sheet: Sheet) -> None:
    """Print a table, and what it says of itself."""
    print("| " + " | ".join(each.heading for each in sheet.columns) + " |\n|" + "---|" * len(sheet.columns))
    for row in sheet.rows:
        cells = (column.format_cell(cell) for column, cell in zip(sheet.columns, row, strict=True))
        print("| " + " | ".join(cells) + " |")
    print("".join(f"\n{': '.join(filter(None, said))}" for said in sheet.notes if said[-1]))


if __name__ == "__main__":
    main()

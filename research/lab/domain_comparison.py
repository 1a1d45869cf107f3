"""Methods side by side on one data set: how many elements each releases.

The true number of elements and what every run releases are planning numbers for the owner of the data: they are
printed, charged to nobody, and must not be shown to analysts.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from dp_service.noise.stream import SEED_BYTES, KeyedStream
from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import Pairs, read_pairs
from gris_cli.data.sheets import Column, Sheet

SALT = b"gris/domain/compare"


@dataclass(frozen=True)
class Run:
    """How many elements some parameters released, in each of their runs."""

    parameters: Parameters
    released: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The mean over all runs."""
        return fmean(self.released)


@dataclass(frozen=True)
class Shape:
    """How large the data are."""

    members: int
    pairs: int
    elements: int


@dataclass(frozen=True)
class Compared:
    """The shape of the data and all runs."""

    shape: Shape
    runs: tuple[Run, ...]


def grid_of(
    methods: Sequence[Method],
    rhos: Sequence[Fraction],
    delta: Fraction,
    typical: int,
    iterations: Sequence[int],
) -> list[Parameters]:
    """Return every method at every rho, and DP-SIPS at each of these numbers of rounds too."""
    asked = [Parameters(method, rho, delta, typical) for rho in rhos for method in methods]
    rounds = [Parameters(Method.SIPS, rho, delta, typical, count) for rho in rhos for count in iterations]
    return list(dict.fromkeys([*asked, *rounds]))


def compared(source: Source, asked: Sequence[Parameters], *, runs: int, seed: int | None) -> Compared:
    """Run everything `runs` times. With `seed` the numbers are repeatable.

    Raises:
        InputError: As `read_pairs` does.
    """
    found: dict[Parameters, Run] = {}
    shape = Shape(0, 0, 0)
    # GW alone reads a member's elements in the order of its own frequencies.
    for by_frequency in (False, True):
        chosen = [each for each in asked if (each.method is Method.GREEDY) is by_frequency]
        if not chosen:
            continue
        with read_pairs(source, typical=chosen[0].typical, salt=SALT, by_frequency=by_frequency) as pairs:
            shape = _shape(pairs)
            for parameters in chosen:
                counts = []
                for run in range(runs):
                    counts.append(_released(pairs, parameters, _seed(seed, run)))
                found[parameters] = Run(parameters, tuple(counts))
    return Compared(shape, tuple(found[each] for each in asked))


def methods_sheet(result: Compared, iterations: int) -> Sheet:
    """Return one row for each method and one column for each rho (Swanberg et al. 2023, tables 2 and 3)."""
    shown = [
        run
        for run in result.runs
        if run.parameters.method is not Method.SIPS or run.parameters.iterations == iterations
    ]
    rhos = sorted({run.parameters.rho for run in shown})
    means = {(run.parameters.method, run.parameters.rho): run.mean for run in shown}
    columns = [Column(f"rho_{float(rho):g}", f"rho {float(rho):g}") for rho in rhos]
    shape = result.shape
    return Sheet(
        (Column("method", "method", is_text=True), *columns),
        [
            (method.value, *(means.get((method, rho)) for rho in rhos))
            for method in Method
            if any((method, rho) in means for rho in rhos)
        ],
        (("data", f"{shape.members} members, {shape.pairs} pairs, {shape.elements} elements"),),
    )


def iterations_sheet(result: Compared) -> Sheet:
    """Return what DP-SIPS releases by the number of its rounds (figure 7)."""
    runs = [run for run in result.runs if run.parameters.method is Method.SIPS]
    columns = (Column("iterations", "rounds of sips"), Column("rho", "rho"), Column("released", "elements"))
    return Sheet(columns, [(run.parameters.iterations, run.parameters.rho, run.mean) for run in runs])


def _shape(pairs: Pairs) -> Shape:
    found = pairs.contributions
    return Shape(found.member_count, found.elements.size, found.element_count)


def _released(pairs: Pairs, parameters: Parameters, seed: bytes) -> int:
    return discover(
        pairs.contributions, parameters, KeyedElementNoise(seed, parameters, pairs.keys)
    ).elements.size


def _seed(seed: int | None, run: int) -> bytes:
    if seed is None:
        return secrets.token_bytes(SEED_BYTES)
    return KeyedStream(seed.to_bytes(SEED_BYTES, "big")).sub_key("compare", str(run))

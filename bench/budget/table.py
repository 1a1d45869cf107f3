"""What was measured, as a table, and beside it what was wanted."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.budget.load import Sample

MANY = 64


@dataclass(frozen=True)
class Figure:
    """One line of the table: a kind of call on a target; ratios are to the echo of the same target."""

    store: str
    target: str
    callers: int
    kind: str
    rate: float
    p50_ms: float
    p99_ms: float
    rate_to_echo: float
    p99_to_echo: float


@dataclass(frozen=True)
class Wanted:
    """A bound for the charges of one store at so many callers."""

    store: str
    callers: int
    what: str
    measured: Callable[[Figure], float]
    bound: float
    at_least: bool

    def is_met(self, value: float) -> bool:
        """Tell whether a value is on the right side of the bound."""
        return value >= self.bound if self.at_least else value <= self.bound


WANTED = (
    Wanted("sqlite", MANY, "rate to echo", lambda each: each.rate_to_echo, 0.75, at_least=True),
    Wanted("sqlite", MANY, "p99 to echo", lambda each: each.p99_to_echo, 1.5, at_least=False),
    Wanted("sqlite", 1, "p50 in ms", lambda each: each.p50_ms, 0.8, at_least=False),
    Wanted("redis", MANY, "rate to echo", lambda each: each.rate_to_echo, 0.6, at_least=True),
)


def figure_of(store: str, callers: int, samples: Sequence[Sample], echoes: Sequence[Sample]) -> Figure:
    """Return the figure of one kind of call from its samples and those of the echo of the same rounds."""
    ratios = [sample.rate / echo.rate for sample, echo in zip(samples, echoes, strict=True)]
    return Figure(
        store=store,
        target=samples[0].target,
        callers=callers,
        kind=samples[0].kind,
        rate=statistics.median(sample.rate for sample in samples),
        p50_ms=1e3 * _quantile(samples, 50),
        p99_ms=1e3 * _quantile(samples, 99),
        rate_to_echo=statistics.median(ratios),
        p99_to_echo=_quantile(samples, 99) / _quantile(echoes, 99),
    )


def print_table(figures: Iterable[Figure]) -> None:
    """Print every figure, and how busy the machine was besides."""
    print(
        f"{'store':15}{'accounts':16}{'callers':>8}  {'call':16}{'per s':>8}{'p50 ms':>9}{'p99 ms':>9}",
        end="",
    )
    print(f"{'rate/echo':>11}{'p99/echo':>10}")
    for each in figures:
        print(f"{each.store:15}{each.target:16}{each.callers:>8}  {each.kind:16}{each.rate:8.0f}", end="")
        print(f"{each.p50_ms:9.2f}{each.p99_ms:9.2f}{each.rate_to_echo:11.2f}{each.p99_to_echo:10.2f}")
    busy = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} CPUs; load average at the end, this run included: {busy}")


def print_targets(figures: Sequence[Figure]) -> None:
    """Print each bound that was measured, and how the latency of a charge grows with the number of accounts."""
    charges = [figure for figure in figures if figure.kind == "charge"]
    for wanted in WANTED:
        for each in charges:
            if (each.store, each.callers) == (wanted.store, wanted.callers):
                _print_target(wanted, each)
    for each in charges:
        fewest = next(
            other for other in charges if (other.store, other.callers) == (each.store, each.callers)
        )
        if each is not fewest:
            ratio = each.p50_ms / fewest.p50_ms
            print(
                f"{each.store}, {each.callers} callers: p50 of {each.target} is {ratio:.2f}x that of {fewest.target}"
            )


def _print_target(wanted: Wanted, figure: Figure) -> None:
    value = wanted.measured(figure)
    sign = ">=" if wanted.at_least else "<="
    verdict = "met" if wanted.is_met(value) else "missed"
    print(f"{figure.store} {figure.target}, {figure.callers} callers: {wanted.what} {value:.2f}", end="")
    print(f" (wanted {sign} {wanted.bound}): {verdict}")


def _quantile(samples: Iterable[Sample], percent: int) -> float:
    latencies = [latency for sample in samples for latency in sample.latencies]
    return statistics.quantiles(latencies, n=100)[percent - 1]

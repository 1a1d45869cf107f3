"""What was measured, as a table, and beside it what was wanted."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.budget.crowd import Beside
from bench.budget.load import Sample, quantile

MANY = 64
LONGEST_BESIDE_CROWD = 3.0


@dataclass(frozen=True)
class Figure:
    """One line of the table: a kind of call on a target; ratios are to the echo, or the row, of the same target."""

    store: str
    target: str
    callers: int
    kind: str
    rate: float
    p50_ms: float
    p99_ms: float
    rate_to_echo: float
    rate_to_row: float
    p50_to_row: float


@dataclass(frozen=True)
class Wanted:
    """A bound for the charges of one store at so many callers, however many accounts there are."""

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
    Wanted("sqlite", MANY, "rate to a durable row's", lambda each: each.rate_to_row, 1.5, at_least=True),
    Wanted("sqlite", 1, "p50 to a durable row's", lambda each: each.p50_to_row, 1.5, at_least=False),
    Wanted("redis", MANY, "rate to echo's", lambda each: each.rate_to_echo, 0.6, at_least=True),
)


def figure_of(
    store: str, callers: int, samples: Sequence[Sample], echoes: Sequence[Sample], rows: Sequence[Sample]
) -> Figure:
    """Return the figure of one kind of call from its samples and those of the yardsticks of the same rounds."""
    return Figure(
        store=store,
        target=samples[0].target,
        callers=callers,
        kind=samples[0].kind,
        rate=statistics.median(sample.rate for sample in samples),
        p50_ms=1e3 * _quantile(samples, 50),
        p99_ms=1e3 * _quantile(samples, 99),
        rate_to_echo=_rate_to(samples, echoes),
        rate_to_row=_rate_to(samples, rows),
        p50_to_row=_quantile(samples, 50) / _quantile(rows, 50),
    )


def _rate_to(samples: Sequence[Sample], others: Sequence[Sample]) -> float:
    return statistics.median(sample.rate / other.rate for sample, other in zip(samples, others, strict=True))


def print_table(figures: Iterable[Figure]) -> None:
    """Print every figure, and how busy the machine was besides."""
    print(
        f"{'store':15}{'accounts':16}{'callers':>8}  {'call':16}{'per s':>8}{'p50 ms':>9}{'p99 ms':>9}",
        end="",
    )
    print(f"{'rate/echo':>11}{'rate/row':>10}{'p50/row':>9}")
    for each in figures:
        print(f"{each.store:15}{each.target:16}{each.callers:>8}  {each.kind:16}{each.rate:8.0f}", end="")
        print(f"{each.p50_ms:9.2f}{each.p99_ms:9.2f}{each.rate_to_echo:11.2f}", end="")
        print(f"{each.rate_to_row:10.2f}{each.p50_to_row:9.2f}")
    busy = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{os.cpu_count()} CPUs; load average at the end, this run included: {busy}")


def print_crowds(beside: Iterable[Beside]) -> None:
    """Print how much longer a lone charge takes beside a crowd."""
    for each in beside:
        verdict = "met" if each.ratio <= LONGEST_BESIDE_CROWD else "MISSED"
        on = f"on {each.connections} connection{'s' if each.connections > 1 else ''}"
        print(f"{each.store} {each.target}, one caller beside another root's {each.crowd} {on}", end=": ")
        print(f"p95 {each.beside_ms:.1f} ms, {each.ratio:.1f}x of {each.alone_ms:.1f} ms alone", end=" ")
        print(f"(wanted <= {LONGEST_BESIDE_CROWD:.0f}x): {verdict}")


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
    verdict = "met" if wanted.is_met(value) else "MISSED"
    print(f"{figure.store} {figure.target}, {figure.callers} callers: {wanted.what} {value:.2f}", end="")
    print(f" (wanted {sign} {wanted.bound}): {verdict}")


def _quantile(samples: Iterable[Sample], percent: int) -> float:
    return quantile([latency for sample in samples for latency in sample.latencies], percent)

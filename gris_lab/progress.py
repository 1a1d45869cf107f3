"""Progress of what takes longer than a second, on standard error and only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

# After this long it is known how long the rest will take; what takes less than NOTED_SECONDS needs no word.
MEASURED_SECONDS = 1.0
NOTED_SECONDS = 10.0


@contextmanager
def progress(
    what: str, total: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], None]]:
    """Yield a function to be called after each of `total` steps.

    On a terminal there is a bar with the time that is left. Elsewhere one line on standard error says how long it will
    take, if that is longer than ten seconds.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    # A pipe or a file gets no bar: what it keeps should be results and errors only.
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        estimate = _Estimate(what, total, clock, is_said=not bar.disable)

        def advance() -> None:
            bar.advance(task)
            estimate.step()

        yield advance


class _Estimate:
    """Says once how long a piece of work will take."""

    def __init__(self, what: str, total: int, clock: Callable[[], float], *, is_said: bool) -> None:
        self._what = what
        self._total = total
        self._clock = clock
        self._begun = clock()
        self._is_said = is_said
        self._done = 0

    def step(self) -> None:
        """Count a step; the first one after a second shows how long all will take."""
        self._done += 1
        spent = self._clock() - self._begun
        if self._is_said or spent < MEASURED_SECONDS:
            return
        self._is_said = True
        seconds = spent * self._total / self._done
        if seconds >= NOTED_SECONDS:
            sys.stderr.write(f"{self._what} takes about {_format_seconds(seconds)}\n")


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 2 * 60 else f"{seconds / 60:.0f} minutes"

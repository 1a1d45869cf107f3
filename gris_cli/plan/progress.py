"""Progress of what takes longer than a second, on standard error and only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Yield a function to be called after each of `total` steps."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        # A pipe or a file gets no progress: what it keeps should be results and errors only.
        bar.disable = not bar.console.is_terminal
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)

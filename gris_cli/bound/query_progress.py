"""How far DuckDB is with a statement, on standard error and only on a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from gris_cli.data.bound.spilling import Work

_SECONDS = 0.2


@contextmanager
def query_progress() -> Iterator[Work]:
    """Yield what runs a statement and shows its progress."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    # A pipe or a file gets no progress: what it keeps should be results and errors only.
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:

        def run(connection: duckdb.DuckDBPyConnection, statement: str, what: str) -> None:
            task = bar.add_task(what, total=100)
            with _shown(bar, task, connection):
                connection.execute(statement)
            bar.update(task, completed=100)

        yield run


@contextmanager
def _shown(bar: Progress, task: object, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    ended = threading.Event()

    def poll() -> None:
        while not ended.wait(_SECONDS):
            # -1: DuckDB does not know yet.
            bar.update(task, completed=max(connection.query_progress(), 0))  # type: ignore[arg-type]

    poller = threading.Thread(target=poll, daemon=True)
    poller.start()
    try:
        yield
    finally:
        ended.set()
        poller.join()

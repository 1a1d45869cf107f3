"""Pinot's own SQL parser and scalar functions, and the Calcite that it is built on, as one: see `Planner.java`.

Pinot's planner itself is not on Maven Central; its parser is, and Calcite is what the planner is made of.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.support.java_options import QUICK_JAVA
from tests.support.programs import found

VERSION = "1.5.1"
_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Table:
    """Columns by name with Calcite's types (VARCHAR, BIGINT, INTEGER, BOOLEAN, DOUBLE), and rows in their order."""

    columns: Mapping[str, str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Planned:
    """What became of a query: the options it sets, those of them that Pinot does not know, and its answer.

    `filtered` is how many of its sums and counts Pinot's planner would make filtered ones, which are NULL where no row
    of a group passes the filter.
    """

    options: Mapping[str, str]
    unknown_options: Sequence[str]
    columns: Sequence[tuple[str, str]]
    rows: Sequence[tuple[object, ...]]
    filtered: int


def is_there() -> bool:
    """Whether this machine has what it needs."""
    return all(found(program) for program in ("javac", "java", "mvn"))


class Planner:
    """A running Java that plans and runs queries; starting it and warming it up takes most of the time of a question.

    Args:
        process: reads a request from each line, and writes a line for it.
        complaints: what it writes besides.
    """

    def __init__(self, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
        self._process = process
        self._complaints = complaints

    def planned(self, tables: Mapping[str, Table], queries: Sequence[str]) -> list[Planned]:
        """Parse, validate, plan and run queries; raises RefusedError if one of them is refused."""
        request = {
            "tables": {
                name: {"columns": list(table.columns.items()), "rows": table.rows}
                for name, table in tables.items()
            },
            "queries": queries,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self._complaints.seek(0)
            raise RuntimeError(f"the planner has ended: {self._complaints.read().decode(errors='replace')}")
        response = json.loads(line)
        if "refused" in response:
            raise RefusedError(response["refused"])
        return [
            Planned(
                answer["options"],
                answer["unknown"],
                [(name, kind) for name, kind in answer["columns"]],
                [tuple(row) for row in answer["rows"]],
                answer["filtered"],
            )
            for answer in response["answers"]
        ]


Ask = Callable[[Mapping[str, Table], Sequence[str]], list[Planned]]
"""Gives what becomes of queries on tables."""


class RefusedError(Exception):
    """A query is none for Pinot; the text says why."""


@contextmanager
def running_planner() -> Iterator[Planner]:
    """Run one for the questions of the block."""
    # Pinot's own planner takes texts as UTF-8 too.
    java = [
        "java",
        "-Xmx512M",
        *QUICK_JAVA,
        "-Dcalcite.default.charset=UTF-8",
        "-cp",
        f"{_jars()}/*",
        str(_FOLDER / "Planner.java"),
    ]
    with (
        tempfile.TemporaryFile() as complaints,
        subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints) as process,
    ):
        try:
            yield Planner(process, complaints)
        finally:
            process.kill()


def _jars() -> Path:
    """Return the folder with the jars; Maven fetches 31 MB if they are not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    wanted = hashlib.sha256((_FOLDER / "pom.xml").read_bytes()).hexdigest()[:8]
    target = cache / "gris" / "pinot-parser" / f"{VERSION}-{wanted}"
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        collected = Path(folder) / "jars"
        command = ["mvn", "-B", "-q", "-f", str(_FOLDER / "pom.xml"), "dependency:copy-dependencies"]
        subprocess.run([*command, f"-DoutputDirectory={collected}"], check=True)
        # Under its final name a folder is always whole; another run may have been faster.
        with suppress(OSError):
            collected.rename(target)
    return target

"""Verdicts of traps, kept in a file as soon as they are known, and the table of them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from research.privolap import kept
from research.privolap.questions import System
from research.privolap.traps import TRAPS, Trap

HOLDS, CAUGHT, NO_ANSWER = "holds", "caught", "no answer"


class Verdicts:
    """What each trap says of each system; a verdict that is known is not found again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found = kept.read(path, "verdict", _verdict_of)

    def measure(self, systems: Sequence[System]) -> None:
        """Try what is missing, and say by which numbers it was decided."""
        for system in systems:
            missing = [trap for trap in TRAPS if (system.name, trap.name) not in self._found]
            with tempfile.TemporaryDirectory() as directory:
                try:
                    for trap in missing:
                        said = trap.verdict(system, Path(directory) / trap.slug)
                        print(f"{system.name} | {trap.name} | {said}", file=sys.stderr, flush=True)
                        self._keep(system, trap, said.partition(":")[0])
                finally:
                    system.close()

    def _keep(self, system: System, trap: Trap, verdict: str) -> None:
        self._found[system.name, trap.name] = verdict
        line = {"system": system.name, "trap": trap.name, "verdict": verdict}
        kept.keep(self._path, line, system.version())

    def table(self, systems: Sequence[System]) -> Iterator[str]:
        """Return the lines of a table in Markdown, with a column for each system."""
        yield f"|  | {' | '.join(system.name for system in systems)} |"
        yield f"|---|{'---|' * len(systems)}"
        for trap in TRAPS:
            yield f"| {trap.name} | {' | '.join(self._cell(system, trap) for system in systems)} |"

    def _cell(self, system: System, trap: Trap) -> str:
        found = self._found.get((system.name, trap.name))
        if found is None:
            return "not asked"
        return f"{found} (adapter)" if trap.name in system.of_the_adapter else found


def _verdict_of(line: Mapping[str, Any]) -> tuple[tuple[str, str], str]:
    if line["verdict"] not in (HOLDS, CAUGHT, NO_ANSWER):
        raise ValueError
    return (str(line["system"]), str(line["trap"])), line["verdict"]

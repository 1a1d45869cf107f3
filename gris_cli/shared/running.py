"""Runs a gateway beside embedded services."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import typer

from pinot_connector.child_processes import ChildProcess, end_all

_OF_FACES = {
    "mcp": ("mcp", "h11", "uvicorn"),
    "page": ("jinja2", "h11", "starlette", "uvicorn"),
    "broker": ("h11", "starlette", "uvicorn"),
    "postgres": ("pygwire",),
}
_OF_GATEWAY = {"cryptography": "gateway", "jwt": "gateway", "pydantic": "gateway", "duckdb": "duckdb"}


def require_gateway() -> None:
    """Refuse to go on without what a gateway needs.

    Raises:
        typer.BadParameter: A library is missing; the message names the extra.
    """
    for library, extra in _OF_GATEWAY.items():
        if find_spec(library) is None:
            raise typer.BadParameter(f"a gateway needs {library}: pip install 'gris-dp[{extra}]'")


def possible_faces() -> list[str]:
    """Return what a gateway can serve beside gRPC, by the keys of its configuration: its libraries are there."""
    return [name for name, libraries in _OF_FACES.items() if all(map(find_spec, libraries))]


class SharedProcesses:
    """Runs a gateway while the block runs.

    Args:
        folder: Where its configuration is, relative to which that names files; its log is written there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[ChildProcess] = []

    def __enter__(self) -> SharedProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        end_all(self._processes)

    def start_gateway(self, configuration: str) -> dict[str, Any]:
        """Start it; return what it says: `address` and that of each face, such as `mcp_address`.

        Raises:
            ServiceUnavailable: It does not start; with the last line of its log.
        """
        return self._started("gateway", ("gris_gateway", "--config", configuration))

    def ensure_running(self) -> None:
        """Check that both run.

        Raises:
            ServiceUnavailable: One has ended; with the last line of its log.
        """
        for process in self._processes:
            process.require_running()

    def _started(self, name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
        # Their configurations say everything; what commands read of the environment would contradict them.
        kept = {each: value for each, value in os.environ.items() if not each.startswith("GRIS_")}
        process = ChildProcess.start(name, arguments, self._folder, within=self._folder, environment=kept)
        self._processes.append(process)
        return dict(process.wait_until_ready())

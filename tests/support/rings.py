"""Rings of tests: what a test needs is declared at its fixtures, and a test that forgot to say so fails.

A fixture that starts something is declared with `needs`; every test that uses it, directly or not, is marked so.
A test that starts something in its body uses one of the fixtures `starts_processes`, `starts_redis` and
`starts_postgres` of tests/conftest.py. While a test runs that is not marked `process`, no process can
be started.
"""

from __future__ import annotations

import multiprocessing.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

PROCESS = "process"
RINGS = (PROCESS, "redis", "postgres", "pinot", "spark", "containers", "kubernetes")
STORES = ("redis", "postgres")
# What takes much memory and long to start: the tests of a lane run one after the other in one worker, and share what
# they start. A folder belongs to the first lane that names it. No lane takes longer than what is left to a worker.
LANES = {
    "tests/pinot/failures": "failures of pinot, and containers",
    "tests/containers": "failures of pinot, and containers",
    "tests/pinot": "pinot",
    "tests/spark": "spark",
    "tests/kubernetes": "kubernetes",
}
_HEAVY = frozenset({"pinot", "spark", "containers", "kubernetes"})

_STARTS_PROCESS = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "pty.spawn"}
)
# What Matplotlib starts when it first draws on a machine, whichever test that is: under Linux, under macOS.
_LIST_FONTS = frozenset({"fc-list", "system_profiler"})

_Function = TypeVar("_Function", bound=Callable[..., Any])


def needs(*rings: str) -> Callable[[_Function], _Function]:
    """Declare what a fixture needs; goes below `@pytest.fixture`."""
    assert set(rings) <= set(RINGS)

    def declare(function: _Function) -> _Function:
        function.__dict__["rings"] = frozenset(rings)
        return function

    return declare


def rings_of(item: pytest.Item) -> frozenset[str]:
    """Return what the fixtures of a test need, with those that they use, and what its parameters name."""
    # Names alone would not do: several folders have a fixture of the same name, and they need different things.
    definitions = item._fixtureinfo.name2fixturedefs if hasattr(item, "_fixtureinfo") else {}
    used = [definitions[name][-1].func for name in getattr(item, "fixturenames", ()) if definitions.get(name)]
    found = {ring for function in used for ring in getattr(function, "rings", ())}
    # Where a test is run over every store, the name of the store is a parameter.
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    found |= {each for each in parameters if isinstance(each, str) and each in STORES}
    return frozenset(found | {PROCESS}) if found else frozenset()


def mark(items: list[pytest.Item]) -> None:
    """Mark every test by what it needs, and put those first that take the longest."""
    for item in items:
        rings = rings_of(item)
        for ring in rings:
            item.add_marker(ring)
        # A second try hides what the first one found.
        assert not item.get_closest_marker("flaky"), f"{item.nodeid} may not be tried again: mend what fails"
        # Workers get whole lanes, and those who hand them out see no more of a test than its path.
        assert not rings & _HEAVY or lane_of(item.nodeid), f"{item.nodeid} belongs below one of {[*LANES]}"
    # The lanes of Pinot take the longest, so that they begin first.
    items.sort(key=lambda item: [*LANES.values(), ""].index(lane_of(item.nodeid)))


def lane_of(nodeid: str) -> str:
    """Return the lane of a test, empty if any worker may run it."""
    return next((lane for folder, lane in LANES.items() if nodeid.startswith(f"{folder}/")), "")


class _Guard:
    """What the test that runs may start; None while no test runs."""

    allowed: frozenset[str] | None = None

    def watch(self, event: str, arguments: tuple[object, ...]) -> None:
        """Hear of everything that Python audits."""
        if event in _STARTS_PROCESS and not _LIST_FONTS.intersection(arguments[:1]):
            self.require(PROCESS)

    def require(self, ring: str) -> None:
        """Fail the test that runs unless its fixtures say that it needs this."""
        if self.allowed is not None and ring not in self.allowed:
            wanted = f"starts_{ring}" if ring != PROCESS else "starts_processes"
            pytest.fail(
                f"this test needs `{ring}`, and none of its fixtures says so: add "
                f'@pytest.mark.usefixtures("{wanted}"), or @needs("{ring}") to the fixture that starts it '
                "(tests/support/rings.py)"
            )


_guard = _Guard()
require = _guard.require


def install() -> None:
    """Watch this interpreter from now on; an audit hook cannot be taken away or imported past."""
    sys.addaudithook(_guard.watch)
    # Of what `multiprocessing` spawns, Python audits nothing.
    spawn = multiprocessing.util.__dict__["spawnv_passfds"]

    def guarded_spawn(*arguments: object) -> object:
        require(PROCESS)
        return spawn(*arguments)

    multiprocessing.util.__dict__["spawnv_passfds"] = guarded_spawn


@contextmanager
def guarded(item: pytest.Item) -> Iterator[None]:
    """Let a test start what it is marked for, and nothing else."""
    _guard.allowed = rings_of(item)
    try:
        yield
    finally:
        _guard.allowed = None

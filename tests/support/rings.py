"""Which tests run when: a fixture declares what it needs, and every test that uses it, directly or not, is marked so.

`make test` leaves out: tests that need something, `slow` ones, and the folders in ALL. Exception: files in ONE_WAY run
unless they need more than a process. `make test-all` leaves out what is `nightly`: cases that are marked so by hand,
and in NIGHTLY the tests that need something or are slow. `pytest -m nightly` runs these.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.paths import ROOT

PROCESS = "process"
NEEDS = (PROCESS, "redis", "postgres", "pinot", "spark", "containers", "kubernetes")
STORES = ("redis", "postgres")
# One way through each process and face.
ONE_WAY = frozenset(
    ROOT / "tests" / name
    for name in (
        "test_readme.py",
        "unit/budget_service/server/test_process.py",
        "unit/gris_cli/test_shell.py",
        "unit/pinot_connector/test_embedded.py",
        "unit/pinot_connector/test_whole_path.py",
        "unit/dp_service/server/test_process.py",
        "faces/mcp/test_agents_http.py",
        "unit/gris_gateway/test_asking.py",
        "faces/broker/test_broker_http.py",
        "faces/postgres/test_postgres_wire.py",
        "faces/page/test_asking.py",
    )
)
# Of these `make test` collects nothing: some import what only `make test-all` installs.
ALL = frozenset(
    ROOT / "tests" / name
    for name in (
        "campaigns",
        "containers",
        "deploy",
        "engines/pinot",
        "engines/spark",
        "kubernetes",
        "test_extras.py",
    )
)
# Short forms of campaigns, and a Pinot whose servers die.
NIGHTLY = frozenset((ROOT / "tests" / "campaigns", ROOT / "tests" / "engines" / "pinot" / "failures"))
assert all(path.exists() for path in ONE_WAY | ALL | NIGHTLY)
# What starts for long and takes much memory: one worker runs all tests of such a folder. Those of Spark's answers take
# as long as all others of Spark: one worker for both would end long after the rest.
ONE_WORKER = (
    "tests/engines/pinot/",
    "tests/engines/spark/test_answers.py",
    "tests/engines/spark/",
    "tests/containers/",
    "tests/kubernetes/",
)
# How long a test may take that starts a cluster or a container, that is slow, or that is of `make test-all` and starts
# processes, each of which takes seconds on a busy machine. Others have the time that pyproject.toml states.
HEAVY = frozenset({"pinot", "spark", "containers", "kubernetes"})
HEAVY_SECONDS, SLOW_SECONDS, PROCESS_SECONDS = 1200, 300, 120

_Function = TypeVar("_Function", bound=Callable[..., Any])


def needs(*names: str) -> Callable[[_Function], _Function]:
    """Declare what a fixture needs; goes below `@pytest.fixture`."""
    assert set(names) <= set(NEEDS)

    def declare(function: _Function) -> _Function:
        function.__dict__["needs"] = frozenset(names)
        return function

    return declare


def needs_of(item: pytest.Item) -> frozenset[str]:
    """Return what the fixtures of a test need, with those that they use, and what its parameters name."""
    # Names alone would not do: several folders have a fixture of the same name, and they need different things.
    definitions = item._fixtureinfo.name2fixturedefs if hasattr(item, "_fixtureinfo") else {}
    used = [definitions[name][-1].func for name in getattr(item, "fixturenames", ()) if definitions.get(name)]
    found = {name for function in used for name in getattr(function, "needs", ())}
    # Where a test is run over every store, the name of the store is a parameter.
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    found |= {each for each in parameters if isinstance(each, str) and each in STORES}
    return frozenset(found | {PROCESS}) if found else frozenset()


def mark(item: pytest.Item) -> None:
    """Mark a test by what it needs, by when it runs and by how long it may take."""
    needed = needs_of(item)
    for name in needed:
        item.add_marker(name)
    is_slow = any(item.get_closest_marker(name) is not None for name in ("slow", "nightly"))
    one_way = item.path in ONE_WAY and needed <= {PROCESS}
    if (needed or is_slow) and _is_below(item.path, NIGHTLY):
        item.add_marker("nightly")
    if _is_below(item.path, ALL) or ((needed or is_slow) and not one_way):
        item.add_marker("all")
    seconds = HEAVY_SECONDS if needed & HEAVY else SLOW_SECONDS if is_slow else PROCESS_SECONDS
    if item.get_closest_marker("timeout") is None and (is_slow or (needed and not one_way)):
        item.add_marker(pytest.mark.timeout(seconds))


def is_left_to_all(path: Path) -> bool:
    """Whether `make test` needs nothing of a file or folder."""
    return path in ALL


def _is_below(path: Path, folders: frozenset[Path]) -> bool:
    return not folders.isdisjoint((path, *path.parents))


def worker_scope(nodeid: str) -> str:
    """Return what one worker runs as one: what ONE_WORKER names, otherwise a file."""
    file = nodeid.split("::", 1)[0]
    return next((folder for folder in ONE_WORKER if file.startswith(folder)), file)

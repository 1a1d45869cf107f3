"""Change the product as each mutant says, in a copy, and see that its test fails: `python -m tests.campaigns mutants`.

ROOM.yaml lists mutants: `name` (what is broken), `file`, `old` (a text that is once in the file), `new`, and
`killed_by`, the id of a test or several. A mutant is killed where pytest says that a test has failed: one that cannot
be imported or collected proves nothing. All these tests pass without a change, or nothing is tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import yaml

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parents[2]
ROOMS = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
_PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--timeout=300")
_PASSED, _FAILED = 0, 1
_T = TypeVar("_T")


@dataclass(frozen=True)
class Mutant:
    """One change of the product, and the tests of which one must fail by it."""

    room: str
    name: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]


def mutants_of(room: str) -> Iterator[Mutant]:
    """Yield the mutants of a room."""
    entries: list[dict[str, Any]] = yaml.safe_load((FOLDER / f"{room}.yaml").read_text())
    for each in entries:
        tests = each.pop("killed_by")
        yield Mutant(room, **each, killed_by=(tests,) if isinstance(tests, str) else tuple(tests))


def copied(folder: Path) -> Path:
    """Copy the files that git knows to a folder, as they are in the checkout."""
    listed = subprocess.run(
        ("git", "ls-files", "-z"), cwd=CHECKOUT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name)
    return folder


def tested(copy: Path, tests: Sequence[str]) -> tuple[int, str]:
    """Run tests in a copy; return pytest's exit status and the end of what it printed."""
    # Before the checkout, which the environment has on its path; processes that tests start inherit it.
    path = os.pathsep.join(map(str, (copy, copy / "protos" / "generated")))
    run = subprocess.run(
        (*_PYTEST, *dict.fromkeys(tests)),
        cwd=copy,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout[-3000:]


def checked(mutants: Sequence[Mutant]) -> int:
    """Print which mutants cannot be applied to the checkout, and which tests are missing; return 1 if any."""
    faults = [
        f"{each.room}: {each.name}: {places} places in {each.file}"
        for each in mutants
        if (places := _text_of(each.file).count(each.old)) != 1
    ]
    faults += [
        f"{each.room}: {each.name}: no {test}"
        for each in mutants
        for test in each.killed_by
        if f"def {test.partition('[')[0].rpartition('::')[2]}(" not in _text_of(test.partition("::")[0])
    ]
    print(*faults, f"{len(mutants)} mutants, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


def _text_of(file: str) -> str:
    path = CHECKOUT / file
    return path.read_text() if path.is_file() else ""


def tried(copy: Path, mutant: Mutant) -> str:
    """Try a mutant in a copy; return why it is not killed, nothing if it is."""
    path = copy / mutant.file
    text = path.read_text() if path.is_file() else ""
    if text.count(mutant.old) != 1:
        return f"cannot be applied: {text.count(mutant.old)} places in {mutant.file}"
    with _changed(path, text, text.replace(mutant.old, mutant.new)):
        status, output = tested(copy, mutant.killed_by)
    if status == _FAILED:
        return ""
    return "survives" if status == _PASSED else f"pytest ends with {status}\n{output}"


@contextmanager
def _changed(path: Path, before: str, after: str) -> Iterator[None]:
    """Let a file be another; what was compiled of it may have the same second and size, so it is removed."""
    compiled = Path(cache_from_source(str(path)))
    try:
        path.write_text(after)
        compiled.unlink(missing_ok=True)
        yield
    finally:
        path.write_text(before)
        compiled.unlink(missing_ok=True)


def main() -> int:
    """Try the mutants of some rooms, by default of all; return 1 unless every one is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"by default all: {', '.join(ROOMS)}")
    parser.add_argument(
        "--check", action="store_true", help="only see that each can be applied, and that its tests are there"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rooms = {room: list(mutants_of(room)) for room in options.rooms or ROOMS}
    if options.check:
        return checked([each for found in rooms.values() for each in found])
    copies: SimpleQueue[Path] = SimpleQueue()

    def within_a_copy(work: Callable[[Path], _T]) -> _T:
        copy = copies.get()
        try:
            return work(copy)
        finally:
            copies.put(copy)

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for job in range(options.jobs):
            copies.put(copied(Path(folder, str(job))))

        def unchanged(room: str) -> tuple[int, str]:
            tests = [test for each in rooms[room] for test in each.killed_by]
            return within_a_copy(lambda copy: tested(copy, tests))

        for room, (status, output) in zip(rooms, pool.map(unchanged, rooms), strict=True):
            if status != _PASSED:
                print(f"{room}: its tests do not pass without a change\n{output}")
                return 1
        mutants = [each for found in rooms.values() for each in found]
        reasons = pool.map(lambda each: within_a_copy(lambda copy: tried(copy, each)), mutants)
        failed = 0
        for mutant, reason in zip(mutants, reasons, strict=True):
            failed += bool(reason)
            state = "FAILED" if reason else "killed"
            print(f"{state} {mutant.room}: {mutant.name}{reason and ': '}{reason}", flush=True)
    print(f"{len(mutants) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

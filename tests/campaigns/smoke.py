"""Runs every campaign, every benchmark and what else people run by hand, each in its smallest form.

    python -m tests.campaigns smoke               # all of them: an hour or two
    python -m tests.campaigns smoke chaos "bench budget"
    python -m tests.campaigns smoke --list

The smallest form says nothing of the product: it shows that the program still runs. What a machine lacks is skipped,
and named in the end. The exit code is 1 if anything fails. What each has printed is in build/smoke.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from bench.__main__ import BENCHES
from tests.campaigns.names import CAMPAIGNS

ROOT = Path(__file__).parents[2]
PRINTED = ROOT / "build" / "smoke"
LIMIT_SECONDS = 1800
LAST_LINES = 15
ITSELF = "smoke"


@dataclass(frozen=True)
class Run:
    """A program in its smallest form, and what the machine must have for it."""

    command: tuple[str, ...]
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


def _answers(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and not subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        ).returncode
    )


NEEDS: dict[str, Callable[[], bool]] = {
    "Java": lambda: _answers("java", "-version"),
    "Maven": lambda: shutil.which("mvn") is not None,
    "npm": lambda: shutil.which("npm") is not None,
    "Docker": lambda: _answers("docker", "version"),
    "the packages of the group `release`": lambda: find_spec("piplicenses") is not None,
}


def runs(folder: Path) -> Iterator[tuple[str, Run]]:
    """Yield everything that is run, by name; the folder takes what a program writes."""
    for name, campaign in CAMPAIGNS.items():
        if name != ITSELF:
            command = (*campaign.command(name), *campaign.smallest.split())
            yield name, Run(command, campaign.needs, campaign.environment())
    for name, bench in BENCHES.items():
        yield f"bench {name}", Run((sys.executable, "-m", "bench", name, *bench.smallest.split()))
    java = ("Java", "Maven")
    yield "demo", Run((sys.executable, "-m", "gris_cli", "demo"))
    yield "demo on Pinot", Run((sys.executable, "-m", "examples.demo_on_pinot"), java)
    yield "two servers", Run((sys.executable, "-m", "examples.two_servers"), java)
    yield "docs", Run(("make", "docs"), ("npm",))
    yield "images", Run(("deploy/images.sh", ".", "smoke"), ("Docker",))
    yield (
        "release",
        Run(
            (sys.executable, "-m", "deploy.release", "--only-files", str(folder / "dist")),
            ("the packages of the group `release`",),
        ),
    )
    yield "locks", Run(("deploy/locks/renew.sh", str(folder)))
    yield "audit of locks", Run(("deploy/locks/audit.sh",))


def main() -> int:
    """Run them one after the other; print a line for each."""
    parser = argparse.ArgumentParser(
        "python -m tests.campaigns smoke",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    parser.add_argument("--list", action="store_true", help="print the commands, and run none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        every = dict(runs(Path(folder)))
        if unknown := set(options.names) - set(every):
            parser.error(f"expected names of {', '.join(every)}; got {', '.join(sorted(unknown))}")
        chosen = {name: every[name] for name in options.names or every}
        if options.list:
            for name, each in chosen.items():
                print(f"{name:20}{' '.join(each.command).replace(sys.executable, 'python')}")
            return 0
        return _all_run(chosen)


def _all_run(chosen: Mapping[str, Run]) -> int:
    PRINTED.mkdir(parents=True, exist_ok=True)
    here = {need for need, is_here in NEEDS.items() if is_here()}
    failed, skipped = list[str](), list[str]()
    for name, each in chosen.items():
        if missing := [need for need in each.needs if need not in here]:
            skipped.append(f"skipped {name}: needs {', '.join(missing)}")
            continue
        began = time.monotonic()
        problem = _problem(name, each)
        print(f"{'FAILED' if problem else 'ran':8}{name:20}{time.monotonic() - began:6.0f} s", flush=True)
        if problem:
            failed.append(name)
            print(problem, flush=True)
    print("\n".join([*skipped, f"{len(chosen) - len(failed) - len(skipped)} ran, {len(failed)} failed"]))
    return 1 if failed else 0


def _problem(name: str, run: Run) -> str:
    """Run one; return why it has failed, nothing if it has not."""
    log = PRINTED / f"{name.replace(' ', '-')}.log"
    with log.open("wb") as printed:
        try:
            ended = subprocess.run(
                run.command,
                cwd=ROOT,
                env=run.environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
                timeout=LIMIT_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"  did not end within {LIMIT_SECONDS} s; {log}"
    if not ended:
        return ""
    last = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "\n".join([f"  ended with {ended}; {log}", *(f"  | {line}" for line in last)])


if __name__ == "__main__":
    sys.exit(main())

"""The wheel in an environment that has nothing else, outside of the checkout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.release.project import CheckFailedError, Project, run

GENERATED = "gris_api"
"""The generated code, by the name under which it is imported."""

NAMESAKE = ("gris", "0.9.0")
"""A distribution of somebody else that ships a package `gris`; both must be usable in one environment."""

# Which distributions own each package, by the files that they have installed.
_OWNERS = """
import importlib, json, sys
from importlib.metadata import packages_distributions
owners = packages_distributions()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps({name: sorted(set(owners.get(name, []))) for name in sys.argv[1:]}))
"""


@dataclass(frozen=True)
class Installation:
    """An environment, and an empty folder to work in."""

    programs: Path
    folder: Path

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self.programs / "python")


@contextmanager
def installed(wheel: Path) -> Iterator[Installation]:
    """Install the wheel with everything that `gris demo` needs, and the namesake with it."""
    with TemporaryDirectory(prefix="gris-release-") as scratch:
        environment, folder = Path(scratch) / "environment", Path(scratch) / "empty"
        folder.mkdir()
        run(sys.executable, "-m", "venv", str(environment))
        made = Installation(environment / "bin", folder)
        install = (made.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*install, f"{wheel}[all]", "==".join(NAMESAKE), folder=folder)
        run(made.python, "-m", "pip", "--disable-pip-version-check", "check", folder=folder)
        yield made


def require_own_names(installation: Installation, project: Project) -> None:
    """Raise CheckFailedError unless each package is imported, and is no other distribution's as well."""
    expected = {name: [project.name] for name in project.packages} | {NAMESAKE[0]: [NAMESAKE[0]]}
    if GENERATED not in expected:
        raise CheckFailedError(f"the generated code is not called {GENERATED}")
    printed = run(installation.python, "-P", "-c", _OWNERS, *sorted(expected), folder=installation.folder)
    owners = json.loads(printed)
    wrong = [
        f"{name} is of {' and '.join(owners[name])}"
        for name in sorted(expected)
        if owners[name] != expected[name]
    ]
    if wrong:
        raise CheckFailedError("; ".join(wrong))


def require_demo(installation: Installation) -> None:
    """Raise CheckFailedError unless `gris demo` answers in an empty folder, and a repeat is the identical answer."""
    printed = run(str(installation.programs / "gris"), "demo", "--json", folder=installation.folder)
    report = json.loads(printed)
    if not (report["questions"] and report["repeated"]["identical"] and report["small_account"]["refusal"]):
        raise CheckFailedError(f"`gris demo --json` printed {printed[:500]}")

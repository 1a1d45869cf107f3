"""The extras of the distribution bring what its modules import, and nothing else."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from itertools import chain

from tests.support.paths import ROOT

DISTRIBUTIONS = packages_distributions()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
# What other packages import or read without asking for it, and why an extra has it.
USED_BY_OTHERS = {
    "h11": "uvicorn reads HTTP by it",
    "pyarrow": "functions of pandas in Spark",
    "requests": "pinotdb's dialect of SQLAlchemy, whose URL `gris serve --gateway` prints",
    "tzdata": "zoneinfo, where the system has no time zones",
    "opentelemetry-exporter-otlp": "the SDK loads it by name",
}
# What comes with a package of an extra.
BROUGHT = {
    "hiredis": "redis[hiredis]",
    "mcp-types": "mcp",
    "pydantic-core": "pydantic",
}


def names_of(requirements: list[str]) -> set[str]:
    """Return the distributions that requirements name, without Gris itself."""
    names = {normalised(re.split(r"[\[<>=~! ;]", each)[0]) for each in requirements}
    return names - {PROJECT["project"]["name"]}


def normalised(name: str) -> str:
    """Return a distribution's name as it is compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> Iterator[tuple[str, str]]:
    """Yield each absolute import of the product: its dotted name and the file that has it."""
    for package in PROJECT["tool"]["importlinter"]["root_packages"]:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    yield from ((each.name, str(path)) for each in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield from ((f"{node.module}.{each.name}", str(path)) for each in node.names)


def distributions_of(name: str) -> set[str]:
    """Return the distributions that an imported name may come from."""
    return {normalised(each) for each in DISTRIBUTIONS.get(name.partition(".")[0], [])}


def test_each_package_of_an_extra_is_imported() -> None:
    """Or another package of it needs it, which is said above."""
    used = {each for name, _ in imported() for each in distributions_of(name)} | set(USED_BY_OTHERS)
    assert {} == {extra: left for extra, stated in EXTRAS.items() if (left := names_of(stated) - used)}


def test_each_import_is_brought_by_the_distribution_or_an_extra() -> None:
    """Superset alone imports the module that imports Superset."""
    stated = names_of([*PROJECT["project"]["dependencies"], *chain(*EXTRAS.values())]) | set(BROUGHT)
    own = {
        *PROJECT["tool"]["importlinter"]["root_packages"],
        "gris_api",
        "superset",
        *sys.stdlib_module_names,
    }
    assert set() == {
        f"{path}: {name}"
        for name, path in imported()
        if name.partition(".")[0] not in own and not distributions_of(name) & stated
    }

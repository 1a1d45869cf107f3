"""The wheel and the source distribution: how they are built, and what has to be in them."""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from deploy.release.project import CheckFailedError, Project, run, tracked_files

SHOWN = 5
# What is in a source distribution and not in the repository.
_ADDED = frozenset({"PKG-INFO"})
EXAMPLE_DATA = (
    "gris_cli/example_data/policy.yaml",
    "gris_cli/example_data/bounded/policy.yaml",
    "gris_cli/example_data/budget.yaml",
    "gris_cli/example_data/cofacts/feedback.parquet",
    "gris_cli/example_data/online_retail/purchases.parquet",
)


@dataclass(frozen=True)
class Artifacts:
    """The two files of a release on a package index."""

    wheel: Path
    sdist: Path


def build(project: Project, folder: Path) -> Artifacts:
    """Build the source distribution, and the wheel from it, into a folder that holds nothing else then."""
    shutil.rmtree(folder, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(folder))
    source = sdist(project, folder)
    wheel = source.name.removesuffix(".tar.gz") + "-py3-none-any.whl"
    built = Artifacts(folder / wheel, source)
    missing = [each.name for each in (built.wheel, built.sdist) if not each.is_file()]
    if missing:
        raise CheckFailedError(f"not built: {', '.join(missing)}")
    return built


def sdist(project: Project, folder: Path) -> Path:
    """Return where the source distribution is in a folder."""
    return folder / f"{project.name.replace('-', '_')}-{project.version}.tar.gz"


def require_metadata(artifacts: Artifacts) -> None:
    """Raise CheckFailedError unless a package index can show the metadata of both."""
    run(sys.executable, "-m", "twine", "check", "--strict", str(artifacts.wheel), str(artifacts.sdist))


def require_whole_sdist(artifacts: Artifacts) -> None:
    """Raise CheckFailedError unless the source distribution is the repository, no file more and none less."""
    with tarfile.open(artifacts.sdist) as archive:
        inside = {each.name.partition("/")[2] for each in archive.getmembers() if each.isfile()} - _ADDED
    tracked = tracked_files()
    _refuse("the source distribution lacks", tracked - inside)
    _refuse("the source distribution has", inside - tracked)


def require_own_packages(artifacts: Artifacts, project: Project) -> None:
    """Raise CheckFailedError unless the wheel has the packages of pyproject.toml, the example data, and no others."""
    with zipfile.ZipFile(artifacts.wheel) as archive:
        names = set(archive.namelist())
    tops = {name.partition("/")[0] for name in names}
    packages = {name for name in tops if not name.endswith(".dist-info")}
    _refuse("the wheel lacks", project.packages - packages)
    _refuse("the wheel has", packages - project.packages)
    _refuse("the wheel lacks", set(EXAMPLE_DATA) - names)
    if not any(name.endswith(".dist-info/licenses/LICENSE") for name in names):
        raise CheckFailedError("the wheel lacks the licence")


def _refuse(what: str, names: set[str] | frozenset[str]) -> None:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise CheckFailedError(f"{what} {', '.join(sorted(names)[:SHOWN])}{more}")

"""What the checkout says about itself: its version, its packages and its files."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
LOCKS = ROOT / "deploy" / "locks"
UNSET_HOST = ".invalid"
"""No name that ends so is ever given away (RFC 2606): what [project.urls] has until the project has a public host."""

# Other files that state the version, and how. The one source is pyproject.toml.
_STATED = {
    "deploy/kubernetes/confirm-restored.yaml": re.compile(r"image: \S+:(\S+)"),
    "deploy/chart/Chart.yaml": re.compile(r"^(?:version|appVersion): (\S+)", re.MULTILINE),
}


class CheckFailedError(Exception):
    """A check that did not pass; the text says what to do."""

    @property
    def reason(self) -> str:
        """The last line: of a command that failed, what it said at last."""
        return str(self).strip().splitlines()[-1]


@dataclass(frozen=True)
class Project:
    """The table [project] of pyproject.toml, and what the wheel is made of."""

    name: str
    version: str
    urls: dict[str, str]
    packages: frozenset[str]


def read_project(root: Path = ROOT) -> Project:
    """Read pyproject.toml."""
    document = tomllib.loads((root / "pyproject.toml").read_text())
    project: dict[str, Any] = document["project"]
    included: list[str] = document["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    return Project(
        name=project["name"],
        version=project["version"],
        urls=project.get("urls", {}),
        packages=frozenset(Path(each).name for each in included if (root / each / "__init__.py").is_file()),
    )


def require_one_version(project: Project, root: Path = ROOT) -> None:
    """Raise CheckFailedError if a file states another version than pyproject.toml."""
    stated = {
        f"{path} says {found}"
        for path, pattern in _STATED.items()
        if (root / path).is_file()
        for found in pattern.findall((root / path).read_text())
        if found.strip("\"'") != project.version
    }
    if stated:
        raise CheckFailedError(f"pyproject.toml says {project.version}, {', '.join(sorted(stated))}")


def require_changelog(project: Project, root: Path = ROOT) -> None:
    """Raise CheckFailedError unless the changelog has a section for the version, with a date and something in it."""
    heading = re.compile(rf"^## \[?{re.escape(project.version)}\]? - \d{{4}}-\d{{2}}-\d{{2}}$")
    lines = iter((root / "CHANGELOG.md").read_text().splitlines())
    if not any(heading.match(line) for line in lines):
        raise CheckFailedError(
            f"CHANGELOG.md has no heading '## [{project.version}] - YEAR-MONTH-DAY': who releases writes it, with the "
            "day of the release (docs/releasing.md, step 2)"
        )
    section = next((line for line in lines if line.startswith(("- ", "## "))), "")
    if not section.startswith("- "):
        raise CheckFailedError(f"CHANGELOG.md says nothing about {project.version}")


def require_urls(project: Project) -> None:
    """Raise CheckFailedError as long as an address of the project is unset."""
    unset = [name for name, url in project.urls.items() if UNSET_HOST in url]
    if unset or not project.urls:
        raise CheckFailedError(f"set {', '.join(unset) or 'them'} in [project.urls] of pyproject.toml")


def require_clean(root: Path = ROOT) -> None:
    """Raise CheckFailedError if the checkout has files that are changed or not in the repository."""
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        raise CheckFailedError(f"commit or remove: {', '.join(line[3:] for line in changed)}")


def require_free_tag(project: Project, root: Path = ROOT) -> None:
    """Raise CheckFailedError if the version's tag is on another commit."""
    tag = f"v{project.version}"
    if (
        _git(root, "tag", "--list", tag).strip()
        and _git(root, "tag", "--points-at", "HEAD", tag).strip() != tag
    ):
        raise CheckFailedError(f"{tag} is another commit: raise the version")


def tracked_files(root: Path = ROOT) -> frozenset[str]:
    """Return the paths of all files of the repository."""
    return frozenset(each for each in _git(root, "ls-files", "-z").split("\0") if each)


def locked_images() -> Iterator[tuple[str, Path]]:
    """Yield the name of each image that has a lock of packages, with the lock."""
    yield from ((each.stem, each) for each in sorted(LOCKS.glob("*.txt")))


def run(*command: str, folder: Path = ROOT) -> str:
    """Return what a command prints. Raises CheckFailedError with the end of its output if it fails, or is not here."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CheckFailedError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise CheckFailedError(f"`{' '.join(command[:6])} ...` ended with {done.returncode}:\n{said}")
    return done.stdout


def _git(root: Path, *arguments: str) -> str:
    return run("git", *arguments, folder=root)

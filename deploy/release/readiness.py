"""Says whether a release can be made here, before anything is built: a line for each thing that is missing.

python -m deploy.release.readiness KEY [PLATFORMS]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.release.project import (
    CheckFailedError,
    Project,
    read_project,
    require_changelog,
    require_clean,
    require_free_tag,
    require_one_version,
    require_urls,
    run,
)
from deploy.release.signing import sign_file


def checkout_checks(project: Project) -> dict[str, Callable[[], None]]:
    """Return what a release says of itself: a title and a check for each."""
    return {
        f"version {project.version} is the same everywhere": partial(require_one_version, project),
        f"the changelog has {project.version}, with a date": partial(require_changelog, project),
        "the project's addresses are set": partial(require_urls, project),
        "the checkout is clean": require_clean,
        f"the tag v{project.version} is free or here": partial(require_free_tag, project),
    }


def machine_checks(key: Path, platforms: str = "") -> dict[str, Callable[[], None]]:
    """Return what this machine needs: a title and a check for each."""
    return {
        "the key signs": partial(require_key, key),
        "Docker answers": require_docker,
        "helm is here": require_helm,
        "Docker keeps the images": partial(require_one_platform, platforms),
    }


def require_key(key: Path) -> None:
    """Raise CheckFailedError unless the key signs a text."""
    if not key.is_file():
        raise CheckFailedError(f"SIGNING_KEY names no file: {key}")
    if not os.access(key, os.R_OK):
        raise CheckFailedError(f"SIGNING_KEY names a file that you may not read: {key}")
    with TemporaryDirectory(prefix="gris-release-") as folder:
        text = Path(folder) / "text"
        text.write_text("Does this key sign?\n")
        sign_file(key, text)


def require_docker() -> None:
    """Raise CheckFailedError unless a Docker daemon answers."""
    _require_answer("docker", "version", "--format", "{{.Server.Version}}")


def require_helm() -> None:
    """Raise CheckFailedError unless helm can be called."""
    _require_answer("helm", "version", "--short")


def require_one_platform(platforms: str) -> None:
    """Raise CheckFailedError if images would be pushed instead of kept: none is published before it is looked into."""
    if "," in platforms:
        raise CheckFailedError(f"IMAGE_PLATFORMS names several, whose images are pushed at once: {platforms}")


def _require_answer(*command: str) -> None:
    try:
        run(*command)
    except CheckFailedError as failure:
        raise CheckFailedError(failure.reason) from failure


def main(key: str, platforms: str = "") -> int:
    """Say what is missing; the exit code is 1 if anything is."""
    checks = {**checkout_checks(read_project()), **machine_checks(Path(key).expanduser(), platforms)}
    failures = 0
    for title, check in checks.items():
        try:
            check()
        except CheckFailedError as failure:
            failures += 1
            sys.stdout.write(f"FAIL  {title}: {failure}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

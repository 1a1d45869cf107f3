"""Checks that the checkout can be released: one line for each check, exit code 1 if one fails.

    python -m deploy.release                      # needs a package index
    python -m deploy.release --only-files FOLDER  # of any commit: makes them there, and checks no more than them

Leaves in dist/ what was checked, so that exactly that is published: wheel, source distribution, notices and SBOMs;
nothing if a check failed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TypeVar

from deploy.release.artifacts import build, require_metadata, require_own_packages, require_whole_sdist
from deploy.release.installation import NAMESAKE, installed, require_demo, require_own_names
from deploy.release.notices import write_notices
from deploy.release.project import DIST, CheckFailedError, Project, read_project
from deploy.release.readiness import checkout_checks

T = TypeVar("T")


class Report:
    """Prints each check as a line, and counts those that fail."""

    def __init__(self) -> None:
        self.failures = 0

    def check(self, title: str, check: Callable[[], T]) -> T | None:
        """Run a check, print what came of it, and return what it returns, None if it failed."""
        try:
            result = check()
        except CheckFailedError as failure:
            self.failures += 1
            sys.stdout.write(f"FAIL  {title}: {failure}\n")
            return None
        finally:
            sys.stdout.flush()
        sys.stdout.write(f"ok    {title}\n")
        return result


def check_checkout(report: Report, project: Project) -> None:
    """Look at what a release says of itself."""
    for title, check in checkout_checks(project).items():
        report.check(title, check)


def check_artifacts(report: Report, project: Project, folder: Path) -> None:
    """Build what is published, look into it and use it."""
    artifacts = report.check("wheel and source distribution are built", partial(build, project, folder))
    if artifacts is None:
        return
    report.check("a package index can show their metadata", partial(require_metadata, artifacts))
    report.check("the source distribution is the repository", partial(require_whole_sdist, artifacts))
    report.check(
        "the wheel has its packages and no others", partial(require_own_packages, artifacts, project)
    )
    with ExitStack() as stack:
        installing = partial(stack.enter_context, installed(artifacts.wheel))
        namesake = " ".join(NAMESAKE)
        environment = report.check(
            f"the wheel is installed in an empty environment, together with {namesake}", installing
        )
        if environment is not None:
            report.check(
                "every package is imported, and is ours alone",
                partial(require_own_names, environment, project),
            )
            report.check("`gris demo` answers outside of the checkout", partial(require_demo, environment))


def main() -> int:
    """Run every check; the exit code is 1 if one fails."""
    parser = argparse.ArgumentParser(
        "python -m deploy.release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only-files", type=Path, metavar="FOLDER", help="make and check files of any commit"
    )
    only_files: Path | None = parser.parse_args().only_files
    report, project, folder = Report(), read_project(), only_files or DIST
    if only_files is None:
        check_checkout(report, project)
    check_artifacts(report, project, folder)
    report.check("every locked package has its notices", partial(write_notices, folder))
    if report.failures:
        shutil.rmtree(folder, ignore_errors=True)
        sys.stdout.write(f"Nothing is left in {folder.name}/\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

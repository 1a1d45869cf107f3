"""Completes and signs a release in dist/: chart, images, their notices and SBOMs, and a signed list of all files.

python -m deploy.release.signing KEY PREFIX IMAGE...
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.release.artifacts import sdist
from deploy.release.images import list_images, named
from deploy.release.notices import write_notices_of_images
from deploy.release.project import DIST, CheckFailedError, Project, read_project, run

CHART = "deploy/chart"
SUMS = "SHA256SUMS"
NAMESPACE = "gris-release"
"""What a signature is for: one made for another purpose does not verify."""


def package_chart(project: Project, folder: Path) -> None:
    """Package the chart of the source distribution that is in a folder. Raises CheckFailedError."""
    with TemporaryDirectory(prefix="gris-chart-") as scratch:
        run("tar", "-xzf", str(sdist(project, folder)), "-C", scratch, "--strip-components", "1")
        run("helm", "package", CHART, "--destination", str(folder.resolve()), folder=Path(scratch))
    if not (folder / f"gris-{project.version}.tgz").is_file():
        raise CheckFailedError(f"helm made no gris-{project.version}.tgz")


def sign(key: Path, folder: Path) -> None:
    """List the files of a folder with their SHA-256, as `sha256sum --check` reads it, and sign the list by ssh-keygen.

    Raises:
        CheckFailedError: The key cannot sign.
    """
    sums = folder / SUMS
    ours = {SUMS, f"{SUMS}.sig"}
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in ours)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    sums.write_text("".join(lines))
    sign_file(key, sums)


def sign_file(key: Path, file: Path) -> None:
    """Sign a file for this purpose, into one beside it whose name ends in .sig. Raises CheckFailedError."""
    file.with_name(f"{file.name}.sig").unlink(missing_ok=True)
    try:
        run("ssh-keygen", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(file))
    except CheckFailedError as failure:
        # Its warnings are framed.
        said = " ".join(line.strip() for line in str(failure).splitlines()[1:] if line[:1] != "@")
        raise CheckFailedError(f"ssh-keygen cannot sign with {key}: {said or failure.reason}") from failure


def main(key: str, prefix: str, *titles: str) -> int:
    """Complete what `python -m deploy.release` has left in dist/, and sign it; if it cannot be, the exit code is 1."""
    project = read_project()
    images = named(prefix, project.version, titles)
    try:
        package_chart(project, DIST)
        list_images(images, DIST)
        write_notices_of_images(images, DIST)
        sign(Path(key).expanduser(), DIST)
    except CheckFailedError as failure:
        shutil.rmtree(DIST, ignore_errors=True)
        sys.stdout.write(f"FAIL  {failure}\nNothing is left in {DIST.name}/\n")
        return 1
    sys.stdout.write(f"{DIST.name}/{SUMS} lists what is published, and {SUMS}.sig signs it\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

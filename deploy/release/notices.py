"""Writes dist/THIRD_PARTY_NOTICES and a CycloneDX SBOM of each image's packages.

    python -m deploy.release.notices

Each lock in deploy/locks is installed, hashes demanded, into an environment of its own, where pip-licenses reads the
licences and cyclonedx-py the components. What a lock installs depends on the Python that installs it, so a release
publishes those of the images themselves (`write_notices_of_images`), whose SBOMs also name the packages of the system;
the notices do not. The outputs are built with a release and not kept in the repository.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.release.images import Image, add_components, installed_in, system_packages
from deploy.release.project import DIST, ROOT, CheckFailedError, locked_images, run

NOTICES = "THIRD_PARTY_NOTICES"
RULE = "=" * 100
# All files of a package that state licences: pip-licenses shows one of each package, and some have a licence to choose.
_TEXTS = """
import json, re
from importlib.metadata import distributions
stating = re.compile(r"[^/]*[.]dist-info/(licenses/.*|((LICEN[CS]E|NOTICE|COPYING|AUTHORS)[^/]*))", re.IGNORECASE)
found = {each.metadata["Name"]: sorted(file for file in each.files or [] if stating.fullmatch(str(file)))
         for each in distributions()}
print(json.dumps({name: [file.read_text() for file in files] for name, files in found.items()}))
"""
# What an environment is made with, and no part of an image.
_TOOLS = frozenset({"pip", "setuptools", "wheel"})


@dataclass(frozen=True)
class Notice:
    """The licence of one version of one package, with the texts that come with it."""

    name: str
    version: str
    licence: str
    url: str
    texts: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.name} {self.version}\n{self.licence}\n{self.url}"
        return "\n\n".join((head, *(text.strip() for text in self.texts)))


def write_notices(folder: Path) -> int:
    """Write the notices of all locks and the SBOM of each; return how many packages they name.

    Raises:
        CheckFailedError: a lock cannot be installed, or a package has no known licence.
    """
    return _write(folder, ((image, _installed(lock)) for image, lock in locked_images()))


def write_notices_of_images(images: Sequence[Image], folder: Path) -> None:
    """Write the notices of all built images and the SBOM of each, in place of those of the locks.

    Raises:
        CheckFailedError: an image cannot be read, or a package has no known licence.
    """
    _write(folder, ((each.title, installed_in(each)) for each in images))
    for each in images:
        add_components(_sbom(folder, each.title), system_packages(each))


def _write(folder: Path, environments: Iterable[tuple[str, AbstractContextManager[str]]]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    found: set[Notice] = set()
    for image, environment in environments:
        with environment as python:
            found.update(_notices(python))
            _write_sbom(python, _sbom(folder, image))
    _require_licences(found)
    head = "Gris runs with these packages. Each is under the licence that follows its name.\n"
    parts = (head, *(str(each).strip() for each in sorted(found, key=_alphabetically)))
    (folder / NOTICES).write_text(f"\n\n{RULE}\n".join(parts) + "\n")
    return len(found)


def _sbom(folder: Path, image: str) -> Path:
    return folder / f"gris-{image}.cdx.json"


@contextmanager
def _installed(lock: Path) -> Iterator[str]:
    """Install a lock as its image does, and give the interpreter that has it."""
    with TemporaryDirectory(prefix="gris-notices-") as scratch:
        python = f"{scratch}/bin/python"
        uv = (sys.executable, "-m", "uv", "--quiet")
        run(*uv, "venv", "--python", sys.executable, scratch)
        options = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
        run(*uv, "pip", "install", "--python", python, *options, "--requirement", str(lock))
        yield python


def _notices(python: str) -> Iterator[Notice]:
    options = ("--python", python, "--format", "json", "--from", "mixed", "--with-urls")
    licences = json.loads(run(sys.executable, "-m", "piplicenses", *options))
    texts = json.loads(run(python, "-c", _TEXTS))
    for each in licences:
        name = each["Name"]
        if name.lower() not in _TOOLS:
            yield Notice(name, each["Version"], each["License"], each["URL"], tuple(texts[name]))


def _alphabetically(notice: Notice) -> tuple[str, str]:
    return notice.name.lower(), notice.version


def _require_licences(notices: Iterable[Notice]) -> None:
    unknown = [each.name for each in notices if each.licence == "UNKNOWN"]
    if unknown:
        raise CheckFailedError(f"no known licence: {', '.join(unknown)}")


def _write_sbom(python: str, target: Path) -> None:
    options = ("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible")
    run(sys.executable, "-m", "cyclonedx_py", "environment", *options, "--output-file", str(target), python)


def main() -> int:
    """Write them; the exit code is 1 if they cannot be written."""
    try:
        count = write_notices(DIST)
    except CheckFailedError as failure:
        sys.stdout.write(f"{failure}\n")
        return 1
    sys.stdout.write(
        f"{DIST.name}/{NOTICES} names {count} packages; {DIST.name}/gris-*.cdx.json list those of each lock\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

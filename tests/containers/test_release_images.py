"""What a release says of an image is what the image holds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from deploy.release.images import LISTED, Image, add_components, installed_in, list_images, system_packages
from deploy.release.project import CheckFailedError
from tests.containers.images import build_service
from tests.support.rings import needs

pytestmark = pytest.mark.nightly

_PACKAGES = """
import json
from importlib.metadata import distributions
print(json.dumps(sorted((each.metadata["Name"], each.version) for each in distributions())))
"""


@pytest.fixture(scope="module")
@needs("containers")
def image() -> Image:
    """Build one of the images."""
    return Image("budget-service", build_service("budget-service"))


def printed(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_packages_are_read_as_the_image_itself_lists_them(image: Image) -> None:
    """Which they are depends on the Python that installed them: not on the one that makes the release."""
    inside = printed("docker", "run", "--rm", "--entrypoint", "python", image.name, "-c", _PACKAGES)
    with installed_in(image) as python:
        read = printed(python, "-c", _PACKAGES)
    assert len(json.loads(inside)) > 30
    assert json.loads(read) == json.loads(inside)


def test_an_sbom_gets_the_packages_of_the_system(image: Image, tmp_path: Path) -> None:
    """Each once, by the URL that scanners look it up by."""
    sbom = tmp_path / "sbom.json"
    sbom.write_text('{"components": [{"name": "grpcio"}]}')
    add_components(sbom, system_packages(image))
    first, *others = json.loads(sbom.read_text())["components"]
    assert first == {"name": "grpcio"}
    urls = {each["name"]: each["purl"] for each in others}
    assert len(urls) == len(others)
    assert urls["libc6"].startswith("pkg:deb/debian/libc6@2.")
    assert urls["libc6"].partition("?")[2].startswith("arch=")


def test_images_are_listed_once_they_have_started(image: Image, tmp_path: Path) -> None:
    """By the digest under which Docker runs them; one that is not here is no part of a release."""
    list_images([image], tmp_path)
    digest, name = (tmp_path / LISTED).read_text().split()
    assert name == image.name
    assert "--config" in printed("docker", "run", "--rm", digest)
    with pytest.raises(CheckFailedError, match="gris-none"):
        list_images([Image("none", "gris-none:0")], tmp_path)

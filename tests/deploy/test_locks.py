"""What images are made from has everything that their code asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?")
_LOCKED = re.compile(r"^([a-z0-9.-]+)==", re.MULTILINE)


def asked_for(requirements: list[str]) -> Iterator[str]:
    """Yield the names of packages, those of the project's own extras among them."""
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        assert found is not None
        name, extras = found.groups()
        if name != PROJECT["name"]:
            yield re.sub(r"[-_.]+", "-", name).lower()
            continue
        for extra in extras.split(","):
            yield from asked_for(PROJECT["optional-dependencies"][extra.strip()])


def image_extras() -> dict[str, list[str]]:
    """Return the extras of each lock, as it is made."""
    script = (ROOT / "deploy" / "locks" / "renew.sh").read_text()
    return {image: extras.split() for image, extras in re.findall(r"^lock (\S+) (.*)", script, re.MULTILINE)}


@pytest.mark.parametrize(("image", "extras"), list(image_extras().items()))
def test_a_lock_has_every_package_that_its_image_needs(image: str, extras: list[str]) -> None:
    """A new dependency that is not in the lock would be missed when the container starts, and not before."""
    locked = set(_LOCKED.findall((ROOT / "deploy" / "locks" / f"{image}.txt").read_text()))
    own = [f"{PROJECT['name']}[{extra}]" for extra in extras]
    assert set(asked_for([*PROJECT["dependencies"], *own])) - locked == set()


@pytest.mark.parametrize("image", list(image_extras()))
def test_a_lock_has_what_its_packages_need(image: str) -> None:
    """As those say that are installed here in the same version; an image is built without asking for dependencies."""
    text = (ROOT / "deploy" / "locks" / f"{image}.txt").read_text()
    needed = {
        name for pair in re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE) for name in needs_of(*pair)
    }
    assert needed - set(_LOCKED.findall(text)) == set()


def needs_of(name: str, version: str) -> Iterator[str]:
    """Yield the names of what a package needs here without extras, if it is installed in this version."""
    with suppress(metadata.PackageNotFoundError):
        if metadata.version(name) == version:
            for each in map(Requirement, metadata.requires(name) or ()):
                if each.marker is None or each.marker.evaluate({"extra": ""}):
                    yield canonicalize_name(each.name)


def test_a_gateway_can_use_every_store_of_its_releases() -> None:
    """The library of a database is loaded where the configuration names one, so nothing else would miss it."""
    assert {"gateway", "postgres"} <= set(image_extras()["gateway"])


def test_every_image_has_a_lock() -> None:
    """One for each."""
    assert {f"{name}.txt" for name in image_extras()} == {
        each.name for each in (ROOT / "deploy" / "locks").glob("*.txt")
    }


def test_all_has_what_every_page_needs_but_spark_and_traces() -> None:
    """Pictures, frames and SQLAlchemy among it: a page that asks for `all` asks for nothing else."""
    extras = PROJECT["optional-dependencies"]
    of_users = set(extras) - {"all", "spark", "telemetry", "bench", "dev", "docs", "release"}
    missing = {each for each in of_users if set(asked_for(extras[each])) - set(asked_for(extras["all"]))}
    assert missing == set()

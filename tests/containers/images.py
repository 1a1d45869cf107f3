"""Images for the tests: built as a user would build them, or pulled.

`GRIS_TEST_IMAGE_BUILDER` names a command that builds an image (tag, context, further arguments of `docker build`; the
base image in `BASE_IMAGE`), `GRIS_TEST_REDIS_IMAGE` an image of Redis, `GRIS_TEST_POSTGRES_IMAGE` one of PostgreSQL and
`GRIS_TEST_JAVA_IMAGE` one with Java; without them Docker itself builds, and the images are the public ones. An image
that cannot be had is a failure where a builder is named; elsewhere the registry may be out of reach, and what needs the
image is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.pinot.cluster import DEFAULT_VERSION, collect_jars
from tests.support.paths import ROOT
from tests.support.programs import found


def docker_answers() -> bool:
    """Tell whether a Docker daemon can be used."""
    if found("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def build_image(tag: str, context: Path, *arguments: str, base: str = "") -> str:
    """Build an image as a user would, on the base image that the variable `base` names, if there is one."""
    builder = os.environ.get("GRIS_TEST_IMAGE_BUILDER")
    command = [builder, tag, str(context)] if builder else ["docker", "build", "--tag", tag, str(context)]
    environment = {**os.environ, "DOCKER_BUILDKIT": "1"}
    if base in environment:
        environment["BASE_IMAGE"] = environment[base]
    _run_or_skip(f"the image {tag} could not be built", [*command, *arguments], environment)
    return tag


def build_service(target: str) -> str:
    """Build one of the project's images, a target of its Dockerfile."""
    file = str(ROOT / "deploy" / "Dockerfile")
    return build_image(f"gris-{target}:test", ROOT, "--file", file, "--target", target)


def build_pinot(context: Path) -> str:
    """Build an image of Pinot in the empty folder `context`, with jars that this machine has."""
    if found("mvn") is None:
        pytest.skip("the image takes jars that Maven collects here (Debian: apt-get install maven)")
    shutil.copytree(ROOT / "deploy" / "pinot", context, dirs_exist_ok=True)
    shutil.copytree(collect_jars(DEFAULT_VERSION), context / "lib", copy_function=_link_or_copy)
    return build_image("gris-pinot:test", context, "--build-arg", "JARS=local", base="GRIS_TEST_JAVA_IMAGE")


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def require_image(name: str) -> str:
    """Have Docker pull an image that it does not have."""
    inspected = subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False)
    if inspected.returncode != 0:
        _run_or_skip(f"the image {name} could not be pulled", ["docker", "pull", name], os.environ)
    return name


def _run_or_skip(problem: str, command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        return
    if "GRIS_TEST_IMAGE_BUILDER" in os.environ:
        pytest.fail(f"{problem}: {done.stderr[-2000:]}")
    lines = [line for line in done.stderr.splitlines() if line.strip()] or ["Docker does not say why"]
    pytest.skip(f"{problem}: {lines[-1].strip()}")

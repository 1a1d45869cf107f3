"""Containers of the services and of Redis, on a network of their own.

`GRIS_TEST_IMAGE_BUILDER` names a command that builds an image (tag, context, further arguments of `docker build`; the
base image in `BASE_IMAGE`), `GRIS_TEST_REDIS_IMAGE` an image of Redis and `GRIS_TEST_JAVA_IMAGE` one with Java; without
them Docker itself builds, and the images are the public ones. An image that cannot be had is a failure where a builder
is named; elsewhere the registry may be out of reach, and what needs the image is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "gris:test"
PORT = 50050
IMAGE_USER = 10001


def docker_answers() -> bool:
    """Tell whether a Docker daemon can be used."""
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "info"], capture_output=True, check=False).returncode == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is here where there is no Docker, and say so."""
    if docker_answers():
        return
    skip = pytest.mark.skip(reason="needs Docker: install it and start its daemon")
    for item in items:
        if "containers" in item.path.parts:
            item.add_marker(skip)


@dataclass(frozen=True)
class Services:
    """Both services and their store, as containers; the addresses are of this machine."""

    dp: DockerContainer
    budget: DockerContainer
    redis: DockerContainer

    @property
    def dp_address(self) -> str:
        """Where dp_service listens."""
        return _address(self.dp)

    @property
    def budget_address(self) -> str:
        """Where budget_service listens."""
        return _address(self.budget)


def _address(container: DockerContainer) -> str:
    return f"127.0.0.1:{container.get_exposed_port(PORT)}"


def build_image(tag: str, context: Path, *arguments: str, base: str = "") -> str:
    """Build an image as a user would, on the base image that the variable `base` names, if there is one."""
    builder = os.environ.get("GRIS_TEST_IMAGE_BUILDER")
    command = [builder, tag, str(context)] if builder else ["docker", "build", "--tag", tag, str(context)]
    environment = dict(os.environ)
    if base in environment:
        environment["BASE_IMAGE"] = environment[base]
    _run_or_skip(f"the image {tag} could not be built", [*command, *arguments], environment)
    return tag


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


@pytest.fixture(scope="session")
def image() -> str:
    """Build the image of the services."""
    return build_image(IMAGE, ROOT, "--file", str(ROOT / "deploy" / "Dockerfile"))


@pytest.fixture(scope="session")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what is mounted into the containers: policy, budgets and a key that the containers' user may read."""
    folder = tmp_path_factory.mktemp("configuration")
    folder.chmod(0o755)
    for name in ("policy.yaml", "budget.yaml"):
        (folder / name).write_text((ROOT / "examples" / name).read_text())
    key = folder / "noise.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o400)
    if os.getuid() == 0:
        os.chown(key, IMAGE_USER, IMAGE_USER)
    return folder


@pytest.fixture(scope="session")
def services(image: str, configuration: Path) -> Iterator[Services]:
    """Start Redis and both services; stop them in the end."""
    redis_image = require_image(os.environ.get("GRIS_TEST_REDIS_IMAGE", "redis:7"))
    if not testcontainers_config.ryuk_disabled:
        require_image(testcontainers_config.ryuk_image)
    with Network() as network:
        redis = DockerContainer(redis_image).with_network(network).with_network_aliases("redis")
        redis.with_command(
            "redis-server --bind 0.0.0.0 --protected-mode no --appendonly yes --maxmemory-policy noeviction"
        )
        redis.waiting_for(LogMessageWaitStrategy("Ready to accept connections"))
        dp = _service(
            image,
            network,
            configuration,
            "-m dp_service --policy /etc/gris/policy.yaml --key-file /etc/gris/noise.key",
        )
        budget = _service(
            image,
            network,
            configuration,
            "-m budget_service --config /etc/gris/budget.yaml --store redis://redis:6379/0",
        )
        with redis, dp, budget:
            yield Services(dp, budget, redis)


def _service(image: str, network: Network, configuration: Path, command: str) -> DockerContainer:
    container = DockerContainer(image).with_network(network).with_exposed_ports(PORT)
    container.with_command(f"{command} --listen 0.0.0.0:{PORT} --insecure")
    container.waiting_for(LogMessageWaitStrategy('"address"'))
    # Only the owner may read the key: the container's user, or whoever runs the tests.
    container.with_kwargs(user=str(os.getuid() or IMAGE_USER))
    return container.with_volume_mapping(str(configuration), "/etc/gris", "ro")

"""Containers on one network, each of which can be restarted and cut off."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

PORT = 50050
IMAGE_USER = 10001


@dataclass(frozen=True)
class Placed:
    """A container that runs, and its name on the network."""

    name: str
    container: DockerContainer
    network: Network

    def address(self, port: int = PORT) -> str:
        """Return where a port of the container is reached from this machine; a restart does not change it."""
        return f"127.0.0.1:{self.container.get_exposed_port(port)}"

    def restart(self) -> None:
        """End the container's program at once, as a crash does, and start it again."""
        wrapped = self.container.get_wrapped_container()
        wrapped.kill()
        wrapped.start()

    def cut_off(self) -> None:
        """Take the container off the network: its connections stay open and lead nowhere."""
        wrapped = self.container.get_wrapped_container()
        wrapped.client.networks.get(self.network.name).disconnect(wrapped)

    def reconnect(self) -> None:
        """Put the container back on the network under its name."""
        wrapped = self.container.get_wrapped_container()
        wrapped.client.networks.get(self.network.name).connect(wrapped, aliases=[self.name])


@dataclass(frozen=True)
class Services:
    """Both services, a ledger in Redis and another one in PostgreSQL."""

    dp: Placed
    budget: Placed
    budget_on_postgres: Placed
    redis: Placed
    postgres: Placed


@contextmanager
def placed(container: DockerContainer, network: Network, name: str, *ports: int) -> Iterator[Placed]:
    """Start a container under a name on the network, with these of its ports published; stop it in the end."""
    container.with_network(network).with_network_aliases(name)
    for port in ports:
        # A port that Docker chooses would be another one after a restart.
        container.with_bind_ports(port, _free_port())
    with container:
        yield Placed(name, container, network)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def service(image: str, configuration: Path, arguments: str) -> DockerContainer:
    """Return a container of a service that may change nothing, whose user may read the configuration."""
    container = DockerContainer(image).with_command(f"{arguments} --listen 0.0.0.0:{PORT} --insecure")
    # Only the owner may read the key: the container's user, or the user who runs the tests.
    user = str(os.getuid() or IMAGE_USER)
    container.with_kwargs(
        user=user, read_only=True, cap_drop=["ALL"], security_opt=["no-new-privileges:true"]
    )
    return container.with_volume_mapping(str(configuration), "/etc/gris", "ro")

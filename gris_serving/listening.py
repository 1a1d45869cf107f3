"""Whether a server can listen on an address, found out before gRPC tries.

gRPC reports an address that is in use on standard error, in words about its own source, and says nothing more to the
program. So the address is tried first, and the reason is the operating system's.
"""

from __future__ import annotations

import socket
import stat
from contextlib import suppress
from pathlib import Path

from gris_serving.reloading_files import SecurityError


class ListeningError(RuntimeError):
    """A server cannot listen on an address; the text is the reason, in a few words."""


def require_free(listen: str) -> None:
    """Check that a server could listen on HOST:PORT now.

    Another program can still take the address before the server does.

    Raises:
        ListeningError: It could not; the text says why.
    """
    host, _, port = listen.rpartition(":")
    try:
        found = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError:
        raise ListeningError("there is no such host") from None
    family, _, _, _, address = found[0]
    try:
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        raise ListeningError((error.strerror or "it cannot be used").lower()) from None


UNIX = "unix:"
"""What the address of a Unix socket begins with, before its path."""
_SOCKET_MODE = 0o660


def bound_socket(name: str, listen: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT, or on a Unix socket, for servers that gRPC has no part in.

    Raises:
        SecurityError: It cannot; the message begins with the key of the configuration, `name`.
    """
    if listen.startswith(UNIX):
        return _unix_socket(name, listen)
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, int(port)), family=family)
    except OSError as error:
        raise SecurityError(f"{name}.listen: cannot listen on {listen}: {error.strerror}") from None
    # Accepted connections inherit it. asyncio sets it only where a socket's protocol was named, and without it an
    # answer in two parts waits for the other side's delayed acknowledgement of the first: 40 ms on Linux.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _unix_socket(name: str, listen: str) -> socket.socket:
    """Return a socket that this user and its group may connect to; one that is left of an earlier process goes."""
    path = Path(listen.removeprefix(UNIX))
    listening = socket.socket(socket.AF_UNIX)
    try:
        with suppress(FileNotFoundError):
            if stat.S_ISSOCK(path.stat().st_mode):
                path.unlink()
        listening.bind(str(path))
        # Before it listens nobody can connect.
        path.chmod(_SOCKET_MODE)
        listening.listen()
    except OSError as error:
        listening.close()
        raise SecurityError(f"{name}.listen: cannot listen on {listen}: {error.strerror or error}") from None
    return listening

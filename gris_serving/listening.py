"""Whether a server can listen on an address, found out before gRPC tries.

gRPC reports an address that is in use on standard error, in words about its own source, and says nothing more to the
program. So the address is tried first, and the reason is the operating system's.
"""

from __future__ import annotations

import errno
import socket


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
        _bind(family, address, socket.SO_REUSEADDR)
    except OSError as error:
        problem = error
    else:
        return
    # Workers of one service share their port.
    if problem.errno != errno.EADDRINUSE or not _is_shared(family, address):
        raise ListeningError((problem.strerror or "it cannot be used").lower())


def _is_shared(family: int, address: tuple[object, ...]) -> bool:
    try:
        _bind(family, address, socket.SO_REUSEPORT)
    except OSError:
        return False
    return True


def _bind(family: int, address: tuple[object, ...], option: int) -> None:
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, option, 1)
        tried.bind(address)

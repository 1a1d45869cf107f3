"""Which addresses are asked through an HTTP proxy that the environment names: never those of this machine."""

from __future__ import annotations

import ipaddress
import os

from pinot_connector.endpoints import REPLICATED

# In the order in which gRPC looks for one; it reads no other.
VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")
_SOCKETS = ("unix:", "unix-abstract:")


def channel_options(target: str) -> tuple[tuple[str, int], ...]:
    """Returns the options of a channel to `target` that keep gRPC from asking this machine through a proxy."""
    return (("grpc.enable_http_proxy", 0),) if is_loopback(target) else ()


def is_loopback(target: str) -> bool:
    """Returns whether only this machine is meant: by HOST:PORT, or by an address in one of gRPC's own forms."""
    if target.startswith(_SOCKETS):
        return True
    if target.startswith(REPLICATED):
        # dns:NAME, dns:///NAME or dns://SERVER/NAME
        target = target.partition(":")[2].rpartition("/")[2]
    return all(_is_this_machine(_host(each)) for each in target.split(","))


def proxy_variable() -> str:
    """Returns the name of the variable by which gRPC asks other machines through a proxy; empty if none is set."""
    return next((name for name in VARIABLES if os.environ.get(name)), "")


def _host(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    host, colon, _ = address.rpartition(":")
    # Without a port, or an address of version 6 that is not in brackets.
    return host if colon and ":" not in host else address


def _is_this_machine(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

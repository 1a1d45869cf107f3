"""What all remote calls share: how long they may take, and the channel they go through."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from pinot_connector.endpoints import Address

MAX_MESSAGE_BYTES = 16 * 2**20

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A service that was restarted should be found again within the deadline of one call.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A replica whose machine is gone says nothing at all: without asking whether it lives, each call that is sent there
    # would wait until its deadline, for as long as the system takes to give up the connection.
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 5000),
    # The first question of the kind goes out with a call, and by default its answer is waited for a minute.
    ("grpc.http2.ping_timeout_ms", 5000),
    # By default the channels of a process share connections. gRPC (1.74 to 1.85 were tried) crashes the whole process
    # when a connection of which two channels watch the health is lost in the moment it is made.
    ("grpc.use_local_subchannel_pool", 1),
    # By default a name is looked up again after half a minute at the earliest: long after its replicas were replaced.
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
)
_REPLICATED = ("dns:", "ipv4:", "ipv6:")


@dataclass(frozen=True)
class Timeouts:
    """How long each part of a question may take, in seconds.

    `dp` bounds a call to dp_service and `engine` a call to the engine. `budget_attempt` bounds one call to
    budget_service, and `budget` a charge with all its repeats. `budget_silence` is how long budget_service may say
    nothing, not even that it lives, before questions are refused; it must be several times what a message takes to it
    and back. `reservation` is how long the worst case is held: it must outlast the engine.
    """

    dp: float = 30.0
    engine: float = 45.0
    budget_attempt: float = 2.0
    budget: float = 8.0
    budget_silence: float = 0.2
    reservation: int = 60


def open_channel(
    address: Address, repeated: Sequence[str] = (), *, waiting: Sequence[str] = ()
) -> grpc.aio.Channel:
    """Opens a channel to a service; it belongs to the running event loop.

    An address in one of gRPC's own forms, "dns:///name:port" or "ipv4:host:port,host:port", is one of replicas, which
    are used in turn, but for those whose health check says that they do not serve: one that is about to end says so
    first. A plain "host:port" is one server, which says itself what it cannot do.

    Calls of the methods that are `repeated` ("package.Service/Method") are sent again by gRPC itself, as they are,
    where they end in UNAVAILABLE. Those of the services that are `waiting` are kept, unsent and within their deadline,
    until a replica is there.

    Raises:
        InvalidQuestion: a file of the address's credentials cannot be used.
    """
    target = address if isinstance(address, str) else address.address
    config: dict[str, Any] = {"methodConfig": _repeating(repeated)}
    if target.startswith(_REPLICATED):
        config["methodConfig"] = _waiting(config["methodConfig"], waiting)
        config["loadBalancingConfig"] = [{"round_robin": {}}]
        config["healthCheckConfig"] = {"serviceName": ""}
    options = (*_OPTIONS, ("grpc.service_config", json.dumps(config)))
    if isinstance(address, str):
        return grpc.aio.insecure_channel(target, options=options)
    return grpc.aio.secure_channel(target, address.credentials.for_channel(), options=options)


def _waiting(methods: list[dict[str, Any]], services: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the method config with these services' calls waiting for a replica, and those of `methods` with them."""
    # gRPC takes one entry for a method: its own, if it has one.
    names = [{"service": service} for service in services]
    whole = [{"name": names}] if names else []
    return [each | {"waitForReady": bool(services)} for each in methods + whole]


def _repeating(methods: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the method config; all repeats of one of the methods together wait less than a `budget_silence`."""
    names = [dict(zip(("service", "method"), method.split("/"), strict=True)) for method in methods]
    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.01s",
        "backoffMultiplier": 2,
        "maxBackoff": "0.04s",
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return [{"name": names, "retryPolicy": policy}] if names else []

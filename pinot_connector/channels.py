"""What all remote calls share: time-outs, and the channel."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from pinot_connector import forks, proxies
from pinot_connector.endpoints import REPLICATED, Address, named, require_target

MAX_MESSAGE_BYTES = 16 * 2**20

_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    # A service that was restarted should be found again within the deadline of one call.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
    # A replica whose machine is gone sends nothing at all: without keepalive, each call to it would wait until its
    # deadline, for as long as the operating system takes to give up the connection.
    ("grpc.keepalive_time_ms", 5000),
    ("grpc.keepalive_timeout_ms", 5000),
    # The first keepalive ping goes out with a call, and by default gRPC waits a minute for its answer.
    ("grpc.http2.ping_timeout_ms", 5000),
    # By default the channels of a process share connections. gRPC (1.74 to 1.85 were tried) crashes the whole process
    # when a connection of which two channels watch the health is lost while it is being made.
    ("grpc.use_local_subchannel_pool", 1),
    # By default a name is looked up again after half a minute at the earliest: long after its replicas were replaced.
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
)


@dataclass(frozen=True)
class Timeouts:
    """How long each part of a question may take, in seconds.

    `dp` bounds a call to dp_service and `engine` a call to the engine. `budget_attempt` bounds one call to
    budget_service, and `budget` a charge with all its retries. `budget_silence` is how long budget_service may answer
    neither calls nor heartbeats before questions are refused; it must be several round trips. `budget_held` is how long
    a question waits for budget that other questions hold. `reservation` is how long the worst case is held, twice as
    long for a question of two looks, at most 600 in all: it must be longer than `engine`. `data_version` is how old a
    reading of the engine's version may be by which a release is looked up again, at most 60; where the policy fixes the
    version, none is needed. `account_open` is how old the ledger's answer that an account is open may be by which it is
    given again what it has paid for, at most 60.
    """

    dp: float = 30.0
    engine: float = 45.0
    budget_attempt: float = 2.0
    budget: float = 8.0
    budget_silence: float = 0.2
    budget_held: float = 60.0
    reservation: int = 60
    data_version: float = 60.0
    account_open: float = 60.0


def open_channel(
    address: Address, retried: Sequence[str] = (), *, waiting: Sequence[str] = ()
) -> grpc.aio.Channel:
    """Opens a channel to a service; it belongs to the running event loop.

    An address in one of gRPC's own forms, "dns:///name:port" or "ipv4:host:port,host:port", stands for replicas. They
    are used in turn, except those whose health check reports that they do not serve, as one does before it stops. A
    plain "host:port" is one server. This machine is never asked through a proxy.

    Args:
        address: the address, with credentials if it is behind TLS.
        retried: methods ("package.Service/Method") whose calls gRPC itself retries when they end in UNAVAILABLE.
        waiting: services whose calls wait, within their deadline, until a replica is connected.

    Raises:
        InvalidQuestion: the address is a list in another form, or a file of its credentials cannot be used.
        ForkedError: this process was forked while a connection was open.
    """
    forks.require_usable()
    target = named(address)
    require_target(target)
    config: dict[str, Any] = {"methodConfig": _retry_policy(retried)}
    if target.startswith(REPLICATED):
        config["methodConfig"] = _waiting(config["methodConfig"], waiting)
        config["loadBalancingConfig"] = [{"round_robin": {}}]
        config["healthCheckConfig"] = {"serviceName": ""}
    options = (*_OPTIONS, *proxies.channel_options(target), ("grpc.service_config", json.dumps(config)))
    if isinstance(address, str):
        return forks.watched(grpc.aio.insecure_channel(target, options=options))
    return forks.watched(grpc.aio.secure_channel(target, address.credentials.for_channel(), options=options))


def _waiting(methods: list[dict[str, Any]], services: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the method config with these services' calls waiting for a replica, and those of `methods` with them."""
    # gRPC takes one entry for a method: its own, if it has one.
    names = [{"service": service} for service in services]
    whole = [{"name": names}] if names else []
    return [each | {"waitForReady": bool(services)} for each in methods + whole]


def _retry_policy(methods: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the method config; all retries of a call together wait less than `budget_silence`."""
    names = [dict(zip(("service", "method"), method.split("/"), strict=True)) for method in methods]
    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.01s",
        "backoffMultiplier": 2,
        "maxBackoff": "0.04s",
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return [{"name": names, "retryPolicy": policy}] if names else []

"""The connection of a region to its home."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from budget_service.configuration.budget_file import ConfigurationError
from budget_service.configuration.region_file import RegionConfiguration
from budget_service.regions.messages import HomeUnavailableError
from budget_service.server.home_client import LENT_BY, Answered, HomeStatusError
from budget_service.server.lending_service import SERVICE_NAME as LENDING
from budget_service.server.service import SERVICE_NAME as BUDGET
from gris_serving.tls import is_loopback

# In the order in which gRPC looks for one; it reads no other.
PROXY_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")
# Clients give one attempt two seconds.
TIMEOUT_SECONDS = 1.8
# gRPC itself retries nothing: what became of a charge is asked for by its request id. Pings find a connection that is
# cut without a word, and a home that is back is found within two seconds.
OPTIONS = (
    ("grpc.enable_retries", 0),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


log = logging.getLogger(__name__)


class HomeChannel:
    """Calls the home over gRPC; see `Caller`."""

    def __init__(self, channel: grpc.aio.Channel, token: str = "") -> None:
        self._channel = channel
        self._metadata = (("authorization", f"Bearer {token}"),) if token else ()
        self._methods: dict[str, Callable[..., Any]] = {}

    async def call(self, method: str, request: Message, answer: type[Answered]) -> Answered:
        """Return the home's answer; see `Caller`."""
        try:
            found: Answered = await self._method(method, request, answer)(
                request, timeout=TIMEOUT_SECONDS, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
            if isinstance(details, bytes):
                raise HomeStatusError(Status.FromString(details)) from None
            if error.code() in _SILENCE:
                raise HomeUnavailableError(error.code().name) from None
            raise HomeStatusError(Status(code=error.code().value[0], message=error.details() or "")) from None
        return found

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()

    def _method(self, method: str, request: Message, answer: type[Answered]) -> Callable[..., Any]:
        if method not in self._methods:
            service = LENDING if method in LENT_BY else BUDGET
            self._methods[method] = self._channel.unary_unary(
                f"/{service}/{method}",
                request_serializer=type(request).SerializeToString,
                response_deserializer=answer.FromString,
            )
        return self._methods[method]


_SILENCE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
)


def open_channel(region: RegionConfiguration) -> HomeChannel:
    """Return a connection to the home. Raises ConfigurationError if a file it needs cannot be read."""
    token = "" if region.token_file is None else _read("token_file", region.token_file).decode().strip()
    # This machine is never asked through a proxy of the environment.
    if not is_loopback(region.home):
        _warn_of_proxy()
    options = (*OPTIONS, *(("grpc.enable_http_proxy", 0),) * is_loopback(region.home))
    if region.tls is None:
        return HomeChannel(grpc.aio.insecure_channel(region.home, options))
    tls = region.tls
    credentials = grpc.ssl_channel_credentials(
        _read("tls.ca_file", tls.ca_file),
        None if tls.key_file is None else _read("tls.key_file", tls.key_file),
        None if tls.certificate_file is None else _read("tls.certificate_file", tls.certificate_file),
    )
    return HomeChannel(grpc.aio.secure_channel(region.home, credentials, options), token)


def _warn_of_proxy() -> None:
    """Say which variable sends calls to the home through a proxy, unless no_proxy lists it: it may be at fault."""
    variable = next((name for name in PROXY_VARIABLES if os.environ.get(name)), "")
    if variable:
        # Only the name: its value may hold a password.
        fields = {"variable": variable}
        log.warning(
            "The home may be asked through a proxy.", extra={"event": "home.proxied", "fields": fields}
        )


def _read(field: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{field}: {path}: {error.strerror or 'cannot be read'}") from None

"""What a gateway serves beside gRPC, in its own process and by its own calls; the libraries of each are an extra."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Protocol

from gris_gateway.face_admission import FaceAdmission
from gris_gateway.face_settings import FaceSettings, HttpSettings, PostgresSettings
from gris_gateway.limits import GatewayLimits
from gris_gateway.page_settings import PageSettings
from gris_serving.reloading_files import SecurityError

# The modules that serve each key of the configuration, and the extra that brings their libraries.
_SERVED_BY = {
    "mcp": (("gris_gateway.faces.mcp.http", "gris_gateway.http_faces"), "mcp"),
    "broker": (("gris_gateway.faces.broker.application", "gris_gateway.http_faces"), "broker"),
    "postgres": (("gris_gateway.faces.postgres.server",), "postgres-wire"),
    "page": (("gris_gateway.faces.page.rendering", "gris_gateway.http_faces"), "page"),
}


class Face(Protocol):
    """A server, ready to listen."""

    def serving(self) -> AbstractAsyncContextManager[str]:
        """Serve while the block runs, and yield the address; then what has begun gets the grace period.

        Raises:
            SecurityError: It cannot listen.
        """
        ...


def require_libraries(name: str) -> None:
    """Import what serves a key of the configuration.

    Raises:
        SecurityError: A library is missing.
    """
    modules, extra = _SERVED_BY[name]
    try:
        for each in modules:
            import_module(each)
    except ModuleNotFoundError as error:
        raise SecurityError(
            f"{name}: this needs the package {error.name}: pip install 'gris-dp[{extra}]'"
        ) from None


def face_of(
    name: str,
    settings: FaceSettings,
    tls: ssl.SSLContext | None,
    admitting: FaceAdmission,
    limits: GatewayLimits,
) -> Face:
    """Return what serves a key of the configuration.

    Args:
        name: The key.
        settings: What it states.
        tls: The TLS of the address; None: plain text.
        admitting: Admits its callers.
        limits: The limits and time-outs.
    """
    if isinstance(settings, HttpSettings | PageSettings):
        from gris_gateway.http_faces import HttpServer, application_of, page_of  # noqa: PLC0415 - an extra

        if isinstance(settings, HttpSettings):
            application = application_of(settings, admitting, limits)
        else:
            application = page_of(settings, admitting, limits, is_secure=tls is not None)
        return HttpServer(name, settings.listen, tls, application, limits)
    from gris_gateway.faces.postgres.catalogue_process import programs  # noqa: PLC0415 - an extra
    from gris_gateway.faces.postgres.server import PostgresServer  # noqa: PLC0415 - an extra
    from gris_gateway.faces.postgres.wire import WireRules  # noqa: PLC0415 - an extra

    if not isinstance(settings, PostgresSettings):
        raise AssertionError("what is not over HTTP is for clients of PostgreSQL")
    rules = WireRules(
        message_bytes=limits.request_bytes,
        connections=limits.http_connections,
        account_connections=settings.per_account,
        login_seconds=limits.handshake_seconds,
        message_seconds=limits.caller_timeout_seconds,
        grace_seconds=limits.grace_seconds,
    )
    found = None if settings.catalogue is False else programs(settings.catalogue)
    return PostgresServer(name, settings.listen, tls, admitting, rules, programs=found)

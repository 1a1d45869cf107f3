"""The process of the console: it listens, and prints one line of JSON when it can serve."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import sys
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvicorn

from gris_console.application import application
from gris_console.authentication import CodeAuthenticator, OwnerRule, TokenAuthenticator
from gris_console.configuration import ConsoleConfiguration, ListenOptions
from gris_console.log_ins import LogIns
from gris_console.openid import OpenIdClient
from gris_console.page_requests import Console
from gris_console.services import OwnerAddresses, TokenSource
from gris_console.sessions import Sessions
from gris_console.site import Site
from gris_serving.documents import read_document
from gris_serving.http_connections import timed_protocol
from gris_serving.listening import ListeningError
from gris_serving.parents import stop_with_parent
from gris_serving.published_keys import DEFAULT_LIMITS, RefreshLimits
from gris_serving.reloading_files import SecurityError
from gris_serving.tokens import TokenVerifier
from pinot_connector.endpoints import Address

# Most of them wait for what a person does next; which of them are answered at a time is limited apart.
MOST_CONNECTIONS = 1000
HEADER_SECONDS = 15.0
KEEP_ALIVE_SECONDS = 15
GRACE_SECONDS = 30

Announce = Callable[[str, str], None]


class HostedConsole:
    """A console for everybody who has a token of the deployment, by its configuration.

    Args:
        configuration: The configuration.
        limits: How long the issuer of tokens may take.

    Raises:
        SecurityError: The configuration or a file cannot be used.
    """

    def __init__(self, configuration: ConsoleConfiguration, limits: RefreshLimits = DEFAULT_LIMITS) -> None:
        configuration.require_protected()
        configuration.require_readable()
        self._configuration = configuration
        owners = configuration.identity.owners
        self._verifier = TokenVerifier(configuration.identity.jwt, limits=limits)
        self._log_ins = self._provider()
        self._authenticator = TokenAuthenticator(
            self._verifier,
            owners=None if owners is None else OwnerRule(owners.claim, owners.equals),
            name_claim=configuration.identity.name_claim,
            session_seconds=60.0 * configuration.session_minutes,
        )
        self.listen_options = ListenOptions.of(configuration)

    def console(self, port: int) -> Console:
        """Return the console, once its port is known."""
        self._verifier.start()
        site, sessions = self._configuration.site(port), Sessions(self._gateway, self._owner)
        return Console.new(site, self._authenticator, sessions, self._configuration.notice, self._log_ins)

    def _provider(self) -> LogIns | None:
        login, published = self._configuration.identity.login, self._verifier.published
        if login is None or published is None:
            return None
        return LogIns(OpenIdClient(login, self._verifier, published, self._configuration.public_url or ""))

    def _gateway(self, token: TokenSource | None) -> Address:
        return self._configuration.gateway_address(_needed(token))

    def _owner(self, token: TokenSource | None) -> OwnerAddresses:
        owner = self._configuration.owner
        if owner is None:
            raise LookupError("the configuration names no services for owners")
        return owner.addresses(_needed(token))


class LocalConsole:
    """A console for one person on this machine, whose certificate or token the connections present.

    Args:
        listen: Where it listens, HOST:PORT of this machine.
        gateway: The gateway as this person reaches it.
        owner: The services as this person reaches them; None: there are no owner's pages.
    """

    def __init__(self, listen: str, gateway: Address, owner: OwnerAddresses | None) -> None:
        self.listen_options = ListenOptions(listen)
        self.authenticator = CodeAuthenticator("you", is_owner=owner is not None)
        self._gateway = gateway
        self._owner = owner

    def console(self, port: int) -> Console:
        """Return the console, once its port is known."""
        owner = self._owner
        services = None if owner is None else (lambda _: owner)
        site = Site.on_this_machine(port, secure=False)
        return Console.new(site, self.authenticator, Sessions(lambda _: self._gateway, services))


def _needed(token: TokenSource | None) -> TokenSource:
    """Return where a token comes from: without one, calls would be the console's own."""
    if token is None:
        raise LookupError("every log-in of this console has a token")
    return token


def run(hosted: HostedConsole | LocalConsole, announce: Announce, *, stops_with_stdin: bool = False) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        hosted: The console.
        announce: Is called with the address and the URL once it listens.
        stops_with_stdin: Whether it also ends at the end of standard input, a pipe of the program that has started it.

    Raises:
        ListeningError: It cannot listen on its address.
        SecurityError: A file of TLS cannot be used.
    """
    listen_options = hosted.listen_options
    with _bound(listen_options.address) as bound:
        port = bound.getsockname()[1]
        console = hosted.console(port)
        server = _Server(server_options(console, listen_options))
        server.stops_with_stdin = stops_with_stdin
        host = listen_options.address.rpartition(":")[0]
        server.begun = lambda: announce(f"{host}:{port}", sorted(console.site.origins)[0])
        server.run(sockets=[bound])


def open_in_browser(url: str) -> bool:
    """Open an address in this person's browser, and return whether there is one.

    Without a screen there is none: a browser of the terminal would take it from the console.
    """
    has_screen = sys.platform in ("darwin", "win32") or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    try:
        return has_screen and webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


def announce_as_json(address: str, url: str, code: str) -> None:
    """Print the line by which programs know that the console serves; `code` is that of one person's own console."""
    said = {"service": "console", "address": address, "url": url} | ({"code": code} if code else {})
    print(json.dumps(said), flush=True)


def read_configuration(path: Path) -> ConsoleConfiguration:
    """Return the configuration in a file.

    Raises:
        SecurityError: It is not valid; the message names the key.
    """
    return read_document(path, ConsoleConfiguration)


class _Server(uvicorn.Server):
    """Says when it serves, and not only that it was started."""

    begun: Callable[[], None]
    stops_with_stdin: bool

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.stops_with_stdin:
            stop_with_parent(partial(setattr, self, "should_exit", True))
        if self.started:
            self.begun()


def server_options(
    console: Console, listen_options: ListenOptions, *, header_seconds: float = HEADER_SECONDS
) -> uvicorn.Config:
    """Return how the console is served; a connection has so many seconds for the headers of each request.

    Raises:
        SecurityError: A file of TLS cannot be used.
    """
    # The access log would hold addresses of pages; uvicorn's own log is left to what the process has configured.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    config = uvicorn.Config(
        application(console),
        http=timed_protocol(header_seconds),
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        ssl_certfile=listen_options.certificate,
        ssl_keyfile=listen_options.key,
        ssl_ca_certs=None if listen_options.client_ca is None else str(listen_options.client_ca),
        ssl_cert_reqs=ssl.CERT_NONE if listen_options.client_ca is None else ssl.CERT_REQUIRED,
    )
    try:
        config.load()
    except (OSError, ssl.SSLError):
        raise SecurityError(
            "tls: expected a certificate, its key and perhaps an authority (PEM) that can be read and belong together"
        ) from None
    return config


def _bound(address: str) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ListeningError: It cannot.
    """
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        bound = socket.socket(found[0])
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(found[4])
    except OSError as error:
        raise ListeningError((error.strerror or "it cannot be used").lower()) from None
    return bound

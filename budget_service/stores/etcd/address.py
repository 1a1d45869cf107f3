"""The address of an etcd store, read strictly: no error shows any part of it."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

import grpc

from budget_service.ledger.windows import SECOND, Microseconds
from budget_service.stores.interface import StoreUnusableError

DEFAULT_PREFIX = "gris"
DEFAULT_CLOCK_SKEW_SECONDS = 1.0
# Beyond these a bound means nothing: less than the networks take, or more than a reservation may last.
LEAST_CLOCK_SKEW_SECONDS, MOST_CLOCK_SKEW_SECONDS = 0.1, 60.0
LARGEST_PORT = 65535
UNREADABLE = (
    "the address of etcd cannot be read: it is etcd[s]://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/PREFIX"
    "?ca=FILE&cert=FILE&key=FILE&max_clock_skew=SECONDS, every member has its port, and characters such as "
    "# / ? @ : [ ] % in the password are percent-encoded (# is %23)"
)
_WORD = r"(?:[A-Za-z0-9._~!$'()*+;-]|%[0-9A-Fa-f]{2})+"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5}"
_PARAMETER = r"[a-z_]+=(?:[A-Za-z0-9._~/,:+-]|%[0-9A-Fa-f]{2})+"
_ADDRESS = re.compile(
    rf"(?P<scheme>etcds?)://(?:(?P<user>{_WORD}):(?P<password>{_WORD})@)?(?P<hosts>{_HOST}(?:,{_HOST})*)"
    rf"(?:/(?P<prefix>[A-Za-z0-9._-]*))?(?:\?(?P<parameters>{_PARAMETER}(?:&{_PARAMETER})*))?"
)
_FILES = ("ca", "cert", "key")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a member takes clients."""

    host: str
    port: int

    @property
    def target(self) -> str:
        """The name of the member for gRPC."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """How to reach a cluster; never shown, as it may hold a password.

    Without a `user` the name in the client's certificate counts, if there is one.
    """

    endpoints: tuple[Endpoint, ...]
    prefix: str
    user: str
    password: str
    with_tls: bool
    files: dict[str, Path]
    max_clock_skew: Microseconds

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Return what gRPC connects with, None without TLS. Raises StoreUnusableError."""
        if not self.with_tls:
            return None
        ca, cert, key = (_read(name, self.files.get(name)) for name in _FILES)
        return grpc.ssl_channel_credentials(ca, key, cert)

    def tls_context(self) -> ssl.SSLContext | None:
        """Return what a plain connection to a member is made with, None without TLS. Raises StoreUnusableError."""
        if not self.with_tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.files.get("ca"))
            if "cert" in self.files:
                context.load_cert_chain(self.files["cert"], self.files["key"])
        except (OSError, ssl.SSLError):
            raise StoreUnusableError(
                "the files ca, cert and key of the store's address do not match"
            ) from None
        return context


def parse_address(address: str) -> Address:
    """Return how to reach `etcd[s]://...`. Raises StoreUnusableError, which shows no part of the address."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise StoreUnusableError(UNREADABLE)
    pairs = [(name, unquote(text)) for name, text in parse_qsl(found["parameters"] or "")]
    parameters = dict(pairs)
    if len(parameters) < len(pairs) or parameters.keys() - {*_FILES, "max_clock_skew"}:
        raise StoreUnusableError(UNREADABLE)
    files = {name: Path(parameters[name]) for name in _FILES if name in parameters}
    with_tls = found["scheme"] == "etcds"
    if files and not with_tls:
        raise StoreUnusableError("ca, cert and key in the address of etcd are for etcds://")
    if ("cert" in files) != ("key" in files):
        raise StoreUnusableError("the address of etcd needs cert and key together")
    endpoints = tuple(_endpoint(each) for each in found["hosts"].split(","))
    if len(set(endpoints)) < len(endpoints):
        raise StoreUnusableError("the address of etcd names a member twice")
    return Address(
        endpoints=endpoints,
        prefix=found["prefix"] or DEFAULT_PREFIX,
        user=unquote(found["user"] or ""),
        password=unquote(found["password"] or ""),
        with_tls=with_tls,
        files=files,
        max_clock_skew=_skew(parameters.get("max_clock_skew")),
    )


def _endpoint(text: str) -> Endpoint:
    host, _, port = text.rpartition(":")
    if not 0 < int(port) <= LARGEST_PORT:
        raise StoreUnusableError(UNREADABLE)
    return Endpoint(host, int(port))


def _skew(text: str | None) -> Microseconds:
    try:
        seconds = DEFAULT_CLOCK_SKEW_SECONDS if text is None else float(text)
    except ValueError:
        raise StoreUnusableError(UNREADABLE) from None
    if not LEAST_CLOCK_SKEW_SECONDS <= seconds <= MOST_CLOCK_SKEW_SECONDS:
        raise StoreUnusableError(
            f"max_clock_skew in the address of etcd is {LEAST_CLOCK_SKEW_SECONDS} to "
            f"{MOST_CLOCK_SKEW_SECONDS:g} seconds"
        )
    return round(seconds * SECOND)


def _read(name: str, path: Path | None) -> bytes | None:
    try:
        return None if path is None else path.read_bytes()
    except OSError as error:
        raise StoreUnusableError(f"{name} of the store's address, {path}: {error.strerror}") from None

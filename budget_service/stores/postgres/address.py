"""The address of a PostgreSQL store, checked before libpq sees it.

libpq quotes in its errors what it took for a host or a port, and where a password holds an unescaped character that is
a piece of the password. So an address is read strictly before libpq sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from budget_service.stores.interface import StoreUnusableError
from budget_service.tuning import DEFAULTS, Tuning

# So soon a server that says nothing is given up; `connect_timeout=SECONDS` in the address allows a far one more.
CONNECT_TIMEOUT_SECONDS = 0.2

# Gris' own parameter; libpq knows none of this name.
SYNCHRONOUS, REQUIRED = "synchronous", "required"
LARGEST_PORT = 65535
UNREADABLE = (
    "the address of PostgreSQL cannot be read: it is postgresql://USER:PASSWORD@HOST:PORT/DB?sslmode=..., the port is "
    "a number, and characters such as # / ? @ : [ ] % in the password are percent-encoded (# is %23)"
)
_WORD = r"(?:[A-Za-z0-9._~!$'()*+;-]|%[0-9A-Fa-f]{2})*"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?"
_PARAMETER = r"[a-z_]+=(?:[A-Za-z0-9._~/,:+-]|%[0-9A-Fa-f]{2})*"
_ADDRESS = re.compile(
    rf"postgres(?:ql)?://(?:{_WORD}(?::{_WORD})?@)?{_HOST}(?:,{_HOST})*(?:/{_WORD})?"
    rf"(?:\?{_PARAMETER}(?:&{_PARAMETER})*)?"
)

# What each session is set to, beside its time-outs. Every statement finds its rows by key: no plan made for an empty
# table may scan a full one.
SETTINGS = (
    "-c default_transaction_isolation=read\\ committed "
    "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off "
    "-c jit=off"
)


# Who waits learns of a network that was cut in about ten seconds.
ALIVE: dict[str, str | int | None] = {
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """What a connection is made with, for each host in turn; it is never shown, as it may hold a password.

    `must_be_synchronous`: whatever is acknowledged has to be on a standby too.
    """

    conninfos: tuple[str, ...]
    connect_timeout_seconds: float
    must_be_synchronous: bool = False


def parse_address(address: str, tuning: Tuning = DEFAULTS) -> Address:
    """Return how to connect to `postgresql://...`, with sessions that have the time-outs of `tuning`.

    Raises StoreUnusableError, which shows no part of the address.
    """
    if not _ADDRESS.fullmatch(address):
        raise StoreUnusableError(UNREADABLE)
    address, must_be_synchronous = _without_synchronous(address)
    try:
        parts = conninfo_to_dict(address)
        seconds = float(parts.pop("connect_timeout", None) or CONNECT_TIMEOUT_SECONDS)
    except (psycopg.Error, ValueError):
        raise StoreUnusableError(UNREADABLE) from None
    parts = ALIVE | parts
    parts["options"] = f"{parts.get('options') or ''} {_timeouts(tuning)} {SETTINGS}"
    parts |= {"fallback_application_name": "gris budget_service", "client_encoding": "UTF8"}
    hosts = str(parts.pop("host")).split(",")
    ports = str(parts.pop("port", "")).split(",")
    # One port may stand for all hosts; libpq's own time-out for each would be two seconds at least.
    ports = ports * len(hosts) if len(ports) == 1 else ports
    if any(port and int(port) > LARGEST_PORT for port in ports):
        raise StoreUnusableError(UNREADABLE)
    each = (parts | {"host": host, "port": port} for host, port in zip(hosts, ports, strict=True))
    return Address(tuple(make_conninfo("", **those) for those in each), seconds, must_be_synchronous)


def _without_synchronous(address: str) -> tuple[str, bool]:
    """Return the address as libpq knows it, and whether replication has to be synchronous."""
    place, _, query = address.partition("?")
    parameters = query.split("&") if query else []
    own = [each for each in parameters if each.partition("=")[0] == SYNCHRONOUS]
    if any(each != f"{SYNCHRONOUS}={REQUIRED}" for each in own):
        raise StoreUnusableError(
            f"{SYNCHRONOUS} in the address of PostgreSQL must be {REQUIRED}, if it is there"
        )
    rest = "&".join(each for each in parameters if each not in own)
    return f"{place}?{rest}" if rest else place, bool(own)


def _timeouts(tuning: Tuning) -> str:
    # A service that is held up within a transaction loses it, and its lock, while others still wait.
    lock = round(tuning.postgres_lock_seconds * 1000)
    statement = round(tuning.postgres_statement_seconds * 1000)
    return f"-c statement_timeout={statement} -c lock_timeout={lock} -c idle_in_transaction_session_timeout={lock}"

"""The keys of tokens as their issuer publishes them, fetched again and again in the background.

Calls only ever look at the keys in force: whether the issuer answers at once, slowly or never, no call waits for it.
A set that was fetched replaces the one before as a whole, so a key that its issuer takes out is believed until the next
refresh at most. While fetches fail, the last good set stays in force up to a greatest age; then no token is accepted.

A token with an unknown key asks for an early refresh, for its issuer may have begun to sign with a new one. Anyone can
send such tokens, so that refresh comes no sooner than `early_seconds` after the one before, and not while fetches fail.
"""

from __future__ import annotations

import json
import logging
import random
import ssl
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gris_serving.https_client import FetchError, FetchLimits, checked_url, fetch, trust
from gris_serving.instrumentation import NOTHING, Instrumentation
from gris_serving.public_keys import VerificationKey, keys_of_set
from gris_serving.reloading_files import ReloadingFiles, SecurityError

COMPONENT = "token_keys"
THREAD = "gris-token-keys"
DISCOVERY_PATH = "/.well-known/openid-configuration"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class KeyAddress:
    """Where an issuer publishes its keys, and for how long they count.

    `url` is the address of the set or, with `discover`, of the discovery document that says it.
    """

    url: str
    discover: bool
    issuer: str
    ca_file: str | None
    refresh_seconds: float
    max_age_seconds: float


@dataclass(frozen=True)
class RefreshLimits:
    """How soon an unknown key may lead to a refresh, and how long to wait after the first failures and after many."""

    early_seconds: float = 30.0
    retry_seconds: float = 1.0
    most_retry_seconds: float = 60.0
    fetch: FetchLimits = field(default_factory=FetchLimits)


DEFAULT_LIMITS = RefreshLimits()


@dataclass(frozen=True)
class _Fetched:
    keys: tuple[VerificationKey, ...]
    at: float


class PublishedKeys:
    """The keys of one issuer. Thread-safe. There are none before `start`.

    Args:
        address: Where they are.
        limits: The time-outs of refreshes.

    Raises:
        SecurityError: The file of authorities cannot be used. That the issuer does not answer is no error: it would
            keep everybody out, also those who show certificates.
    """

    def __init__(self, address: KeyAddress, limits: RefreshLimits = DEFAULT_LIMITS) -> None:
        ca_file = address.ca_file
        self._trust = ReloadingFiles(
            "authorities", [] if ca_file is None else [Path(ca_file)], lambda: trust(ca_file)
        )
        self.address = address
        self._limits = limits
        self._fetched: _Fetched | None = None
        self._failures = 0
        self._wanted = threading.Event()
        self._starting = threading.Lock()
        self._is_started = False
        self._instrumentation = NOTHING

    def start(self, instrumentation: Instrumentation) -> None:
        """Begin to fetch, in a thread that ends when nobody holds these keys any more. It may be called again."""
        with self._starting:
            if self._is_started:
                return
            self._is_started = True
            self._instrumentation = instrumentation
            following = (weakref.ref(self), self._wanted)
            # At the end of the program it would bring one more fetch.
            weakref.finalize(self, self._wanted.set).atexit = False
            threading.Thread(target=_follow, args=following, name=THREAD, daemon=True).start()

    def value(self) -> tuple[VerificationKey, ...]:
        """Return the keys in force, none if they are too old."""
        fetched = self._in_force()
        return () if fetched is None else fetched.keys

    def _in_force(self) -> _Fetched | None:
        fetched = self._fetched
        if fetched is None or time.monotonic() - fetched.at > self.address.max_age_seconds:
            return None
        return fetched

    def refresh_early(self) -> None:
        """Ask for a refresh, as soon as there may be one."""
        self._wanted.set()

    def refresh(self) -> tuple[float, float]:
        """Fetch the keys, and return after how many seconds there may be another refresh, and shall be one."""
        try:
            keys = fetched_keys(self.address, self._trust.value(), self._limits.fetch)
        except FetchError as error:
            return self._failed(str(error))
        except Exception as error:
            # The thread goes on, whatever it is.
            return self._failed(type(error).__name__)
        before, self._fetched = self._fetched, _Fetched(keys, time.monotonic())
        if self._failures or before is None or before.keys != keys:
            level = logging.INFO if keys else logging.ERROR
            fields = {"keys": len(keys)}
            log.log(
                level, "The keys of tokens are others.", extra={"event": "keys.fetched", "fields": fields}
            )
        self._failures = 0
        self._report(serving=bool(keys))
        shortest, longest = self._limits.early_seconds, self.address.refresh_seconds
        return shortest, max(shortest, _spread(longest, 0.9))

    def _report(self, *, serving: bool) -> None:
        # Whatever is wrong with the metrics, keys are fetched.
        with suppress(Exception):
            self._instrumentation.report(COMPONENT, serving=serving)

    def _failed(self, problem: str) -> tuple[float, float]:
        self._report(serving=False)
        retry_seconds = self._limits.retry_seconds * 2 ** min(self._failures, 16)
        retry_seconds = _spread(min(retry_seconds, self._limits.most_retry_seconds), 0.5)
        self._failures += 1
        age = None if self._fetched is None else round(time.monotonic() - self._fetched.at)
        in_force = len(self.value())
        fields = {
            "problem": problem,
            "keys": in_force,
            "age_seconds": age,
            "retry_seconds": round(retry_seconds, 1),
        }
        log.log(
            logging.WARNING if in_force else logging.ERROR,
            "The keys of tokens cannot be fetched.",
            extra={"event": "keys.not_fetched", "fields": fields},
        )
        return retry_seconds, retry_seconds


def fetched_keys(
    address: KeyAddress, context: ssl.SSLContext, limits: FetchLimits
) -> tuple[VerificationKey, ...]:
    """Return the keys that an issuer publishes now.

    Raises:
        FetchError: As `fetch` (`https_client`); or `discovery`: the issuer's document is none, or names another issuer
            or no address of keys; or `keys`: what is there is no JWK set that is safe to use.
    """
    content = fetch(address.url, context, limits)
    if address.discover:
        content = fetch(_keys_url(content, address.issuer), context, limits)
    try:
        return keys_of_set(content, address.url)
    except SecurityError:
        raise FetchError("keys") from None


def discovery_url(issuer: str) -> str:
    """Return where an issuer's discovery document is (OpenID Connect Discovery 1.0, 4.1)."""
    return issuer.removesuffix("/") + DISCOVERY_PATH


def _keys_url(content: bytes, issuer: str) -> str:
    """Return where the keys are by a discovery document; it may be another host, and is no less safe."""
    try:
        document = json.loads(content)
        url = checked_url(document["jwks_uri"])
        is_less_safe = urlsplit(url).scheme != "https" and urlsplit(issuer).scheme == "https"
        if document["issuer"] != issuer or is_less_safe:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FetchError("discovery") from None
    return url


def _follow(held: weakref.ref[PublishedKeys], wanted: threading.Event) -> None:
    while True:
        wanted.clear()
        keys = held()
        if keys is None:
            return
        shortest, longest = keys.refresh()
        del keys
        time.sleep(shortest)
        wanted.wait(longest - shortest)


def _spread(seconds: float, smallest_part: float) -> float:
    """Return a time from a part of this one up to all of it, so that replicas do not ask at one moment."""
    return seconds * random.uniform(smallest_part, 1)  # noqa: S311 - nothing depends on it

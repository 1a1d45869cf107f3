"""Log-ins that are under way at the provider: what they are compared with when a browser comes back.

All of it is in memory and bounded, for strangers begin log-ins. A browser has the key of its own in a cookie, and each
serves once.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gris_console.forms import Form
from gris_console.openid import Attempt, Failure, LogInError, OpenIdClient

SECONDS = 600
MOST = 20_000
# Forms of people whose log-in was over, each of up to 512 KiB.
MOST_FORMS = 64
_KEY_BYTES = 32


@dataclass(frozen=True)
class _UnderWay:
    attempt: Attempt
    target: str
    ends: float


class LogIns:
    """The log-ins at one provider that are under way.

    Args:
        client: Speaks with the provider.
        clock: A time in seconds that only grows.
        most: How many there may be; the oldest makes room.
    """

    def __init__(
        self,
        client: OpenIdClient,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST,
    ) -> None:
        self.client = client
        self._clock = clock
        self._most = most
        self._held: OrderedDict[str, _UnderWay] = OrderedDict()
        self._forms: OrderedDict[str, Form] = OrderedDict()

    def begin(self, target: str, kept: Form) -> tuple[str, str]:
        """Begin a log-in; return its key, for the cookie, and where the browser goes.

        Args:
            target: The page that it leads to.
            kept: What a form had when an earlier log-in was over; empty for strangers.

        Raises:
            LogInError: The provider has not said where.
        """
        while self._held and next(iter(self._held.values())).ends <= self._clock():
            self._held.popitem(last=False)
        attempt, key = Attempt(), secrets.token_urlsafe(_KEY_BYTES)
        address = self.client.address(attempt)
        self._held[key] = _UnderWay(attempt, target, self._clock() + SECONDS)
        if not kept.is_empty:
            self._forms[key] = kept
        _bound(self._held, self._most)
        _bound(self._forms, MOST_FORMS)
        return key, address

    def take(self, key: str, state: str) -> tuple[Attempt, str]:
        """Return what a log-in that comes back is compared with, and the page that it leads to.

        A wrong state takes nothing: another site may have sent this browser here.

        Raises:
            LogInError: This browser has begun none with this state, or too long ago, or it has come back before.
        """
        found = self._held.get(key)
        if (
            found is None
            or found.ends <= self._clock()
            or not hmac.compare_digest(found.attempt.state.encode(), state.encode())
        ):
            raise LogInError(Failure.NOT_BEGUN, "no log-in of this browser is under way")
        del self._held[key]
        return found.attempt, found.target

    def form(self, key: str) -> Form:
        """Return what was kept of a form, empty if nothing was."""
        return self._forms.get(key, Form())


def _bound(held: OrderedDict[str, Any], most: int) -> None:
    while len(held) > most:
        held.popitem(last=False)

"""Log-ins: who holds which cookie. They are kept in memory: a token leaves this process for the services alone."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gris_console.authentication import Person
from gris_console.services import OwnerAddresses, OwnerClient, TokenSource
from pinot_connector.endpoints import Address
from pinot_connector.gateway_client import AsyncGatewayClient

MOST_SESSIONS = 2000
# One person who logs in again and again ends earlier log-ins of the same person, and nobody else's.
MOST_OF_ONE = 20
_RANDOM_BYTES = 32


@dataclass
class Session:
    """One log-in: the person, who may come again with a newer token, and connections that carry the person's token.

    `form_key` is in every form of its pages, and in nobody else's. `owner` is None for who is no owner.
    """

    key: str
    person: Person
    gateway: AsyncGatewayClient
    owner: OwnerClient | None
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(_RANDOM_BYTES), repr=False)
    _uses: int = field(default=0, init=False, repr=False)
    _is_over: bool = field(default=False, init=False, repr=False)

    @property
    def is_used(self) -> bool:
        """Whether something still uses the connections."""
        return self._uses > 0

    def sent(self, form_key: str) -> bool:
        """Return whether a form comes from a page of this log-in."""
        return hmac.compare_digest(form_key.encode(), self.form_key.encode())

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keep the connections open while the block runs, even if the log-in ends meanwhile."""
        self._uses += 1
        try:
            yield
        finally:
            self._uses -= 1
            if self._is_over and not self._uses:
                await self.close()

    async def end(self) -> None:
        """Close the connections once nothing uses them: a question that runs may be paid for."""
        self._is_over = True
        if not self._uses:
            await self.close()

    async def close(self) -> None:
        """Close the connections at once."""
        await self.gateway.close()
        if self.owner is not None:
            await self.owner.close()


class Sessions:
    """All log-ins.

    Args:
        gateway: The gateway as a person reaches it who has this token.
        owner: The services as an owner reaches them who has this token; None: there are no owner's pages.
        clock: The time in seconds since 1970.
        most: How many there may be; the one that was idle the longest makes room.
    """

    def __init__(
        self,
        gateway: Callable[[TokenSource | None], Address],
        owner: Callable[[TokenSource | None], OwnerAddresses] | None = None,
        *,
        clock: Callable[[], float] = time.time,
        most: int = MOST_SESSIONS,
    ) -> None:
        self._gateway = gateway
        self._owner = owner
        self._clock = clock
        self._most = most
        self._held: OrderedDict[str, Session] = OrderedDict()
        # Tells keys of log-ins that are over from made-up ones, without a list of them.
        self._secret = secrets.token_bytes(_RANDOM_BYTES)
        # Log-ins that are over, whose last calls still run.
        self._ending: list[Session] = []

    async def begin(self, person: Person) -> Session:
        """Begin a log-in."""
        key = self._signed(secrets.token_urlsafe(_RANDOM_BYTES))

        # It is asked for at every call, for the person may have come again with a newer token.
        def token() -> str:
            return held[0].person.token or ""

        source = None if person.token is None else token
        gateway = AsyncGatewayClient(self._gateway(source))
        has_pages = person.is_owner and self._owner is not None
        owner = OwnerClient(self._owner(source)) if has_pages and self._owner is not None else None
        held = [Session(key, person, gateway, owner)]
        await self._make_room(person.subject)
        self._held[key] = held[0]
        return held[0]

    def has_issued(self, key: str) -> bool:
        """Return whether a key is of a log-in that was begun here, over or not."""
        return hmac.compare_digest(self._signed(key.partition(".")[0]).encode(), key.encode())

    def _signed(self, random: str) -> str:
        return f"{random}.{hmac.new(self._secret, random.encode(), hashlib.sha256).hexdigest()}"

    async def _make_room(self, subject: str) -> None:
        alike = [key for key, each in self._held.items() if each.person.subject == subject]
        for key in alike[: max(0, len(alike) - MOST_OF_ONE + 1)]:
            await self.end(key)
        while len(self._held) >= self._most:
            await self.end(next(iter(self._held)))

    async def find(self, key: str) -> Session | None:
        """Return the log-in of a cookie; None: there is none, or it is over."""
        found = self._held.get(key)
        if found is None:
            return None
        if found.person.expires_at <= self._clock():
            await self.end(key)
            return None
        self._held.move_to_end(key)
        return found

    async def end(self, key: str) -> None:
        """End a log-in, whose running calls go on; ending one that is over does nothing."""
        found = self._held.pop(key, None)
        if found is not None:
            self._ending = [each for each in self._ending if each.is_used] + [found]
            await found.end()

    async def close(self) -> None:
        """End all of them, and the calls that run."""
        for each in [*self._held.values(), *self._ending]:
            await each.close()
        self._held.clear()
        self._ending.clear()

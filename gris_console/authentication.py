"""Who may come in: by a token of the deployment or, on one's own machine, by a code that the terminal shows.

A token is verified here as the gateway verifies it, so that the pages can say who has logged in and for how long. What
its holder may do is decided by the gateway and the services, which get the same token with every call.
"""

from __future__ import annotations

import hmac
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from gris_serving.tokens import TokenError, TokenVerifier, is_or_lists

MAX_NAME = 80
CODE_BYTES = 10


class AuthenticationError(Exception):
    """Nobody comes in with this; the message says what was expected, and shows nothing of it."""


@dataclass(frozen=True)
class Person:
    """Who has logged in.

    `subject` is the same for every token of one person. `expires_at` is in seconds since 1970, infinite where nothing
    ends the log-in. `token` is what calls carry; None: the console of one person, whose files the connections present.
    """

    name: str
    subject: str
    is_owner: bool
    expires_at: float
    token: str | None = field(default=None, repr=False)


class Authenticator(Protocol):
    """Lets people in."""

    kind: str
    """"token" or "code": what the page asks for."""

    def person(self, shown: str) -> Person:
        """Return who shows this.

        Raises:
            AuthenticationError: Nobody does.
        """
        ...


@dataclass(frozen=True)
class OwnerRule:
    """Those whose claim `claim` is, or lists, `equals` are owners."""

    claim: str
    equals: str

    def holds(self, claimed: object) -> bool:
        """Return whether a claim makes an owner."""
        return is_or_lists(claimed, self.equals)


class TokenAuthenticator:
    """Lets in who has a token of the deployment.

    Args:
        verifier: Accepts tokens, as the gateway does.
        owners: Who is an owner; None: nobody.
        name_claim: The claim by which a person is called on the pages.
        session_seconds: How long a log-in lasts at most.
        clock: The time in seconds since 1970.
    """

    kind = "token"

    def __init__(
        self,
        verifier: TokenVerifier,
        *,
        owners: OwnerRule | None = None,
        name_claim: str = "sub",
        session_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._verifier = verifier
        self._owners = owners
        self._name_claim = name_claim
        self._session_seconds = session_seconds
        self._clock = clock

    def person(self, shown: str) -> Person:
        """Return whose token this is."""
        token = shown.strip()
        if not token:
            raise AuthenticationError("expected a token")
        try:
            claims = self._verifier.claims(token)
        except TokenError as error:
            raise AuthenticationError(str(error)) from None
        subject = claims.get("sub")
        if not isinstance(subject, str) or not subject:
            raise AuthenticationError("expected a token that says whose it is (sub)")
        ends = min(_number(claims.get("exp")), self._clock() + self._session_seconds)
        is_owner = self._owners is not None and self._owners.holds(claims.get(self._owners.claim))
        name = claims.get(self._name_claim)
        return Person(
            name=name[:MAX_NAME] if isinstance(name, str) and name else "somebody",
            subject=f"{claims.get('iss')}\n{subject}\n{name}",
            is_owner=is_owner,
            expires_at=ends,
            token=token,
        )


class CodeAuthenticator:
    """Lets in who reads the code that a console on one's own machine has printed; `is_owner`: it has owner's pages."""

    kind = "code"

    def __init__(self, name: str, *, is_owner: bool) -> None:
        self.code = secrets.token_hex(CODE_BYTES)
        self._name = name
        self._is_owner = is_owner

    def person(self, shown: str) -> Person:
        """Return the only person there is."""
        if not hmac.compare_digest(shown.strip().encode(), self.code.encode()):
            raise AuthenticationError("expected the code that gris console has printed")
        return Person(self._name, "", self._is_owner, math.inf)


def _number(claim: Any) -> float:
    """Return when a token ends; the verifier has required a number."""
    return float(claim) if isinstance(claim, int | float) else 0.0

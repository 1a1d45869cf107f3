"""Who does what an administrator may do: never a name from a request, which anyone could choose."""

from __future__ import annotations

import os
import pwd
from urllib.parse import quote

from budget_service.ledger.ignorable import has_ignorable
from budget_service.server.request_runner import Context
from budget_service.server.rpc_errors import RefusalError, caller_unnamed, token_refused
from gris_serving.authorisation import Role
from gris_serving.security import Security
from gris_serving.tokens import TokenError

UNAUTHENTICATED = "unauthenticated"
"""Who calls a service that asks nobody who they are. No name that is authenticated has no kind before it."""
MOST_CHARACTERS = 256
"""The longest name of an administrator: of a certificate, or of a token's subject with its kind."""


def actor_of(security: Security, context: Context) -> str:
    """Return the names by which a caller is an administrator, separated by spaces.

    Raises:
        RefusalError: Its token does not say whose it is, or is not accepted any more.
    """
    try:
        names = security.names(context, Role.ADMIN)
    except TokenError as error:
        raise RefusalError(token_refused(str(error))) from None
    if names is None:
        return UNAUTHENTICATED
    if not names or any(len(each) > MOST_CHARACTERS for each in names):
        raise RefusalError(caller_unnamed())
    return " ".join(map(escaped, names))


def local_actor() -> str:
    """Return the user whom this process runs as. The environment has a name too, which that user could choose."""
    number = os.getuid()
    try:
        return f"local:{escaped(pwd.getpwuid(number).pw_name)}"
    except KeyError:
        return f"local:{number}"


def escaped(name: str) -> str:
    """Return a name by which nobody passes for several, or for somebody whose name looks the same."""
    return "".join(each if _is_plain(each) else quote(each, errors="surrogatepass") for each in name)


def _is_plain(character: str) -> bool:
    # The blank pattern of Braille is printable, and looks like a space.
    return character.isprintable() and character not in " %\u2800" and not has_ignorable(character)

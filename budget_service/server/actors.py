"""Who does what an administrator may do: never a name from a request, which anyone could choose."""

from __future__ import annotations

import os
import pwd
from urllib.parse import quote

from budget_service.server.request_runner import Context
from budget_service.server.rpc_errors import RefusalError, caller_unnamed, token_refused
from gris_serving.authorisation import Role
from gris_serving.security import Security
from gris_serving.tokens import TokenError

UNAUTHENTICATED = "unauthenticated"
"""Who calls a service that asks nobody who they are. No name that is authenticated has no kind before it."""


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
    if not names:
        raise RefusalError(caller_unnamed())
    return " ".join(map(_escaped, names))


def local_actor() -> str:
    """Return the user whom this process runs as. The environment has a name too, which that user could choose."""
    number = os.getuid()
    try:
        return f"local:{_escaped(pwd.getpwuid(number).pw_name)}"
    except KeyError:
        return f"local:{number}"


def _escaped(name: str) -> str:
    # Nobody passes for several, or for somebody whose name looks the same.
    return "".join(
        each if each.isprintable() and each not in " %" else quote(each, errors="surrogatepass")
        for each in name
    )

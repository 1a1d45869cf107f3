"""Logging in at the provider of the organisation, and coming back from there."""

from __future__ import annotations

import logging
from ipaddress import IPv4Address, ip_address

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gris_console.authentication import AuthenticationError, Person
from gris_console.forms import Form, FormError
from gris_console.log_ins import SECONDS, LogIns
from gris_console.openid import Failure, LogInError
from gris_console.page_requests import (
    KEPT_PATH,
    KEPT_PREFIX,
    Console,
    PageRequest,
    guarded,
    resume_page,
    sent_form,
    sign_in_page,
    wanted_page,
)

RESUME = "/login/resume"
FAILED = "failed"
_TEXTS = {
    Failure.NOT_BEGUN: (
        "This log-in was not begun in this browser, or was begun more than ten minutes ago, or has been used. Nothing "
        "was done; log in again."
    ),
    Failure.REFUSED: "Your organisation's log-in has let nobody in. Nothing was done; log in again.",
    Failure.UNREACHABLE: "Your organisation's log-in does not answer now. Try again in a little while.",
    Failure.UNEXPECTED: (
        "Your organisation's log-in gave an answer that is not accepted here. The log of the console says why."
    ),
    Failure.TOKEN: (
        "Your organisation's log-in gave a token that is not accepted here. The log of the console says why."
    ),
}

log = logging.getLogger(__name__)


@guarded
async def begin(request: Request) -> Response:
    """Send somebody to the provider.

    By a page that leads on, not by a redirect: where a form may be sent (`form-action`) holds for every redirect after
    it too, and where a provider redirects is not known.
    """
    console: Console = request.app.state.console
    log_ins = _log_ins(console)
    try:
        form = await sent_form(request, is_known=console.had_log_in(request))
    except FormError as error:
        return console.rendered("failed.html", status=400, path="", problem=str(error))
    is_kept = console.had_log_in(request) and form.get(KEPT_PATH)
    try:
        key, address = log_ins.begin(
            RESUME if is_kept else wanted_page(form), form.without("shown") if is_kept else Form()
        )
    except LogInError as error:
        return _refused(console, request, form, error)
    response = console.rendered("log_in.html", path="", address=address, name=log_ins.client.name)
    console.set_cookie(response, console.log_in_cookie, key, SECONDS)
    return response


@guarded
async def come_back(request: Request) -> Response:
    """Let in who comes back from the provider. It only ever leads on, so no page has the code in its address."""
    console: Console = request.app.state.console
    try:
        person, target = await _person(console, request)
    except LogInError as error:
        _note(error)
        return RedirectResponse(f"/sign-in?{FAILED}={error.failure}", 303)
    response = RedirectResponse(target, 303)
    console.log_in(response, await console.begin(request, person))
    return response


async def resume(page_request: PageRequest) -> Response:
    """Offer to go on with what a form had when the last log-in was over."""
    console = page_request.console
    form = _kept(console, page_request.request)
    return resume_page(page_request, form.get(KEPT_PATH), form.below(KEPT_PREFIX))


def failed_page(console: Console, request: Request) -> Response | None:
    """Return the page that asks who is there after a log-in at the provider has failed; None: none has."""
    if console.log_ins is None:
        return None
    try:
        problem = _TEXTS[Failure(request.query_params.get(FAILED, ""))]
    except ValueError:
        return None
    form = _kept(console, request)
    kept, path = form.below(KEPT_PREFIX), form.get(KEPT_PATH)
    return sign_in_page(console, request, kept, path=path, problem=problem)


async def _person(console: Console, request: Request) -> tuple[Person, str]:
    """Return who comes back, and where to.

    Raises:
        LogInError: Nobody whom the provider has let in.
    """
    log_ins = _log_ins(console)
    answer = dict(request.query_params.multi_items())
    attempt, target = log_ins.take(request.cookies.get(console.log_in_cookie, ""), answer.get("state", ""))
    if len(answer) != len(request.query_params.multi_items()):
        raise LogInError(Failure.UNEXPECTED, "the answer says something twice")
    token = await log_ins.client.token(attempt, answer, source_of(request))
    try:
        return console.authenticator.person(token), target
    except AuthenticationError as error:
        raise LogInError(Failure.TOKEN, f"access token: {error}") from None


def source_of(request: Request) -> str:
    """Return where a request comes from; of IPv6 the network, in which one sender has every address.

    Empty where it comes in plain text: then all come from the proxy that ends TLS.
    """
    if request.client is None or request.scope["scheme"] != "https":
        return ""
    address = ip_address(request.client.host)
    return str(address if isinstance(address, IPv4Address) else address.ipv4_mapped or int(address) >> 64)


def _refused(console: Console, request: Request, form: Form, error: LogInError) -> Response:
    _note(error)
    kept, path = form.below(KEPT_PREFIX), form.get(KEPT_PATH)
    return sign_in_page(console, request, kept, path=path, problem=_TEXTS[error.failure], status=503)


def _note(error: LogInError) -> None:
    # Anybody can come back from nowhere.
    if error.failure is not Failure.NOT_BEGUN:
        log.warning("Nobody was let in.", extra={"event": "log_in.failed", "fields": {"problem": str(error)}})


def _kept(console: Console, request: Request) -> Form:
    return _log_ins(console).form(request.cookies.get(console.log_in_cookie, ""))


def _log_ins(console: Console) -> LogIns:
    if console.log_ins is None:
        raise LookupError("this console has no provider")
    return console.log_ins

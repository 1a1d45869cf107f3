"""Logging in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gris_console.authentication import AuthenticationError
from gris_console.forms import Form, FormError
from gris_console.page_requests import (
    KEPT_PATH,
    KEPT_PREFIX,
    Console,
    PageRequest,
    guarded,
    resume_page,
    sent_form,
    sign_in_page,
)
from gris_console.pages.log_in import failed_page


@guarded
async def sign_in_form(request: Request) -> Response:
    """Ask who is there."""
    console: Console = request.app.state.console
    return failed_page(console, request) or sign_in_page(console, request, Form(), status=200)


@guarded
async def sign_in(request: Request) -> Response:
    """Let somebody in, and offer to go on with what a form had when the last log-in was over."""
    console: Console = request.app.state.console
    try:
        form = await sent_form(request, is_known=console.had_log_in(request))
    except FormError as error:
        return console.rendered("failed.html", status=400, path="", problem=str(error))
    try:
        person = console.authenticator.person(form.get("shown"))
    except AuthenticationError as error:
        kept = form.below(KEPT_PREFIX)
        return sign_in_page(console, request, kept, path=form.get(KEPT_PATH), problem=str(error))
    session = await console.begin(request, person)
    page_request = PageRequest(console, request, session, form)
    response = resume_page(page_request, form.get(KEPT_PATH), form.below(KEPT_PREFIX))
    console.log_in(response, session)
    return response


async def sign_out(page_request: PageRequest) -> Response:
    """End the log-in."""
    await page_request.console.sessions.end(page_request.session.key)
    response = RedirectResponse("/sign-in", 303)
    # What the button that leads back would still show.
    response.headers["clear-site-data"] = '"cache"'
    for name in (page_request.console.cookie, page_request.console.log_in_cookie):
        response.delete_cookie(
            name, path="/", secure=page_request.console.site.is_secure, httponly=True, samesite="lax"
        )
    return response

"""Logging in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gris_console.entrance import EntranceError
from gris_console.forms import Form, FormError, read_form
from gris_console.visits import KEPT, KEPT_PATH, Console, Visit, entrance_page, guarded, resume_page


@guarded
async def sign_in_form(request: Request) -> Response:
    """Ask who is there."""
    return entrance_page(request.app.state.console, request, Form(), status=200)


@guarded
async def sign_in(request: Request) -> Response:
    """Let somebody in, and offer to go on with what a form had when the last log-in was over."""
    console: Console = request.app.state.console
    try:
        form = await read_form(request)
    except FormError as error:
        return console.rendered("failed.html", status=400, path="", problem=str(error))
    try:
        person = console.entrance.person(form.get("shown"))
    except EntranceError as error:
        kept = form.below(KEPT)
        return entrance_page(console, request, kept, path=form.get(KEPT_PATH), problem=str(error))
    # The log-in that this browser had before, perhaps another person's, is over.
    await console.sessions.end(request.cookies.get(console.cookie, ""))
    session = await console.sessions.begin(person)
    visit = Visit(console, request, session, form)
    response = resume_page(visit, form.get(KEPT_PATH), form.below(KEPT))
    console.log_in(response, session)
    return response


async def sign_out(visit: Visit) -> Response:
    """End the log-in."""
    await visit.console.sessions.end(visit.session.key)
    response = RedirectResponse("/sign-in", 303)
    # What the button that leads back would still show.
    response.headers["clear-site-data"] = '"cache"'
    response.delete_cookie(visit.console.cookie, path="/", secure=visit.console.site.is_secure, httponly=True)
    return response

"""One request of somebody who has logged in: who it is, what was sent, and how a page is made of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gris_console import formatting
from gris_console.answers import QuestionsInFlight, RecentAnswers, is_cancelled
from gris_console.authentication import AuthenticationError, Authenticator, Person
from gris_console.forms import MAX_BYTES, STRANGER_BYTES, Form, FormError, read_form
from gris_console.log_ins import LogIns
from gris_console.problems import Problem, ends_log_in, problem_of
from gris_console.services import OwnerClient
from gris_console.sessions import Session, Sessions
from gris_console.site import Site
from gris_serving.internal_errors import log_internal_error
from pinot_connector.errors import GrisError, InvalidQuestion

# Pages that are made at a time, of people who have logged in.
MOST_REQUESTS = 256
FORM_KEY = "form_key"
KEPT_PREFIX = "kept."
KEPT_PATH = "kept_path"
# Forms that are offered again after a log-in, and where they then go. None of these places changes anything.
RESUME_PATHS = {
    "/ask": "/ask",
    "/price": "/price",
    "/answer": "/price",
    "/owner/accounts": "/owner/accounts",
    "/owner/limit": "/owner/accounts",
    "/owner/usage": "/owner/usage",
    "/owner/guarantee": "/owner/guarantee",
    "/owner/plan": "/owner/plan",
    "/owner/policy": "/owner/policy",
}
SIGN_OUT = "/sign-out"
# Pages that a log-in may lead to.
MOST_OF_ADDRESS = 200
PAGES = ("/ask", "/answers/", "/history", "/budget", "/owner/")
_SCHEME = "bearer "

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Console:
    """What all requests share; `log_ins` is None where nobody logs in at a provider."""

    site: Site
    authenticator: Authenticator
    sessions: Sessions
    answers: RecentAnswers
    in_flight: QuestionsInFlight
    templates: Environment
    log_ins: LogIns | None = None
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MOST_REQUESTS))

    @classmethod
    def new(
        cls,
        site: Site,
        authenticator: Authenticator,
        sessions: Sessions,
        notice: str | None = None,
        log_ins: LogIns | None = None,
    ) -> Console:
        """Return a console without sessions; every page shows the notice, if there is one."""
        templates = _templates(notice)
        return cls(site, authenticator, sessions, RecentAnswers(), QuestionsInFlight(), templates, log_ins)

    @property
    def cookie(self) -> str:
        """The name of the cookie of a log-in; with this prefix browsers send it to this host alone, and only by TLS."""
        name = "__Host-gris" if self.site.is_secure else "gris"
        # Browsers send a cookie to every port of its host.
        return f"{name}-{self.site.port}" if self.site.port else name

    @property
    def log_in_cookie(self) -> str:
        """The name of the cookie of a log-in that is under way at the provider."""
        return f"{self.cookie}-log-in"

    def rendered(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page."""
        return HTMLResponse(self.templates.get_template(template).render(**values), status)

    def key(self, request: Request) -> str:
        """Return the key of a log-in that a browser presents; empty: none. It may be over."""
        return request.cookies.get(self.cookie, "")

    def had_log_in(self, request: Request) -> bool:
        """Return whether a request comes from a browser that has or had a log-in here: from no stranger."""
        return self.sessions.has_issued(self.key(request))

    async def begin(self, request: Request, person: Person) -> Session:
        """Begin a log-in; the one that this browser had before, perhaps another person's, is over."""
        await self.sessions.end(self.key(request))
        return await self.sessions.begin(person)

    def log_in(self, response: Response, session: Session) -> None:
        """Give the browser the cookie of a log-in."""
        self.set_cookie(response, self.cookie, session.key)

    def set_cookie(self, response: Response, name: str, value: str, seconds: int | None = None) -> None:
        """Give the browser a cookie; no script can read it, and no other site's form sends it."""
        response.set_cookie(
            name, value, seconds, path="/", secure=self.site.is_secure, httponly=True, samesite="lax"
        )


@dataclass(frozen=True)
class PageRequest:
    """A request of somebody who has logged in."""

    console: Console
    request: Request
    session: Session
    form: Form

    @property
    def is_owner(self) -> bool:
        """Whether the person sees the owner's pages; a newer token may have taken that away."""
        return self.session.person.is_owner and self.session.owner is not None

    @property
    def owner(self) -> OwnerClient:
        """The services; only for pages that owners alone see."""
        if self.session.owner is None:
            raise LookupError("only an owner's log-in reaches the services")
        return self.session.owner

    @property
    def page_number(self) -> int:
        """Which page of a long list is asked for, from 1 on."""
        text = self.request.query_params.get("page", "1")
        if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 4 and int(text) >= 1):
            raise InvalidQuestion("page", "expected a number from 1 on")
        return int(text)

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Return a page with the frame that all have."""
        return self.console.rendered(
            template,
            status=status,
            person=self.session.person,
            is_owner=self.is_owner,
            form_key=self.session.form_key,
            path=self.request.url.path,
            **values,
        )


Page: TypeAlias = Callable[[PageRequest], Awaitable[Response]]
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def requires_sign_in(page: Page, *, of_owner: bool = False) -> Endpoint:
    """Return an endpoint that shows a page to who has logged in, or the sign-in page to who has not.

    Args:
        page: Makes the page.
        of_owner: Whether only owners see it.
    """

    async def endpoint(request: Request) -> Response:
        return await _signed_in(request.app.state.console, request, page, of_owner=of_owner)

    return guarded(endpoint)


def guarded(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that shows a page, with all headers, also where it fails."""

    async def answered(request: Request) -> Response:
        console: Console = request.app.state.console
        try:
            return await endpoint(request)
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # A connection that this page was waiting for was closed.
            return console.rendered("failed.html", status=503, path="", problem=_CLOSED)
        except Exception as error:
            # The text of an error may hold anything, so neither the log nor the page shows it.
            log_internal_error(log, "A page could not be made.", error)
            return console.rendered("failed.html", status=500, path="")

    return answered


async def _signed_in(console: Console, request: Request, page: Page, *, of_owner: bool) -> Response:
    key = console.key(request)
    problem = ""
    try:
        session = await _session(console, request, key)
    except AuthenticationError as error:
        session, problem = None, str(error)
    is_known = session is not None or console.had_log_in(request)
    try:
        form = await sent_form(request, is_known=is_known) if request.method == "POST" else Form()
    except FormError as error:
        return console.rendered("failed.html", status=400, path="", problem=str(error))
    if session is None:
        return sign_in_page(console, request, form, problem=problem)
    if console.turns.locked():
        return console.rendered("failed.html", status=503, path="", problem=_BUSY)
    page_request = PageRequest(console, request, session, form)
    async with console.turns, session.used():
        response = await _answered(page_request, page, of_owner=of_owner)
    if session.key != key:
        console.log_in(response, session)
    return response


async def sent_form(request: Request, *, is_known: bool) -> Form:
    """Return the form of a request; one of a stranger must be small.

    Raises:
        FormError: It is too large, too slow, or no form.
    """
    return await read_form(request, max_bytes=MAX_BYTES if is_known else STRANGER_BYTES)


async def _session(console: Console, request: Request, key: str) -> Session | None:
    """Return the log-in of a request: by its cookie, or by a token that a proxy in front of the console has added.

    Raises:
        AuthenticationError: The proxy's token is not accepted.
    """
    found = await console.sessions.find(key) if key else None
    header = request.headers.get("authorization", "")
    if console.authenticator.kind != "token" or not header.lower().startswith(_SCHEME):
        return found
    person = console.authenticator.person(header[len(_SCHEME) :])
    if found is not None and found.person.subject == person.subject:
        found.person = person
        return found
    return await console.sessions.begin(person)


async def _answered(page_request: PageRequest, page: Page, *, of_owner: bool) -> Response:
    form = page_request.form
    if page_request.request.method == "POST" and not page_request.session.sent(form.get(FORM_KEY)):
        if page_request.request.url.path == SIGN_OUT:
            return page_request.page("problem.html", status=_STILL_HERE.status, problem=_STILL_HERE)
        return resume_page(page_request, page_request.request.url.path, form.without(FORM_KEY), status=403)
    if of_owner and not page_request.is_owner:
        return page_request.page("problem.html", status=403, problem=_NO_OWNER)
    try:
        return await page(page_request)
    except GrisError as error:
        if ends_log_in(error):
            await page_request.console.sessions.end(page_request.session.key)
            return sign_in_page(page_request.console, page_request.request, form, problem=str(error))
        problem = problem_of(error)
        return page_request.page("problem.html", status=problem.status, problem=problem)


_BUSY = "The console makes too many pages now. Nothing was done; load this page again in a little while."
_CLOSED = "The console was closed while it made this page."
_STILL_HERE = Problem(
    403,
    "You are still logged in",
    "That page was of an earlier log-in. Log out once more, with the button above.",
)
_NO_OWNER = Problem(403, "This page is for owners", "Your log-in does not have the role of an owner.")


def sign_in_page(
    console: Console, request: Request, form: Form, *, path: str = "", problem: str = "", status: int = 401
) -> Response:
    """Return the page that asks who is there.

    What the form of somebody whose log-in is over had is kept on it, and sent nowhere. Of a stranger's form nothing is
    kept: the page of who sends a large one would be several times as large.

    Args:
        console: The console.
        request: The request.
        form: What the form had.
        path: Where it was sent; by default where the request was.
        problem: Why a log-in was refused.
        status: The page's status.
    """
    is_kept = not form.is_empty and console.had_log_in(request)
    kept_path = RESUME_PATHS.get(path or request.url.path, "") if is_kept else ""
    is_page = request.method == "GET" and request.url.path.startswith(PAGES)
    log_ins = console.log_ins
    return console.rendered(
        "sign_in.html",
        status=status,
        path="",
        kind=console.authenticator.kind,
        problem=problem,
        kept_path=kept_path,
        kept=form.without(FORM_KEY).pairs if kept_path else (),
        wanted=request.url.path if is_page else "",
        provider="" if log_ins is None else log_ins.client.name,
        log_out_address="" if log_ins is None else log_ins.client.log_out_address(),
    )


def wanted_page(form: Form) -> str:
    """Return the page that a log-in leads to: the one that was asked for, never another site's."""
    wanted = form.get("wanted")
    return wanted if wanted.startswith(PAGES) and len(wanted) <= MOST_OF_ADDRESS else "/ask"


def resume_page(page_request: PageRequest, path: str, form: Form, *, status: int = 200) -> Response:
    """Return a page that offers to go on with what a form had; nothing of it was done."""
    target = RESUME_PATHS.get(path)
    if target is None or form.is_empty:
        return RedirectResponse(wanted_page(page_request.form), 303)
    return page_request.page("resume.html", status=status, target=target, kept=form.pairs)


def _templates(notice: str | None) -> Environment:
    found = Environment(
        loader=PackageLoader("gris_console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(formatting.FILTERS)
    found.globals["notice"] = notice
    return found

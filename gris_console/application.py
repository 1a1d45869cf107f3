"""The application: which page is where, and what surrounds all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from gris_console.openid import CALLBACK
from gris_console.page_requests import Console, Page, requires_sign_in
from gris_console.pages import log_in, owner, questions, results, sign_in
from gris_console.site import HEALTH_PATH, Protection

_STATIC = Path(__file__).parent / "static"


def application(console: Console) -> Starlette:
    """Return the application of a console; its log-ins end with it."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await console.sessions.close()

    app = Starlette(
        routes=[*_routes(), *([] if console.log_ins is None else _log_in_routes())],
        middleware=[Middleware(Protection, site=console.site)],
        lifespan=lifespan,
        exception_handlers={404: _not_found, 405: _not_found},
    )
    app.state.console = console
    return app


def _routes() -> list[BaseRoute]:
    return [
        Route("/", _home),
        Route(HEALTH_PATH, _healthy),
        Route("/sign-in", sign_in.sign_in_form, methods=["GET"]),
        Route("/sign-in", sign_in.sign_in, methods=["POST"]),
        _sent("/sign-out", sign_in.sign_out),
        _seen("/ask", questions.start),
        _sent("/ask", questions.edit_form),
        _seen("/ask/{table}", questions.table),
        _sent("/price", questions.price),
        _sent("/answer", questions.answer),
        _seen("/answers/{name}", results.answer),
        _seen("/answers/{name}/answer.csv", results.answer_csv),
        _seen("/answers/{name}/totals.csv", results.totals_csv),
        _seen("/history", results.history),
        _seen("/budget", results.budget),
        _sent("/budget/request", results.request_budget),
        *_owners("/owner/accounts", owner.accounts),
        _sent("/owner/limit", owner.set_limit, of_owner=True),
        *_owners("/owner/requests", owner.requests),
        _sent("/owner/requests/decide", owner.decide, of_owner=True),
        *_owners("/owner/usage", owner.usage),
        *_owners("/owner/guarantee", owner.guarantee),
        *_owners("/owner/plan", owner.plan),
        *_owners("/owner/policy", owner.policy),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]


def _log_in_routes() -> list[BaseRoute]:
    return [
        Route("/login", log_in.begin, methods=["POST"]),
        Route(CALLBACK, log_in.come_back, methods=["GET"]),
        _seen(log_in.RESUME, log_in.resume),
    ]


def _seen(path: str, page: Page) -> Route:
    return Route(path, requires_sign_in(page), methods=["GET"])


def _sent(path: str, page: Page, *, of_owner: bool = False) -> Route:
    return Route(path, requires_sign_in(page, of_owner=of_owner), methods=["POST"])


def _owners(path: str, page: Page) -> list[Route]:
    """Return both routes of a page whose form comes back to it."""
    endpoint = requires_sign_in(page, of_owner=True)
    return [Route(path, endpoint, methods=["GET"]), Route(path, endpoint, methods=["POST"])]


async def _home(_: Request) -> Response:
    return RedirectResponse("/ask", 303)


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _not_found(request: Request, _: Exception) -> Response:
    console: Console = request.app.state.console
    return console.rendered("failed.html", status=404, path="", problem="There is no such page.")

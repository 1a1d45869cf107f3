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

from gris_console.pages import asking, entering, owning, reading
from gris_console.site import HEALTH_PATH, Protection
from gris_console.visits import Console, Page, visited

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
        routes=_routes(),
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
        Route("/sign-in", entering.sign_in_form, methods=["GET"]),
        Route("/sign-in", entering.sign_in, methods=["POST"]),
        _sent("/sign-out", entering.sign_out),
        _seen("/ask", asking.start),
        _sent("/ask", asking.changed),
        _seen("/ask/{table}", asking.table),
        _sent("/price", asking.price),
        _sent("/answer", asking.answer),
        _seen("/answers/{name}", reading.answer),
        _seen("/answers/{name}/answer.csv", reading.table),
        _seen("/answers/{name}/totals.csv", reading.totals),
        _seen("/history", reading.history),
        _seen("/budget", reading.budget),
        *_owners("/owner/accounts", owning.accounts),
        _sent("/owner/limit", owning.set_limit, of_owner=True),
        *_owners("/owner/usage", owning.usage),
        *_owners("/owner/guarantee", owning.guarantee),
        *_owners("/owner/plan", owning.plan),
        *_owners("/owner/policy", owning.policy),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]


def _seen(path: str, page: Page) -> Route:
    return Route(path, visited(page), methods=["GET"])


def _sent(path: str, page: Page, *, of_owner: bool = False) -> Route:
    return Route(path, visited(page, of_owner=of_owner), methods=["POST"])


def _owners(path: str, page: Page) -> list[Route]:
    """Return both routes of a page whose form comes back to it."""
    endpoint = visited(page, of_owner=True)
    return [Route(path, endpoint, methods=["GET"]), Route(path, endpoint, methods=["POST"])]


async def _home(_: Request) -> Response:
    return RedirectResponse("/ask", 303)


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _not_found(request: Request, _: Exception) -> Response:
    console: Console = request.app.state.console
    return console.rendered("failed.html", status=404, path="", problem="There is no such page.")

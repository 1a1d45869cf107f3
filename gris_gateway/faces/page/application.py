"""The page as an ASGI application: which requests are answered, and the headers of every answer."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from gris_gateway.faces.page.asking import ASK, PRICE, Form, seen_by
from gris_gateway.faces.page.rendering import rendered
from gris_serving.admitting import Admitting, Sender
from gris_serving.http_application import HttpApplication, require_method
from gris_serving.http_connections import sender_of
from gris_serving.http_requests import HttpRules
from gris_serving.internal_errors import log_internal_error
from gris_serving.refusals import HttpRefusalError
from pinot_connector.gateway_client import AsyncGatewayClient

PAGE, LINK, STYLE = "/", "/link/", "/page.css"
log = logging.getLogger(__name__)

_STYLE = Path(__file__).parent.joinpath("page.css").read_text(encoding="utf-8")
_FORM = "application/x-www-form-urlencoded"
_FIELDS = frozenset(("act", "sql", "sent", "most"))
_PORT = re.compile(r":(\d+)\Z")
# With `no-referrer` browsers would not say where a form comes from.
_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Door(Admitting[AsyncGatewayClient], Protocol):
    """Knows who looks at the page: by `header`, which a proxy sets, or, without one, by a link that works once."""

    @property
    def header(self) -> str | None:
        """The name of the header."""
        ...

    def redeemed(self, token: str) -> str | None:
        """Return what the browser of the one who opened the link shows from now on; None: it is not the link."""
        ...


class PageApplication(HttpApplication):
    """The ASGI application.

    Args:
        door: Knows who looks at the page.
        rules: Which hosts are answered, and how large and slow requests may be.
        is_secure: Whether browsers reach the page by https.
    """

    def __init__(self, door: Door, rules: HttpRules, *, is_secure: bool) -> None:
        super().__init__(rules)
        self._door = door
        self._scheme = "https" if is_secure else "http"

    def _refused(self, refusal: HttpRefusalError, scope: Scope) -> Response:
        del scope
        text = PlainTextResponse(f"{refusal.message}\n", int(refusal.status), dict(refusal.headers))
        return self._protected(text)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        host = self._own_host(headers)
        if path != PAGE:
            require_method(method, "GET")
            await self._protected(self._beside(path, host))(scope, receive, send)
            return
        require_method(method, "GET", "POST")
        if method == "POST":
            self._require_own_form(headers, host)
        admitted = self._rules.admitted(self._door, self._sender(scope, headers, host), scope, receive)
        async with admitted as (client, body):
            form = _form(body) if method == "POST" else Form()

            async def respond() -> Response:
                return self._protected(await _page(client, form))

            await self._respond(respond, body, scope, receive, send)

    def _own_host(self, headers: Headers) -> str:
        """Return the host that a request is for; others lead here by mistake or trick.

        Raises:
            HttpRefusalError: It is another one.
        """
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._rules.has_host(hosts[0]):
            raise HttpRefusalError(HTTPStatus.MISDIRECTED_REQUEST, "This page has another address.")
        return hosts[0].lower()

    def _require_own_form(self, headers: Headers, host: str) -> None:
        """Refuse a form that no page of this origin has sent; browsers say of each form where it comes from.

        Raises:
            HttpRefusalError: It comes from elsewhere, or nobody says where from.
        """
        is_own = headers.getlist("origin") == [f"{self._scheme}://{host}"]
        if not is_own or headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise HttpRefusalError(HTTPStatus.FORBIDDEN, "This form is not of this page. Nothing was done.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != _FORM:
            raise HttpRefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "expected a form")

    def _sender(self, scope: Scope, headers: Headers, host: str) -> Sender:
        name = self._door.header
        shown = _cookie(headers, self._cookie_name(host)) if name is None else tuple(headers.getlist(name))
        return Sender(certificate=sender_of(scope).certificate, shown=shown)

    def _beside(self, path: str, host: str) -> Response:
        """Return what is served beside the page.

        Raises:
            HttpRefusalError: Nothing is, under this path.
        """
        if path == STYLE:
            return Response(_STYLE, media_type="text/css")
        if path.startswith(LINK) and self._door.header is None:
            shown = self._door.redeemed(path.removeprefix(LINK))
            if shown is None:
                raise HttpRefusalError(
                    HTTPStatus.FORBIDDEN, "This link has been used, or is not the last one."
                )
            response = RedirectResponse(PAGE, HTTPStatus.SEE_OTHER)
            is_secure = self._scheme == "https"
            response.set_cookie(
                self._cookie_name(host), shown, secure=is_secure, httponly=True, samesite="strict"
            )
            return response
        raise HttpRefusalError(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _cookie_name(self, host: str) -> str:
        # Browsers send a cookie to every port of its host.
        port = _PORT.search(host)
        return f"gris-{port[1]}" if port else "gris"

    def _protected(self, response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers.setdefault("cache-control", "no-store")
        if self._scheme == "https":
            response.headers["strict-transport-security"] = "max-age=31536000"
        return response


async def _page(client: AsyncGatewayClient, form: Form) -> Response:
    try:
        seen = await seen_by(client, form)
        # A price may be kept: the button that leads back to it would ask to send its form again without this.
        caching = "private, no-cache" if seen.price is not None else "no-store"
        return HTMLResponse(rendered(seen), seen.status, {"cache-control": caching})
    except Exception as error:
        # What it says may hold SQL.
        log_internal_error(log, "The page could not be made.", error)
        message = "The gateway failed; its log says where.\n"
        return PlainTextResponse(message, HTTPStatus.INTERNAL_SERVER_ERROR)


def _cookie(headers: Headers, name: str) -> tuple[str, ...]:
    """Return the values of a cookie; none where the header is no list of cookies."""
    found: list[str] = []
    for header in headers.getlist("cookie"):
        for each in header.split(";"):
            try:
                read = SimpleCookie(each.strip())
            except CookieError:
                continue
            found += [read[name].value] if name in read else []
    return tuple(found)


def _form(body: bytes) -> Form:
    """Return the form of a request.

    Raises:
        HttpRefusalError: It is no form of the page.
    """
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise HttpRefusalError(HTTPStatus.BAD_REQUEST, "expected a form in UTF-8") from None
    fields = dict(pairs)
    if len(fields) < len(pairs) or not fields.keys() <= _FIELDS:
        raise HttpRefusalError(
            HTTPStatus.BAD_REQUEST, f"expected the fields {', '.join(sorted(_FIELDS))}, each once"
        )
    act, most = fields.get("act", ""), fields.get("most", "")
    if act not in (PRICE, ASK):
        raise HttpRefusalError(HTTPStatus.BAD_REQUEST, f"act: expected {PRICE} or {ASK}")
    if not (most.isascii() and most.isdecimal() and len(most) < len(str(2**63))) and (most or act == ASK):
        raise HttpRefusalError(
            HTTPStatus.BAD_REQUEST,
            "most: expected the price that the page has shown, a number. Nothing was charged.",
        )
    # Browsers end lines as HTTP does.
    sql = fields.get("sql", "").replace("\r\n", "\n")
    return Form(act, sql, fields.get("sent", ""), int(most) if most else None)

"""What protects every page: the hosts that it answers to, where forms may come from, and headers."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH_PATH = "/healthz"
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
# With `no-referrer` browsers would not say where a form comes from either.
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_TRANSPORT = "max-age=31536000"
_GONE_BACK_TO = frozenset(("/ask", "/price"))
_CHANGES_NOTHING = frozenset(("GET", "HEAD"))


@dataclass(frozen=True)
class Site:
    """Where browsers find the console: the origins (scheme, host and port) of its address."""

    origins: frozenset[str]

    @classmethod
    def on_this_machine(cls, port: int, *, secure: bool) -> Site:
        """Return the site of a console that only this machine reaches."""
        scheme = "https" if secure else "http"
        return cls(frozenset(f"{scheme}://{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")))

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach it by TLS, so that its cookies need not go over anything else."""
        return all(each.startswith("https://") for each in self.origins)

    @property
    def port(self) -> int | None:
        """The port that its address names; None: the usual one."""
        return urlsplit(min(self.origins)).port

    def answers_to(self, host: str) -> bool:
        """Return whether a Host header names this site; others come from a name that leads here by mistake or trick."""
        return host.lower() in {urlsplit(each).netloc for each in self.origins}

    def is_same_origin(self, headers: Headers) -> bool:
        """Return whether a form was sent from a page of this site, as far as the browser says."""
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return False
        origin = headers.get("origin")
        return origin is None or origin.lower() in self.origins


class Protection:
    """Refuses requests from elsewhere, and adds the headers that tell browsers what these pages may do."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, self._protected(scope, send))

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if scope["path"] == HEALTH_PATH:
            return None
        if not self._site.answers_to(headers.get("host", "")):
            return PlainTextResponse("This console has another address.\n", 421)
        if scope["method"] not in _CHANGES_NOTHING and not self._site.is_same_origin(headers):
            return PlainTextResponse("This form was sent by another site. Nothing was done.\n", 403)
        return None

    def _protected(self, scope: Scope, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if self._site.is_secure:
                    headers["strict-transport-security"] = _TRANSPORT
                headers["cache-control"] = _caching(scope["path"])
            await send(message)

        return sent


def _caching(path: str) -> str:
    """Return what a browser may keep of a page.

    Nothing with an answer, nor the page of a budget. A question's form and its price, which says what is left, are
    shown again by the button that leads back, which would ask to send the form again without this; logging out clears
    both.
    """
    if path.startswith("/static/"):
        return "public, max-age=3600"
    return "private, no-cache" if path in _GONE_BACK_TO else "no-store"

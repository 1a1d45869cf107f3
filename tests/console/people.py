"""People who use a console as browsers do: they keep cookies, read pages, and send the forms that pages have."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import httpx

from gris_console.application import application
from gris_console.configuration import ConsoleConfiguration
from gris_console.page_requests import Console
from gris_console.process import HostedConsole
from tests.console.stage import Stage

PORT = 50056
URL = f"http://127.0.0.1:{PORT}"
TOP = {"table": "feedback", "by": "app", "k": "3", "measure": "distinct_members"}


@dataclass
class HtmlForm:
    """A form of a page: where it goes, and its fields as a browser would send them; buttons have no names here."""

    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    def filled(self, **values: str) -> list[tuple[str, str]]:
        """Return what is sent once some fields are filled in."""
        return [(name, value) for name, value in self.fields if name not in values] + list(values.items())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._area: str | None = None
        self._select: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        name, value = named.get("name"), named.get("value") or ""
        if tag == "form":
            self.forms.append(HtmlForm(named.get("action") or ""))
        elif tag == "textarea" and name:
            self._area = name
            self.forms[-1].fields.append((name, ""))
        elif tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in named):
            self.forms[-1].fields.append((self._select, value))
        elif (
            tag == "input" and name and (named.get("type") not in ("checkbox", "radio") or "checked" in named)
        ):
            self.forms[-1].fields.append((name, value))

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._area:
            name, before = self.forms[-1].fields[-1]
            self.forms[-1].fields[-1] = (name, before + data)


@dataclass(frozen=True)
class PageSeen:
    """A page that somebody has got."""

    response: httpx.Response

    @property
    def status(self) -> int:
        """Its status."""
        return self.response.status_code

    @property
    def html(self) -> str:
        """Its source."""
        return self.response.text

    @property
    def text(self) -> str:
        """What people read, with single blanks."""
        return " ".join(" ".join(self._read().texts).split())

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        """Its elements with their attributes."""
        return self._read().tags

    def form(self, action: str, number: int = 0) -> HtmlForm:
        """Return a form by where it goes."""
        found = [each for each in self._read().forms if each.action == action]
        assert found, f"no form goes to {action}: {self.text[:500]}"
        return found[number]

    def actions(self) -> Iterator[str]:
        """Yield where the forms go."""
        return (each.action for each in self._read().forms)

    def _read(self) -> _Reader:
        reader = _Reader()
        reader.feed(self.html)
        return reader


class Person:
    """Somebody with a browser of their own."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str, **options: Any) -> PageSeen:
        """Open a page."""
        return PageSeen(await self.client.get(path, follow_redirects=True, **options))

    async def send(self, form: HtmlForm, /, **values: str) -> PageSeen:
        """Send a form of a page."""
        return await self.post(form.action, form.filled(**values))

    async def post(self, path: str, fields: list[tuple[str, str]], **options: Any) -> PageSeen:
        """Send fields to a path, and follow where it leads."""
        request = self.client.build_request("POST", path, **_encoded(fields, options))
        response = await self.client.send(request)
        while response.next_request is not None:
            response = await self.client.send(response.next_request)
        return PageSeen(response)

    async def log_in(self, token: str) -> PageSeen:
        """Log in with a token."""
        return await self.send((await self.get("/sign-in")).form("/sign-in"), shown=token)

    async def form_key(self) -> str:
        """Return what is in every form of this person's pages."""
        return dict((await self.get("/ask")).form("/sign-out").fields)["form_key"]

    async def priced(self, **fields: str) -> PageSeen:
        """Open the page with the price of a question."""
        sent = [("form_key", await self.form_key()), *(fields or TOP).items()]
        return await self.post("/price", sent)

    async def left(self) -> int:
        """Return how many information units the person's own account has left."""
        text = (await self.get("/budget")).text
        return int(text.rpartition("Information units ")[2].partition(" of ")[0].replace(",", ""))


def _encoded(fields: list[tuple[str, str]], options: dict[str, Any]) -> dict[str, Any]:
    content = urlencode(fields).encode()
    headers = {"content-type": "application/x-www-form-urlencoded"} | options.pop("headers", {})
    return {"content": content, "headers": headers, **options}


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a condition holds, at most 20 seconds."""
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110 - another process has to notice something
            await asyncio.sleep(0.1)


class Visitors:
    """A console in this process, and those who come to it."""

    def __init__(self, stage: Stage, **changes: Any) -> None:
        self.stage = stage
        hosted = HostedConsole(ConsoleConfiguration.model_validate(stage.configuration(**changes)))
        self.console: Console = hosted.console(PORT)
        self.app = application(self.console)
        self._clients: list[httpx.AsyncClient] = []

    def stranger(self, **options: Any) -> Person:
        """Return somebody who has not logged in."""
        transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=True)
        client = httpx.AsyncClient(transport=transport, base_url=URL, timeout=60, **options)
        self._clients.append(client)
        return Person(client)

    async def analyst(self, name: str = "", **token: Any) -> Person:
        """Return somebody who has logged in."""
        person = self.stranger()
        page = await person.log_in(self.stage.token(name, **token))
        assert page.status == 200, page.text
        return person

    async def close(self) -> None:
        """Close everything."""
        await self.console.sessions.close()
        for client in self._clients:
            await client.aclose()

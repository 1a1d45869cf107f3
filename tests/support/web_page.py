"""People who use the gateway's page as browsers do: they read it, and send its form with where that comes from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.support.stage import Stage, announced_gateway

ADDRESS = "https://ask.example.org"
HEADER = "X-Forwarded-User"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.texts: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        name = named.get("name") or ""
        if tag == "textarea":
            self._area = name
            self.fields[name] = ""
        elif tag == "input" and name:
            self.fields[name] = named.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            # Browsers leave out its first line break.
            self.fields[self._area] = self.fields[self._area].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self._area:
            self.fields[self._area] += data


@dataclass(frozen=True)
class PageSeen:
    """A page that somebody has got."""

    status: int
    html: str
    headers: httpx.Headers = field(default_factory=httpx.Headers)

    @property
    def text(self) -> str:
        """What people read, with single blanks."""
        return " ".join(" ".join(self._read().texts).split())

    @property
    def tags(self) -> list[tuple[str, dict[str, str | None]]]:
        """Its elements with their attributes."""
        return self._read().tags

    @property
    def fields(self) -> dict[str, str]:
        """The fields of its form; a button is none."""
        return self._read().fields

    def left(self, account: str) -> int:
        """Return how many information units an account has left."""
        of = self.text.partition(f" {account} Information units ")[2]
        return int(of.partition(" of ")[0].replace(",", ""))

    def _read(self) -> _Reader:
        reader = _Reader()
        reader.feed(self.html)
        return reader


class Person:
    """Somebody with a browser."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        url = client.base_url
        self.origin = f"{url.scheme}://{url.netloc.decode()}"

    async def get(self, path: str = "/", **options: Any) -> PageSeen:
        """Open the page."""
        return _seen(await self.client.get(path, follow_redirects=True, **options))

    async def send(self, act: str, fields: dict[str, str], headers: Any = None) -> PageSeen:
        """Send a form by one of its buttons."""
        own = {"origin": self.origin} if headers is None else headers
        return _seen(await self.client.post("/", data={**fields, "act": act}, headers=own))

    async def priced(self, sql: str) -> PageSeen:
        """Return the page with the price of a question."""
        return await self.send("price", (await self.get()).fields | {"sql": sql})

    async def asked(self, sql: str) -> PageSeen:
        """See a price, agree, and return the page with the answer."""
        return await self.send("ask", (await self.priced(sql)).fields)


def _seen(response: httpx.Response) -> PageSeen:
    return PageSeen(response.status_code, response.text, response.headers)


@dataclass(frozen=True)
class Served:
    """A page that a gateway serves on a Unix socket, behind what the tests take for a proxy."""

    socket: Path
    log: Path

    def person(self, name: str = "", *headers: tuple[str, str]) -> AbstractAsyncContextManager[Person]:
        """Return somebody whom the proxy names; other headers instead of the proxy's, if there are any."""
        return self._person([(HEADER, name), *headers] if name else list(headers))

    @asynccontextmanager
    async def _person(self, headers: list[tuple[str, str]]) -> AsyncIterator[Person]:
        transport = httpx.AsyncHTTPTransport(uds=str(self.socket))
        async with httpx.AsyncClient(
            transport=transport,
            base_url=ADDRESS.replace("https", "http"),
            headers=[(each.encode(), value.encode("latin-1")) for each, value in headers],
            timeout=60,
        ) as client:
            found = Person(client)
            # The proxy is reached by https.
            found.origin = ADDRESS
            yield found


@contextmanager
def serving_page(stage: Stage, name: str = "page", **more: Any) -> Iterator[Served]:
    """Run a gateway whose page is for `acme/NAME`, as a proxy before it says."""
    # The path of a socket has a limit of about a hundred bytes.
    socket = Path("/tmp") / f"gris-{stage.folder.name}-{name}.sock"  # noqa: S108 - see above
    proxy = {"header": HEADER, "account": ["acme"]}
    page = {"listen": f"unix:{socket}", "address": ADDRESS, "proxy": proxy} | more
    with announced_gateway(stage.folder, name, stage, page=page) as ready:
        assert ready["page_address"] == f"unix:{socket}"
        yield Served(socket, stage.folder / f"{name}.log")


@asynccontextmanager
async def opened(link: str) -> AsyncIterator[Person]:
    """Open a link that works once, and yield who has."""
    split = urlsplit(link)
    async with httpx.AsyncClient(base_url=f"{split.scheme}://{split.netloc}", timeout=60) as client:
        person = Person(client)
        page = await person.get(split.path)
        assert page.status == 200, page.text
        yield person

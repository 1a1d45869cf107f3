"""Logging in at a provider: what comes back is believed only if it answers this log-in of this browser."""

from __future__ import annotations

import asyncio
import base64
import gc
import hashlib
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import httpx
import jwt
import pytest
import uvicorn
from pydantic import ValidationError
from starlette.requests import Request

from gris_console.configuration import ConsoleConfiguration
from gris_console.forms import Form
from gris_console.log_ins import MOST_FORMS, SECONDS, LogIns
from gris_console.openid import MOST_EXCHANGES, MOST_OF_SOURCE, LogInError
from gris_console.page_requests import MOST_OF_ADDRESS, Console, wanted_page
from gris_console.pages.log_in import source_of
from gris_console.process import HostedConsole, server_options
from gris_serving.https_client import FetchLimits
from gris_serving.published_keys import RefreshLimits
from gris_serving.reloading_files import SecurityError
from tests.console.people import PageSeen, Person, until
from tests.support.key_server import DISCOVERY, Answer, KeyServer, drips, hangs, issuing, says
from tests.support.log_events import everything_logged, logged_events
from tests.support.pki import Authority, Issuer

AUDIENCE = "https://gateway.example.org"
CLIENT, SECRET, CODE = "console", "a secret/with: signs", "the-code-of-this-log-in"
SCHEDULE = RefreshLimits(early_seconds=0.02, retry_seconds=0.02, fetch=FetchLimits(seconds=3.0))


@dataclass
class Provider:
    """A provider that gives what it is asked to give."""

    server: KeyServer
    key: Issuer
    tokens: list[str] = field(default_factory=list)

    def grants(self, nonce: str, *, id_token: Any = None, access: Any = None, **changes: Any) -> None:
        """Answer the next code: claims of both tokens, and fields beside them, may be others."""
        own = {"iss": self.server.issuer, "sub": "ana"}
        tokens = {
            "id_token": self.token(CLIENT, **own, nonce=nonce) if id_token is None else id_token,
            "access_token": self.token(AUDIENCE, **own) if access is None else access,
        }
        self.tokens += tokens.values()
        self.answers(says(json.dumps({"token_type": "Bearer", **tokens, **changes}).encode()))

    def token(self, audience: str, **claims: Any) -> str:
        """Return a token that it signs."""
        return self.key.token(audience, **{"iss": self.server.issuer, "sub": "ana", **claims})

    def answers(self, answer: Answer) -> None:
        """Answer the next code in any way."""
        self.server.answers["/token"] = answer

    def describes(self, **changed: Any) -> None:
        """Publish a discovery document."""
        issuer = self.server.issuer
        endpoints = {
            f"{name}_endpoint": f"{issuer}/{name}" for name in ("authorization", "token", "end_session")
        }
        self.server.answers[DISCOVERY] = says(self.server.discovery(**endpoints | changed))


@dataclass
class Site:
    """A console on a port of this machine."""

    url: str
    console: Console
    authority: Authority
    provider: Provider
    clients: list[httpx.AsyncClient] = field(default_factory=list)

    def browser(self, address: str | None = None, cookies: dict[str, str] | None = None) -> Browser:
        """Return a browser of its own, at an address of this machine."""
        context = ssl.create_default_context(cafile=self.authority.ca_file)
        transport = httpx.AsyncHTTPTransport(verify=context, local_address=address)
        self.clients.append(
            httpx.AsyncClient(base_url=self.url, transport=transport, cookies=cookies, timeout=20)
        )
        return Browser(self.clients[-1])

    @property
    def log_ins(self) -> LogIns:
        """Those that are under way."""
        assert self.console.log_ins is not None
        return self.console.log_ins


class Browser(Person):
    """Somebody's browser, which is sent to the provider and comes back."""

    async def begin(self, **fields: str) -> dict[str, str]:
        """Begin a log-in; return what the provider is asked."""
        page = await self.get("/sign-in")
        return asked(await self.post("/login", page.form("/sign-in").filled(**fields)))

    async def come_back(self, **answer: str) -> httpx.Response:
        """Come back from the provider; return where that leads."""
        response = await self.client.get("/login/callback", params=answer)
        assert response.status_code == 303
        assert CODE not in response.headers["location"]
        return response

    async def is_in(self) -> bool:
        """Return whether this browser has a log-in."""
        status = (await self.client.get("/login/resume")).status_code
        assert status in (303, 401)
        return status == 303


def asked(page: PageSeen) -> dict[str, str]:
    """Return what the provider is asked on a page that leads to it."""
    assert page.status == 200, page.text
    address = next(
        named["href"] for tag, named in page.tags if tag == "a" and "state=" in (named["href"] or "")
    )
    refresh = next(
        named for tag, named in page.tags if tag == "meta" and named.get("http-equiv") == "refresh"
    )
    assert refresh["content"] == f"0; url={address}"
    return dict(parse_qsl(urlsplit(address or "").query))


def failed(response: httpx.Response) -> str:
    """Return how a log-in has failed; empty: it has not."""
    assert (
        "__Host-gris" not in response.headers.get("set-cookie", "")
        or "failed" not in response.headers["location"]
    )
    return response.headers["location"].partition("/sign-in?failed=")[2]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Whom everybody trusts."""
    return Authority.new(tmp_path)


@pytest.fixture
def provider(authority: Authority, tmp_path: Path) -> Iterator[Provider]:
    """A provider by TLS."""
    key = Issuer(tmp_path)
    with issuing(authority, key) as server:
        made = Provider(server, key)
        made.describes()
        yield made


def configuration(provider: Provider, authority: Authority, url: str, **login: Any) -> dict[str, Any]:
    """Return the configuration of a console; nothing here asks its gateway."""
    secret = authority.folder / "secret"
    secret.write_text(SECRET + "\n")
    return {
        "public_url": url,
        "gateway": {"address": "gris://127.0.0.1:1", "ca_file": str(authority.ca_file)},
        "identity": {
            "jwt": {
                "discover": True,
                "ca_file": str(authority.ca_file),
                "algorithms": ["ES256"],
                "issuer": provider.server.issuer,
                "audience": AUDIENCE,
                "leeway_seconds": 0,
            },
            "login": {"client_id": CLIENT, "client_secret_file": str(secret), "resource": AUDIENCE, **login},
        },
    }


@pytest.fixture(autouse=True, scope="module")
def _end_of_consoles() -> Iterator[None]:
    """What still asks for keys would be heard in other files."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def _hears_the_console(caplog: pytest.LogCaptureFixture) -> None:
    """Leave out what pytest alone hears: the log of the tests' own client, and one of pages that goes nowhere."""
    for name in ("httpx", "uvicorn.access"):
        caplog.set_level(logging.WARNING, logger=name)


@asynccontextmanager
async def served(
    provider: Provider, authority: Authority, *, knows: bool = True, **login: Any
) -> AsyncIterator[Site]:
    """Serve a console by TLS, once it has asked the provider for its document and, by default, knows it."""
    files = authority.server("console")
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
        url = f"https://127.0.0.1:{port}"
        tls = {"tls": dict(zip(("certificate", "key"), map(str, files), strict=True))}
        stated = configuration(provider, authority, url, **login) | tls
        hosted = HostedConsole(ConsoleConfiguration.model_validate(stated), SCHEDULE)
        console = hosted.console(port)
        server = uvicorn.Server(server_options(console, hosted.listen_options))
        serving = asyncio.create_task(server.serve(sockets=[bound]))

        async def ready() -> bool:
            addresses = provider.server.asked if not knows else made.log_ins.client.log_out_address()
            return server.started and bool(addresses)

        made = Site(url, console, authority, provider)
        await until(ready)
        try:
            yield made
        finally:
            for client in made.clients:
                await client.aclose()
            server.should_exit = True
            await asyncio.wait_for(serving, 20)
            # Its keys are fetched for as long as somebody holds it, and pytest holds the fixture a while longer.
            del made.console


@pytest.fixture
async def site(provider: Provider, authority: Authority) -> AsyncIterator[Site]:
    """A console whose people log in at the provider."""
    async with served(provider, authority) as made:
        yield made


async def test_who_comes_back_is_logged_in(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """The provider is asked with a challenge, a state and a nonce; no token is in the browser or the log."""
    ana, provider = site.browser(), site.provider
    sent = await ana.begin()
    assert sent["response_type"] == "code"
    assert (sent["client_id"], sent["scope"], sent["resource"]) == (CLIENT, "openid", AUDIENCE)
    assert sent["redirect_uri"] == f"{site.url}/login/callback"
    provider.grants(sent["nonce"])
    back = await ana.come_back(code=CODE, state=sent["state"], iss=provider.server.issuer)
    assert (back.headers["location"], await ana.is_in()) == ("/ask", True)
    (form, who), *more = provider.server.sent
    exchanged = {name: value for name, [value] in parse_qs(form).items()}
    digest = hashlib.sha256(exchanged["code_verifier"].encode()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == sent["code_challenge"]
    assert (sent["code_challenge_method"], more) == ("S256", [])
    assert (exchanged["code"], exchanged["resource"]) == (CODE, AUDIENCE)
    assert base64.b64decode(who.removeprefix("Basic ")) == b"console:a%20secret%2Fwith%3A%20signs"
    assert exchanged["redirect_uri"] == sent["redirect_uri"]
    # Pages' addresses are in no log of the process.
    assert not logging.getLogger("uvicorn.access").propagate
    shown = f"{back.headers} {(await ana.get('/sign-in')).html} {everything_logged(caplog)}"
    for secret in (*provider.tokens, CODE, exchanged["code_verifier"]):
        assert secret not in shown
    cookies = {each.name: each for each in ana.client.cookies.jar}
    assert {name.startswith("__Host-gris-") for name in cookies} == {True}
    assert all(each.secure and each.has_nonstandard_attr("HttpOnly") for each in cookies.values())


async def test_a_log_in_ends_no_later_than_its_token(site: Site) -> None:
    """As one by the token form does."""
    ana = site.browser()
    sent, ends = await ana.begin(), int(time.time()) + 2
    site.provider.grants(sent["nonce"], access=site.provider.token(AUDIENCE, exp=ends))
    await ana.come_back(code=CODE, state=sent["state"])
    assert await ana.is_in()
    await asyncio.sleep(ends - time.time() + 0.1)
    assert not await ana.is_in()


async def test_a_state_of_another_log_in_lets_nobody_in(site: Site) -> None:
    """Neither a made-up one nor another browser's, whose code would be a stranger's; one's own log-in goes on."""
    victim, attacker = site.browser(), site.browser()
    own, others = await victim.begin(), await attacker.begin()
    site.provider.grants(others["nonce"])
    for state in ({"state": others["state"]}, {"state": own["state"][:-1]}, {"state": "é"}, {}):
        assert failed(await victim.come_back(code=CODE, **state)) == "not_begun"
    assert failed(await site.browser().come_back(code=CODE, state=others["state"])) == "not_begun"
    assert site.provider.server.sent == []
    page = await victim.get("/sign-in?failed=not_begun")
    assert page.status == 401
    assert "was not begun in this browser" in page.text
    site.provider.grants(own["nonce"])
    assert not failed(await victim.come_back(code=CODE, state=own["state"]))


async def test_what_came_back_once_does_not_come_back_again(site: Site) -> None:
    """In turn or at the same time: a code is exchanged once."""
    ana = site.browser()
    sent = await ana.begin()
    site.provider.grants(sent["nonce"])
    answer = {"code": CODE, "state": sent["state"]}
    responses = await asyncio.gather(*(ana.come_back(**answer) for _ in range(5)))
    assert sorted(map(failed, responses)) == ["", *["not_begun"] * 4]
    assert failed(await ana.come_back(**answer)) == "not_begun"
    assert len(site.provider.server.sent) == 1


async def test_a_log_in_that_takes_too_long_is_over(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A code that arrives after ten minutes was perhaps kept by somebody."""
    ana = site.browser()
    sent = await ana.begin()
    now = time.monotonic()
    monkeypatch.setattr(site.log_ins, "_clock", lambda: now + SECONDS + 1)
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "not_begun"


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"nonce": "another"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another"}, "another audience"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "azp"),
        ({"iss": "https://evil.example"}, "another issuer"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "not valid"),
    ],
)
async def test_an_id_token_of_another_log_in_lets_nobody_in(
    site: Site, changed: dict[str, Any], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the access token is worth."""
    ana, provider = site.browser(), site.provider
    sent = await ana.begin()
    claims = {"aud": CLIENT, "nonce": sent["nonce"], **changed}
    provider.grants(sent["nonce"], id_token=provider.token(claims.pop("aud"), **claims))
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "unexpected"
    assert not await ana.is_in()
    assert problem in noted(caplog)


@pytest.mark.parametrize("forged", ["", "e30.e30.e30", "none", "other key"])
async def test_an_id_token_that_the_provider_has_not_signed_lets_nobody_in(
    site: Site, forged: str, tmp_path: Path
) -> None:
    """Nor is one without signature believed, though it comes from the provider's own server."""
    ana, provider = site.browser(), site.provider
    sent = await ana.begin()
    claims = {"iss": provider.server.issuer, "sub": "ana", "nonce": sent["nonce"]}
    (tmp_path / "other").mkdir()
    made = {
        "none": jwt.encode({**claims, "aud": CLIENT, "exp": time.time() + 60}, "", "none"),
        "other key": Issuer(tmp_path / "other").token(CLIENT, **claims),
    }
    provider.grants(sent["nonce"], id_token=made.get(forged, forged))
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "unexpected"


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ({"aud": CLIENT}, "another audience"),
        ({"exp": 1}, "expired"),
        ({"sub": None}, "(sub)"),
        (None, "not valid"),
    ],
)
async def test_a_token_that_the_gateway_would_refuse_lets_nobody_in(
    site: Site, claims: dict[str, Any] | None, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why, and has nothing of the token."""
    ana, provider = site.browser(), site.provider
    sent = await ana.begin()
    stated = {"aud": AUDIENCE, **(claims or {})}
    opaque = "opaque-access-token"
    provider.grants(
        sent["nonce"], access=opaque if claims is None else provider.token(stated.pop("aud"), **stated)
    )
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "token"
    assert not await ana.is_in()
    assert problem in noted(caplog)
    assert not [token for token in provider.tokens if token in everything_logged(caplog)]
    assert "a token that is not accepted here" in (await ana.get("/sign-in?failed=token")).text


async def test_an_answer_of_another_provider_is_refused(
    site: Site, provider: Provider, authority: Authority
) -> None:
    """By who it says it is (RFC 9207), and if it does not say so though the provider always does."""
    ana = site.browser()
    sent = await ana.begin()
    provider.grants(sent["nonce"])
    answer = {"code": CODE, "state": sent["state"]}
    assert failed(await ana.come_back(**answer, iss="https://evil.example")) == "unexpected"
    provider.describes(authorization_response_iss_parameter_supported=True)
    async with served(provider, authority) as strict:
        for iss in ({}, {"iss": provider.server.issuer + "/"}):
            bea = strict.browser()
            sent = await bea.begin()
            provider.grants(sent["nonce"])
            assert failed(await bea.come_back(code=CODE, state=sent["state"], **iss)) == "unexpected"
    assert provider.server.sent == []


async def test_a_refusal_of_the_provider_is_shown_in_our_words(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """What an address says that anybody could make is neither on the page nor in the log."""
    ana = site.browser()
    sent = await ana.begin()
    said = {"error": "access_denied", "error_description": "<b>call 555</b>", "state": sent["state"]}
    response = await ana.come_back(**said)
    assert failed(response) == "refused"
    assert "has let nobody in" in (await ana.get(response.headers["location"])).text
    assert "access_denied" in noted(caplog)
    sent = await ana.begin()
    assert failed(await ana.come_back(error="call 555!", state=sent["state"])) == "refused"
    assert "555" not in everything_logged(caplog)
    sent = await ana.begin()
    assert failed(await ana.come_back(state=sent["state"])) == "unexpected"
    sent = await ana.begin()
    twice = await ana.client.get(f"/login/callback?state={sent['state']}&code=a&code={CODE}")
    assert failed(twice) == "unexpected"
    assert (await ana.get("/sign-in?failed=<b>555")).status == 200


async def test_a_stranger_with_made_up_codes_keeps_nobody_out(site: Site) -> None:
    """The provider takes its time; somebody comes back meanwhile from elsewhere."""
    stranger, released = site.browser(), threading.Event()
    site.provider.answers(hangs(released))
    attempts = [(await stranger.begin(), dict(stranger.client.cookies)) for _ in range(MOST_EXCHANGES)]
    made_up = [
        asyncio.create_task(site.browser(cookies=cookies).come_back(code="made up", state=sent["state"]))
        for sent, cookies in attempts
    ]

    async def are_exchanged() -> bool:
        return len(site.provider.server.sent) == MOST_OF_SOURCE

    await until(are_exchanged)
    ana = site.browser("127.0.0.2")
    sent = await ana.begin()
    site.provider.grants(sent["nonce"])
    assert not failed(await ana.come_back(code=CODE, state=sent["state"]))
    assert MOST_OF_SOURCE + 1 == len(site.provider.server.sent)
    assert not any(each.done() for each in made_up)
    released.set()
    assert "" not in map(failed, await asyncio.gather(*made_up))


@pytest.mark.parametrize(
    ("scheme", "host", "source"),
    [
        ("https", "198.51.100.7", "198.51.100.7"),
        ("https", "::ffff:198.51.100.7", "198.51.100.7"),
        ("https", "2001:db8:0:1::7", f"{0x20010DB800000001}"),
        ("https", "2001:db8:0:1:ffff::1", f"{0x20010DB800000001}"),
        ("http", "198.51.100.7", ""),
    ],
)
def test_a_source_is_an_address_or_a_network_of_one_sender(scheme: str, host: str, source: str) -> None:
    """Who has one address of IPv6 has all of its network; in plain text a proxy sends everything."""
    assert source_of(Request({"type": "http", "scheme": scheme, "client": (host, 1)})) == source


LARGE = b'{"access_token": "' + b"a" * 300_000 + b'"}'


@pytest.mark.parametrize(
    ("answer", "failure", "problem"),
    [
        (says(b"<html>secret-text"), "unexpected", "missing_token"),
        (says(b"[]"), "unexpected", ""),
        (says(b"5"), "unexpected", "cannot be read"),
        (says(b"\xff\xfe"), "unexpected", "cannot be read"),
        (says(b"[" * 100_000), "unexpected", "cannot be read"),
        (says(b'{"access_token": 5, "token_type": "Bearer"}'), "unexpected", "ID token"),
        (
            says(b'{"error": "invalid_client", "error_description": "secret-text"}', 401),
            "unexpected",
            "invalid_client",
        ),
        (says(b'{"error": ["secret-text"]}', 400), "unexpected", ""),
        (says(LARGE), "unreachable", "too_large"),
        (says(b"", 302, location="https://evil.example/"), "unreachable", "redirect"),
        (says(b"secret-text", 500), "unreachable", "status"),
        (says(b"{}", stated_length=50), "unreachable", ""),
        (drips(b"HTTP/1.1 200 OK\r\n"), "unreachable", ""),
        (drips(b"x"), "unreachable", ""),
        (hangs(threading.Event()), "unreachable", "timeout"),
    ],
)
async def test_what_is_no_answer_lets_nobody_in(
    site: Site, answer: Answer, failure: str, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Garbage, too much, or nothing at all: a page that says so in time, and other pages are made meanwhile."""
    ana, bea = site.browser(), site.browser()
    sent = await ana.begin()
    site.provider.answers(answer)
    began = time.monotonic()
    coming = asyncio.create_task(ana.come_back(code=CODE, state=sent["state"]))
    assert (await bea.get("/sign-in")).status == 200
    response = await coming
    assert time.monotonic() - began < 10
    assert failed(response) == failure
    assert (await ana.get(response.headers["location"])).status == 401
    assert not await ana.is_in()
    assert problem in noted(caplog)
    assert "secret-text" not in everything_logged(caplog)


async def test_a_token_for_the_gateway_is_no_id_token(site: Site) -> None:
    """Though it was accepted a moment ago, as a token for the gateway."""
    ana, provider = site.browser(), site.provider
    sent = await ana.begin()
    token = provider.token(AUDIENCE, nonce=sent["nonce"])
    site.console.authenticator.person(token)
    provider.grants(sent["nonce"], id_token=token)
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "unexpected"


async def test_a_token_of_another_type_lets_nobody_in(site: Site) -> None:
    """One that is bound to a key (DPoP) is worth nothing in the console's calls."""
    ana = site.browser()
    sent = await ana.begin()
    site.provider.grants(sent["nonce"], token_type="DPoP")
    assert failed(await ana.come_back(code=CODE, state=sent["state"])) == "unexpected"


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "https://evil.example"},
        {"authorization_endpoint": "http://127.0.0.1/"},
        {"authorization_endpoint": 5},
    ],
)
async def test_nobody_is_sent_where_the_provider_does_not_say(
    provider: Provider, authority: Authority, changed: dict[str, Any]
) -> None:
    """A document of another issuer counts as none; the token form is there all the same."""
    provider.describes(**changed)
    async with served(provider, authority, knows=False) as site:
        page = await site.browser().post("/login", [])
        assert page.status == 503
        assert "does not answer now" in page.text
        assert "Token" in page.text


async def test_other_sites_neither_begin_a_log_in_nor_say_where_it_leads(site: Site) -> None:
    """A form of another site is refused; a page that somebody wants is one of this console."""
    ana = site.browser()
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
        assert (await ana.post("/login", [], headers=headers)).status == 403
    assert (await ana.client.get("/login")).status_code == 404
    wanted = ("//evil.example/", "https://evil.example/", "/\\evil.example", "/sign-in", "/history")
    led = []
    for each in wanted:
        sent = asked(await ana.post("/login", [("wanted", each)]))
        site.provider.grants(sent["nonce"])
        led.append((await ana.come_back(code=CODE, state=sent["state"])).headers["location"])
    assert led == ["/ask", "/ask", "/ask", "/ask", "/history"]


async def test_a_log_in_has_a_key_of_its_own(site: Site) -> None:
    """One that a browser had before, or was given by somebody, is over and lets nobody in."""
    ana = site.browser()
    keys = []
    for _ in range(2):
        sent = await ana.begin()
        site.provider.grants(sent["nonce"])
        await ana.come_back(code=CODE, state=sent["state"])
        keys.append(ana.client.cookies[site.console.cookie])
    assert keys[0] != keys[1]
    assert await site.console.sessions.find(keys[0]) is None
    assert await site.console.sessions.find(keys[1]) is not None


async def test_what_was_entered_goes_through_the_log_in(site: Site) -> None:
    """Also through one that fails; of a stranger's form nothing is kept."""
    ana = site.browser()
    sent = await ana.begin()
    site.provider.grants(sent["nonce"])
    await ana.come_back(code=CODE, state=sent["state"])
    await site.console.sessions.close()
    page = await ana.post("/price", [("sql", "SELECT COUNT(*) FROM t"), ("form_key", "old")])
    sent = asked(await ana.post("/login", page.form("/sign-in").fields))
    page = await ana.get(
        (await ana.come_back(error="access_denied", state=sent["state"])).headers["location"]
    )
    assert "What you had entered is kept here" in page.text
    sent = asked(await ana.post("/login", page.form("/sign-in").fields))
    site.provider.grants(sent["nonce"])
    page = await ana.get((await ana.come_back(code=CODE, state=sent["state"])).headers["location"])
    assert ("sql", "SELECT COUNT(*) FROM t") in page.form("/price").fields
    assert str(page.response.url) == f"{site.url}/login/resume"
    stranger = site.browser()
    asked(await stranger.post("/login", [("kept_path", "/price"), ("kept.sql", "x" * 30_000)]))
    assert site.log_ins.form(stranger.client.cookies[site.console.log_in_cookie]).is_empty


async def test_floods_of_strangers_are_bounded(site: Site) -> None:
    """The oldest log-ins that are under way make room, and the latest goes on."""
    few = LogIns(site.log_ins.client, most=10)
    keys = [few.begin("/ask", Form((("sql", "x"),)))[0] for _ in range(200)]
    assert sum(not few.form(key).is_empty for key in keys) == MOST_FORMS
    held: dict[str, Any] = dict(few._held)
    assert list(held) == keys[-10:]
    few.take(keys[-1], held[keys[-1]].attempt.state)
    with pytest.raises(LogInError):
        few.take(keys[0], "")
    later = time.monotonic() + SECONDS + 1
    few._clock = lambda: later
    few.begin("/ask", Form())
    assert 1 == len(few._held)
    long = Form((("wanted", f"/ask?{'x' * MOST_OF_ADDRESS}"),))
    assert "/ask" == wanted_page(long)


async def test_a_public_client_and_one_whose_secret_is_in_the_form(
    provider: Provider, authority: Authority
) -> None:
    """Without a secret the client's name is sent alone; a provider that takes no header gets the secret in the form."""
    provider.describes(token_endpoint_auth_methods_supported=["client_secret_post"])
    for secret, expected in ((None, None), (str(authority.folder / "secret"), [SECRET])):
        async with served(provider, authority, client_secret_file=secret) as site:
            ana = site.browser()
            sent = await ana.begin()
            provider.grants(sent["nonce"])
            assert not failed(await ana.come_back(code=CODE, state=sent["state"]))
        form, who = provider.server.sent[-1]
        assert (who, parse_qs(form)["client_id"], parse_qs(form).get("client_secret")) == (
            "",
            [CLIENT],
            expected,
        )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"public_url": None}, "public_url: expected with identity.login"),
        ({"public_url": "http://console.example.org"}, "public_url: expected with identity.login"),
        ({"scopes": ["profile"]}, "expected openid among them"),
        ({"scopes": ["openid profile"]}, "scopes"),
        ({"discover": False, "keys_url": "https://127.0.0.1/keys"}, "jwt.discover: true"),
        ({"client_id": ""}, "client_id"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    provider: Provider, authority: Authority, changed: dict[str, Any], said: str
) -> None:
    """By the name of what is wrong."""
    stated = configuration(provider, authority, "https://console.example.org")
    for name, value in changed.items():
        part = stated if name == "public_url" else stated["identity"]["login"]
        (stated["identity"]["jwt"] if name in ("discover", "keys_url") else part)[name] = value
    with pytest.raises(ValidationError, match=said):
        ConsoleConfiguration.model_validate(stated)


def test_a_secret_that_is_none_is_refused_at_the_start(provider: Provider, authority: Authority) -> None:
    """The message names the file, and shows nothing of it."""
    stated = configuration(provider, authority, "https://console.example.org")
    for content in (b"", b"\xff\xfe"):
        (authority.folder / "secret").write_bytes(content)
        with pytest.raises(SecurityError, match="secret: expected the secret of this console"):
            HostedConsole(ConsoleConfiguration.model_validate(stated))


def noted(caplog: pytest.LogCaptureFixture) -> str:
    """Return why nobody was let in the last time."""
    return [str(fields["problem"]) for event, fields in logged_events(caplog) if event == "log_in.failed"][-1]

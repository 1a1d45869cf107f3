"""Who comes in, how long a log-in lasts, and what other sites cannot do with it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from gris_console.authentication import AuthenticationError, CodeAuthenticator
from gris_console.authentication import Person as Known
from gris_console.sessions import MOST_OF_ONE, Sessions
from pinot_connector.endpoints import Endpoint
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.results import PrivateResult
from tests.console.people import PORT, TOP, URL, Person, Visitors
from tests.console.stage import AUDIENCE, Stage


async def test_every_page_asks_strangers_who_they_are(visitors: Visitors) -> None:
    """Nothing of a page is shown to who has not logged in."""
    stranger = visitors.stranger()
    for path in ("/ask", "/ask/feedback", "/history", "/budget", "/answers/x", "/owner/accounts"):
        page = await stranger.get(path)
        assert page.status == 401
        assert "Log in" in page.text
        assert "feedback" not in page.text
    page = await stranger.post("/answer", list(TOP.items()))
    assert page.status == 401


@pytest.mark.parametrize("token", ["", "no token", "e30.e30.e30"])
async def test_what_is_no_token_lets_nobody_in(visitors: Visitors, token: str) -> None:
    """The page says what is wrong, and repeats nothing of it."""
    page = await visitors.stranger().log_in(token)
    assert page.status == 401
    assert "token" in page.text
    assert not token or token not in page.html


async def test_tokens_of_other_audiences_and_old_ones_let_nobody_in(visitors: Visitors, stage: Stage) -> None:
    """They are verified as the gateway does."""
    assert (
        await visitors.stranger().log_in(stage.issuer.token("other", org="acme", sub="eve"))
    ).status == 401
    expired = stage.token(exp=int(time.time()) - 5)
    assert "expired" in (await visitors.stranger().log_in(expired)).text


async def test_a_log_in_that_ends_on_a_page_keeps_the_form_and_charges_nothing(visitors: Visitors) -> None:
    """After the next log-in the same form goes on to its price, and is paid once."""
    ana = await visitors.analyst("emil")
    before = await ana.left()
    price = await ana.priced()
    await visitors.console.sessions.close()
    page = await ana.send(price.form("/answer"))
    assert page.status == 401
    assert "What you had entered is kept" in page.text
    wrong = await ana.send(page.form("/sign-in"), shown="not a token")
    resumed = await ana.send(wrong.form("/sign-in"), shown=visitors.stage.token("emil"))
    assert "nothing of it was asked, changed or charged" in resumed.text
    again = await ana.send(resumed.form("/price"))
    assert (
        dict(again.form("/answer").fields)["request_id"] == dict(price.form("/answer").fields)["request_id"]
    )
    assert before == await ana.left()
    assert (await ana.send(again.form("/answer"))).status == 200
    assert before > await ana.left()


async def test_a_token_that_runs_out_ends_its_log_in(visitors: Visitors, stage: Stage) -> None:
    """The console's own clock decides, and so does the gateway's where that is stricter."""
    ana = visitors.stranger()
    ends = int(time.time()) + 2
    assert (await ana.log_in(stage.token("frida", exp=ends))).status == 200
    while time.time() <= ends:
        assert (await ana.get("/budget")).status in (200, 401)
    page = await ana.get("/budget")
    assert page.status == 401
    assert "Log in" in page.text


async def test_forms_of_other_sites_are_refused(visitors: Visitors, ana: Person) -> None:
    """By what browsers say of where they come from, and by the key that only this person's pages have."""
    before = await ana.left()
    form = (await ana.priced()).form("/answer")
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
    ):
        page = await ana.post("/answer", form.fields, headers=headers)
        assert page.status == 403
        assert "another site" in page.html
    without = [(name, value) for name, value in form.fields if name != "form_key"]
    for sent in (without, [*without, ("form_key", "guessed")]):
        page = await ana.post("/answer", sent)
        assert page.status == 403
        assert "nothing of it was asked" in page.text
    other = await visitors.analyst()
    borrowed = [*without, ("form_key", await other.form_key())]
    assert (await ana.post("/answer", borrowed)).status == 403
    assert before == await ana.left()
    assert (
        await ana.post("/answer", form.fields, headers={"origin": URL, "sec-fetch-site": "same-origin"})
    ).status == 200


async def test_the_console_answers_to_its_own_name_alone(visitors: Visitors) -> None:
    """A name of somebody else's that leads here gets no page."""
    assert (await visitors.stranger().get("/sign-in", headers={"host": "evil.example"})).status == 421
    assert (await visitors.stranger().get("/healthz", headers={"host": "10.0.0.1"})).html == "ok\n"


async def test_pages_say_what_browsers_may_do_with_them(ana: Person) -> None:
    """No script, no frame, nothing stored, and nothing of a style or script in the page itself."""
    kept = dict.fromkeys(("/ask/feedback", "/budget", "/history", "/nowhere"), "no-store")
    for path, caching in ({"/ask": "private, no-cache"} | kept).items():
        page = await ana.get(path)
        headers = page.response.headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", caching)
        assert headers["referrer-policy"] == "same-origin"
        assert "script" not in {tag for tag, _ in page.tags}
        assert "style" not in {tag for tag, _ in page.tags}
        assert not [
            named for _, named in page.tags if any(name == "style" or name.startswith("on") for name in named)
        ]


async def test_the_cookie_is_out_of_reach(visitors: Visitors, stage: Stage) -> None:
    """No script reads it, no other site sends it, and by TLS it is bound to this host."""
    page = await visitors.stranger().client.post(
        "/sign-in", data={"shown": stage.token()}, follow_redirects=False
    )
    cookie = page.headers["set-cookie"].lower()
    assert cookie.startswith(f"gris-{PORT}=")
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    behind = Visitors(stage, public_url="https://console.example.org:443")
    client = behind.stranger().client
    answered = await client.post(
        "https://console.example.org/sign-in", data={"shown": stage.token()}, follow_redirects=False
    )
    cookie = answered.headers["set-cookie"].lower()
    assert cookie.startswith("__host-gris=")
    assert "secure" in cookie
    assert "max-age" in answered.headers["strict-transport-security"]
    await behind.close()


async def test_a_proxy_may_bring_the_token_and_renew_it(visitors: Visitors, stage: Stage) -> None:
    """A newer token of the same person goes on with the log-in; another person's begins one."""
    gus = visitors.stranger(headers={"authorization": f"Bearer {stage.token('gus')}"})
    assert "gus" in (await gus.get("/budget")).text
    key = await gus.form_key()
    gus.client.headers["authorization"] = f"Bearer {stage.token('gus', exp=int(time.time()) + 900)}"
    assert key == await gus.form_key()
    gus.client.headers["authorization"] = f"Bearer {stage.token('hanna')}"
    assert key != await gus.form_key()
    assert "hanna" in (await gus.get("/budget")).text
    gus.client.headers["authorization"] = "Bearer nonsense"
    assert (await gus.get("/budget")).status == 401


async def test_logging_out_ends_the_log_in_and_a_link_leads_back_to_its_page(visitors: Visitors) -> None:
    """The cookie of before opens nothing."""
    ida = await visitors.analyst("ida")
    cookies = dict(ida.client.cookies)
    assert "Log in" in (await ida.send((await ida.get("/ask")).form("/sign-out"))).text
    old = visitors.stranger(cookies=cookies)
    assert (await old.get("/budget")).status == 401
    stale = (await (await visitors.analyst("ida")).get("/ask")).form("/sign-out")
    await ida.log_in(visitors.stage.token("ida"))
    assert "still logged in" in (await ida.send(stale)).text
    await ida.send((await ida.get("/ask")).form("/sign-out"))
    page = await ida.send((await ida.get("/history")).form("/sign-in"), shown=visitors.stage.token("ida"))
    assert page.response.url.path == "/history"
    elsewhere = await visitors.stranger().post(
        "/sign-in", [("shown", visitors.stage.token()), ("wanted", "//evil.example/")]
    )
    assert str(elsewhere.response.url) == f"{URL}/ask"


async def test_a_log_in_that_ends_lets_its_question_finish(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked before is paid for and shown after the next log-in, without a second charge."""
    began, going_on, ask = asyncio.Event(), asyncio.Event(), AsyncGatewayClient.ask

    async def slow(client: AsyncGatewayClient, *question: Any, **options: Any) -> PrivateResult:
        began.set()
        await going_on.wait()
        return await ask(client, *question, **options)

    monkeypatch.setattr(AsyncGatewayClient, "ask", slow)
    rosa = await visitors.analyst("rosa")
    price = await rosa.priced()
    asking = asyncio.create_task(rosa.send(price.form("/answer")))
    await asyncio.wait_for(began.wait(), 20)
    await rosa.send(price.form("/sign-out"))
    going_on.set()
    page = await asking
    assert page.status == 401, page.text
    answer = await rosa.send(page.form("/sign-in"), shown=visitors.stage.token("rosa"))
    assert answer.response.url.path.startswith("/answers/")
    assert "RUMORS_LINE_BOT" in answer.text


async def test_a_connection_that_is_closed_under_a_question_leaves_its_outcome_open(
    ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the console ends: the page says that the question may be paid, and has its headers."""

    async def closed(*_: object, **__: object) -> None:
        raise asyncio.CancelledError

    form = (await ana.priced()).form("/answer")
    monkeypatch.setattr(AsyncGatewayClient, "ask", closed)
    page = await ana.send(form)
    assert page.status == 503
    assert "may have been charged" in page.text
    assert "default-src 'none'" in page.response.headers["content-security-policy"]


async def test_a_token_of_nobody_and_a_price_of_another_account_lead_nowhere(
    visitors: Visitors, stage: Stage
) -> None:
    """People without a subject would share log-ins, and a price is agreed on for the limits that pay."""
    nobody = stage.issuer.token(AUDIENCE, org="acme")
    assert "(sub)" in (await visitors.stranger().log_in(nobody)).text
    first, second = await visitors.analyst(), await visitors.analyst()
    form = (await first.priced()).form("/answer")
    sent = [(name, value) for name, value in form.fields if name != "form_key"]
    page = await second.post("/answer", [*sent, ("form_key", await second.form_key())])
    assert page.status == 409


async def test_many_log_ins_of_one_person_end_none_of_another(visitors: Visitors) -> None:
    """The oldest of the same person make room."""
    sessions = Sessions(lambda _: Endpoint("localhost:1"))
    other = await sessions.begin(Known("b", "b", False, float("inf")))
    first = await sessions.begin(Known("a", "a", False, float("inf")))
    for _ in range(MOST_OF_ONE):
        await sessions.begin(Known("a", "a", False, float("inf")))
    assert await sessions.find(first.key) is None
    assert await sessions.find(other.key) is other
    await sessions.close()


def test_ones_own_console_lets_in_who_reads_its_code() -> None:
    """Other people on the machine do not."""
    authenticator = CodeAuthenticator("you", is_owner=False)
    assert not authenticator.person(f" {authenticator.code}\n").is_owner
    with pytest.raises(AuthenticationError):
        authenticator.person("0000")

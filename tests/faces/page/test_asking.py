"""The way of a question on the page: the price, the answer, what is left, and what goes wrong."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext

import httpx
import pytest

from gris_gateway.faces.page.application import PageApplication
from gris_gateway.faces.page.asking import Form, Problem, seen_by
from gris_gateway.faces.page.rendering import MOST_ROWS, rendered
from gris_serving.http_requests import HttpRules
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.errors import GrisError, IntegrityError, OutcomeUnknown
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.notebooks.cells import visible
from tests.support.stage import HOSTILE, WIDE_ELEMENTS, Stage
from tests.support.web_page import Person, serving_page

TOP = "SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app ORDER BY 2 DESC LIMIT 3"
FRESH = "SELECT name, COUNT(DISTINCT member_id) FROM fresh GROUP BY name ORDER BY 2 DESC LIMIT 2"
ALL_NAMES = "SELECT name, COUNT(DISTINCT member_id) FROM hostile GROUP BY name"


async def test_a_question_is_priced_before_it_is_asked_and_paid(ana: Person) -> None:
    """The page shows tables and budget; the price takes nothing, and the answer what it says."""
    start = await ana.get()
    assert start.status == 200
    assert "article_id" in start.text
    assert "most" not in start.fields
    price = await ana.send("price", start.fields | {"sql": TOP})
    assert price.status == 200, price.text
    assert "By its noise alone a count is off by at most" in price.text
    assert "such questions until it is refreshed" in price.text
    assert price.fields["sql"] == TOP
    answer = await ana.send("ask", price.fields)
    assert answer.status == 200, answer.text
    assert "RUMORS_LINE_BOT" in answer.text
    account = f"acme/{ana.client.headers['X-Forwarded-User']}"
    paid = start.left(account) - answer.left(account)
    assert start.left(account) == price.left(account)
    assert paid == int(price.fields["most"]) > 0
    again = await ana.asked(TOP)
    assert "charged now: 0 information" in again.text
    assert again.left(account) == answer.left(account)


async def test_a_form_that_is_sent_twice_is_paid_once(ana: Person) -> None:
    """Five at once get the answer, also where answers do not repeat; another form is paid for itself."""
    price = await ana.priced(FRESH)
    account = f"acme/{ana.client.headers['X-Forwarded-User']}"
    same = await asyncio.gather(*(ana.send("ask", price.fields) for _ in range(5)))
    assert [200] * 5 == [each.status for each in same]
    assert 4 == sum("charged now: 0 information and 0 calls" in each.text for each in same)
    first = await ana.get()
    again = await ana.send("ask", price.fields)
    assert "charged now: 0 information and 0 calls" in again.text
    once = price.left(account) - first.left(account)
    assert once > 0
    assert again.left(account) == first.left(account)
    others = [(await ana.priced(FRESH)).fields for _ in range(2)]
    pages = await asyncio.gather(*(ana.send("ask", each) for each in others))
    assert {each.status for each in pages} == {200}
    assert (await ana.get()).left(account) == first.left(account) - 2 * once


async def test_more_than_the_price_that_was_shown_is_not_paid(ana: Person) -> None:
    """Neither where the text was changed since, nor without a price; nothing is charged."""
    price = await ana.priced(TOP)
    other = await ana.send("ask", price.fields | {"sql": TOP.replace("3", "4"), "most": "1"})
    assert other.status == 422
    assert "at most 1 are allowed; nothing was asked or charged" in other.text
    fields = {name: value for name, value in price.fields.items() if name != "most"}
    unpriced = await ana.send("ask", fields)
    assert (unpriced.status, "most" in unpriced.text) == (400, True)
    account = f"acme/{ana.client.headers['X-Forwarded-User']}"
    assert price.left(account) == (await ana.get()).left(account)


async def test_explain_asks_for_the_price_alone(ana: Person) -> None:
    """In SQL as by the button."""
    price = await ana.priced(TOP)
    explained = await ana.send("ask", price.fields | {"sql": f"EXPLAIN PLAN FOR {TOP}"})
    assert explained.text.partition("The price At most")[2] == price.text.partition("The price At most")[2]


async def test_a_mistake_in_sql_names_its_place_and_keeps_the_text(ana: Person) -> None:
    """With a mark below the line, and lines as they were typed."""
    sql = "SELECT member_id\r\nFROM feedback WHERE"
    wrong = await ana.send("price", {"sql": sql, "sent": "x"})
    assert wrong.status == 422
    assert "Nothing was charged" in wrong.text
    assert "^" in wrong.html.partition("<pre>")[2]
    assert wrong.fields["sql"] == sql.replace("\r\n", "\n")
    assert (await ana.send("price", {"sql": "", "sent": "x"})).status == 422
    refused = await ana.priced("SELECT app, COUNT(*) FROM nowhere GROUP BY app")
    assert refused.status == 403


async def test_an_exhausted_budget_says_what_is_missing(stage: Stage) -> None:
    """Nothing is charged, and the page names the level and the largest LIMIT that fits."""
    proxy = {"header": "X-Forwarded-User", "account": ["poor"]}
    with serving_page(stage, "poor", proxy=proxy) as served:
        async with served.person("pia") as pia:
            price = await pia.priced(
                "SELECT score, COUNT(*) FROM feedback GROUP BY score ORDER BY 2 DESC LIMIT 3"
            )
            assert "Your budget holds 0 such questions" in price.text
            refused = await pia.send("ask", price.fields)
    assert refused.status == 429
    assert "poor/pia, calls" in refused.text or "poor/pia, information" in refused.text
    assert "it would fit now" in refused.text


async def test_hostile_names_are_texts(ana: Person) -> None:
    """Markup is escaped, what cannot be seen is replaced, and each name keeps its direction to itself."""
    answer = await ana.asked(ALL_NAMES)
    assert answer.status == 200
    assert "<script>" not in answer.html
    assert "<img src=x" not in answer.html
    for name in HOSTILE:
        assert visible(name) in answer.text
    assert not {"\u202e", "\u200b", "\u2066"} & set(answer.html)
    assert "{{ 7 * 7 }}" in answer.text
    assert {"bdi"} <= {tag for tag, _ in answer.tags}
    again = await ana.send("price", {"sql": "</textarea><script>x</script>", "sent": '"><script>'})
    assert "<script>" not in again.html


async def test_a_long_answer_is_cut_and_says_so(stage: Stage) -> None:
    """The table of a page has a thousand rows at most."""
    token = stage.token("long")
    credentials = Credentials(ca_file=stage.authority.ca_file, token=lambda: token)
    async with AsyncGatewayClient(Endpoint(stage.gateway, credentials)) as client:
        sql = "SELECT element, COUNT(DISTINCT member_id) FROM wide GROUP BY element"
        seen = await seen_by(client, Form("ask", sql, "x", 3000))
    assert seen.result is not None
    assert len(seen.result.rows) == WIDE_ELEMENTS == MOST_ROWS
    rows = seen.result.rows
    object.__setattr__(seen.result, "rows", rows + rows)
    assert f"the first {MOST_ROWS} of {2 * MOST_ROWS:,} elements" in rendered(seen)


@pytest.mark.parametrize(
    ("error", "is_free"),
    [
        (OutcomeUnknown("gateway", "no answer"), False),
        (IntegrityError("the gateway is older than this client"), False),
        (GrisError("nobody is there"), True),
    ],
)
def test_what_may_have_been_paid_is_not_called_free(error: GrisError, is_free: bool) -> None:
    """The same form can be sent again, for it is paid once."""
    problem = Problem.of(error)
    assert ("Nothing was charged" in problem.advice) is is_free
    assert ("Send the same form again" in problem.advice) is not is_free


async def test_a_page_whose_gateway_fails_shows_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the type and the place, and neither has the text of the error."""

    class Failing:
        header = "X-User"

        def redeemed(self, token: str) -> str | None:
            raise AssertionError(token)

        def require_known(self, sender: object) -> object:
            return sender

        def admitted(self, *_: object) -> object:
            return nullcontext(self)

        async def catalog(self) -> None:
            raise RuntimeError("secret-literal")

    app = PageApplication(Failing(), HttpRules(), is_secure=False)  # type: ignore[arg-type]
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        page = await client.get("/")
    assert page.status_code == 500
    assert "secret-literal" not in page.text + caplog.text
    assert [each for each in caplog.records if each.__dict__.get("event") == "internal_error"]

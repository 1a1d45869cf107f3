"""What a caller who may ask gets."""

from __future__ import annotations

import asyncio
import datetime
from contextlib import closing
from fractions import Fraction
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import question_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, GatewayClient
from pinot_connector.budgets import shares_of
from pinot_connector.dbapi import connect
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import (
    AccountUnknown,
    BudgetExhausted,
    InvalidQuestion,
    RefusedByPolicy,
    ServiceRefused,
    TooMuchSql,
)
from pinot_connector.guarantees import PublishedDomain, Sharing
from pinot_connector.past_results import PastResult
from pinot_connector.questions import sql_question, structured_question
from tests.support.clients import client_of
from tests.support.gateways import GatewayWorld, stub_of
from tests.support.pki import email, uri
from tests.support.some import some
from tests.unit.gris_gateway.calls import TOP, ended

SQL = "SELECT app, COUNT(DISTINCT member_id) AS members FROM feedback GROUP BY app ORDER BY members DESC"
EXPLAINED = "EXPLAIN SELECT app, COUNT(*) FROM feedback GROUP BY app LIMIT {}"


def asking(gateway: GatewayWorld, credentials: Credentials, account: str | None = None) -> AsyncGatewayClient:
    """Return a client of the gateway."""
    return AsyncGatewayClient(Endpoint(gateway.address, credentials), account=account)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"{SQL} LIMIT 0", []),
        ("SELECT app, COUNT(*) FROM feedback WHERE 1 = 0 GROUP BY app", []),
        ("SELECT DISTINCT app FROM feedback", None),
    ],
)
async def test_what_needs_no_release_is_answered_and_leaves_no_trace(
    gateway: GatewayWorld, sql: str, rows: list[object] | None
) -> None:
    """As BI tools ask before they draw a chart, and again under the same id."""
    async with asking(gateway, gateway.analyst("probing")) as client:
        results = [await client.ask(sql_question(sql), request_id="probe") for _ in range(2)]
        past = [each async for each in client.releases()]
    assert past == []
    assert [(each.charged.information, each.charged.calls) for each in results] == [(0, 0), (0, 0)]
    assert results[0].rows == results[1].rows
    assert (list(results[0].rows) == rows) if rows is not None else len(results[0].rows) == 4


async def test_an_analyst_gets_a_paid_result(gateway: GatewayWorld) -> None:
    """Ranked elements with intervals, what they cost and what is left of the account that the token names."""
    async with asking(gateway, gateway.analyst("paying")) as client:
        result = await client.ask(TOP)
        again = await client.ask(TOP)
        levels = await client.remaining()
    assert 10 == len(result.rows)
    counts = [(row.noisy_count, row.interval) for row in result.rows]
    assert all(
        count is not None and ends is not None and ends[0] <= count <= ends[-1]
        for count, ends in some(counts)
    )
    assert (21, 1) == (result.charged.information, result.charged.calls)
    assert (0, 0) == (again.charged.information, again.charged.calls)
    assert result.rows == again.rows
    assert ("app", "acme", "paying") == levels[-1].path
    assert 21 == levels[-1].spent.information


async def test_what_needs_no_data_is_answered_and_not_kept(gateway: GatewayWorld) -> None:
    """As dashboards ask before they show anything: it costs nothing, and no history lists it."""
    async with asking(gateway, gateway.analyst("probing")) as client:
        result = await client.ask(sql_question(f"{SQL} LIMIT 0"))
        listed = [release async for release in client.releases()]
    assert (0, 0) == (result.charged.information, result.charged.calls)
    assert [] == listed
    assert "free.columns" == result.statements[0].code


async def test_every_type_of_element_and_every_shape_arrives(gateway: GatewayWorld) -> None:
    """Days, integers, several columns, no counts, nothing found, and a result of several chunks."""
    async with asking(gateway, gateway.by_token(org="globex")) as client:
        days = await client.top_k("feedback", "day", 3)
        scores = await client.top_k("feedback", ["score", "app"], 3)
        ordered = await client.sql(
            "SELECT article_id FROM feedback GROUP BY 1 ORDER BY COUNT(DISTINCT member_id) DESC LIMIT 3"
        )
        nothing = await client.top_k("feedback", "article_id", 3, where={"cohort": "no such cohort"})
        wide = await client.histogram("wide", "element")
    assert isinstance(days.rows[0].element[0], datetime.date)
    assert [int, str] == [type(value) for value in scores.rows[0].element]
    assert (None, None) == (ordered.rows[0].noisy_count, ordered.rows[0].interval)
    assert () == nothing.rows
    assert len(wide.rows) > 40_000
    assert str(wide.rows[-1].element[0]).startswith("an element")


async def test_sql_goes_the_same_way(gateway: GatewayWorld) -> None:
    """The aliases of the counts and of a column arrive too."""
    async with asking(gateway, gateway.analyst()) as client:
        result = await client.sql(SQL)
        named = await client.sql(SQL.replace("app,", 'app AS "Die App",'))
    assert (["app"], ["Die App"]) == tuple(
        [column.title for column in each.columns] for each in (result, named)
    )
    assert ("members", 4) == (result.count_alias, len(result.rows))


async def test_a_total_arrives_as_one_row_of_no_columns_and_is_listed(gateway: GatewayWorld) -> None:
    """Drawn, given again from what is kept, and in the history: always the same count."""
    sql = "SELECT COUNT(DISTINCT member_id) FROM feedback WHERE score = 1"
    async with asking(gateway, gateway.analyst("totals")) as client:
        first = await client.total("feedback", where={"score": 1})
        again = await client.sql(sql)
        price = await client.explain(sql_question(sql))
        listed = [release async for release in client.releases()]
    (row,) = first.rows
    assert ((), ()) == (first.columns, row.element)
    assert row.noisy_count is not None
    assert first.rows == again.rows
    assert (1, 0) == (first.charged.information, again.charged.information)
    assert (1, 0) == (price.worst_case_cost.information, price.worst_case_cost.calls)
    assert {(1, (row.noisy_count,))} == {
        (each.result.shown.element_count, tuple(each.elements.noisy_counts)) for each in listed
    }


async def test_a_price_is_told_without_asking(gateway: GatewayWorld) -> None:
    """Nothing is spent by Explain, and no query for an engine is shown."""
    async with asking(gateway, gateway.analyst()) as client:
        explanation = await client.explain(TOP)
        left = await client.questions_left(TOP)
        levels = await client.remaining()
    assert (21, 1) == (explanation.worst_case_cost.information, explanation.worst_case_cost.calls)
    assert ((), 142) == (explanation.queries, left)
    assert explanation.narrowest is not None
    assert left == explanation.narrowest.remaining // explanation.narrowest.cost
    assert 0 == levels[-1].spent.information


async def test_a_price_is_compared_with_the_budget(gateway: GatewayWorld) -> None:
    """Level by level and unit by unit, as the connector does; of an account below one's own where a rule says so."""
    credentials = gateway.by_token(org="notebooks", sub="comparing")
    own = ("app", "notebooks", "comparing")
    async with asking(gateway, credentials) as client:
        await client.ask(TOP)
        explanation = await client.explain(TOP)
        levels = await client.remaining()
    cost = explanation.worst_case_cost
    assert shares_of(levels, cost) == explanation.shares
    assert [(own[:depth], unit) for depth in (1, 2, 3) for unit in ("information", "calls")] == [
        (share.path, share.unit) for share in explanation.shares
    ]
    last = explanation.shares[-1]
    assert (1, 300, 299, Fraction(1, 300)) == (last.cost, last.limit, last.remaining, last.of_limit)
    async with asking(gateway, credentials, account="app/notebooks/comparing/notebook") as client:
        below = await client.explain(TOP)
    assert ((*own, "notebook"), 300) == (below.shares[-1].path, below.shares[-1].remaining)


async def test_a_price_is_not_compared_with_anothers_budget(gateway: GatewayWorld) -> None:
    """Explain tells nothing of an account that is not the caller's, nor of one without a budget."""
    async with asking(gateway, gateway.analyst(), account="app/acme/bob") as client:
        with pytest.raises(ServiceRefused, match=r"ACCOUNT_OUT_OF_REACH.*leave out --account"):
            await client.explain(TOP)
    unknown = gateway.authority.client(email("unknown@example.org"), file="unknown-explains")
    async with asking(gateway, unknown) as client:
        with pytest.raises(AccountUnknown):
            await client.explain(TOP)


async def test_the_catalogue_arrives_whole(gateway: GatewayWorld) -> None:
    """Page by page, every table of the policy that the gateway's engine has."""
    async with asking(gateway, gateway.analyst()) as client:
        catalog = await client.catalog()
        one = await client.catalog("small")
        with pytest.raises(InvalidQuestion) as absent:
            await client.catalog("orders")
    assert {"feedback", "small", "wide", "growing"} == {table.name for table in catalog.tables}
    assert ["small"] == [table.name for table in one.tables]
    assert "table" == absent.value.field


async def test_results_are_listed_newest_first_page_by_page(gateway: GatewayWorld) -> None:
    """Each account sees exactly its own; asking again on the same day adds nothing."""
    credentials = gateway.by_token(org="notebooks", sub="listed")
    async with asking(gateway, credentials) as client:
        for k in (1, 2, 3):
            await client.top_k("feedback", "app", k)
        await client.top_k("feedback", "app", 1)
        found = [release async for release in client.releases(page_size=2)]
    async with asking(gateway, credentials, "app/notebooks/listed/below") as other:
        below = [release async for release in other.releases()]
    assert [3, 2, 1] == [release.question.structured.k for release in found]
    assert all(release.result.shown.release_id and release.elements.noisy_counts for release in found)
    assert [] == below


async def test_a_large_result_is_listed_without_its_elements(gateway: GatewayWorld) -> None:
    """It says so, and so does `gris history`; everything else of it is there."""
    async with asking(gateway, gateway.analyst()) as client:
        await client.histogram("wide", "element")
        found = [release async for release in client.releases()]
    assert [(True, 0)] == [(each.elements_omitted, len(each.elements.columns)) for each in found]
    assert found[0].result.shown.element_count > 40_000
    past = PastResult.of(found[0])
    assert (True, ()) == (past.elements_omitted, past.result.rows)
    assert found[0].result.shown.release_id == past.result.release_id


async def test_a_lost_answer_is_fetched_by_its_request_id(gateway: GatewayWorld) -> None:
    """The same id and question bring the same result for nothing; another question under it is refused."""
    async with asking(gateway, gateway.analyst()) as client:
        first = await client.ask(TOP, request_id="a question")
        again = await client.ask(TOP, request_id="a question")
        with pytest.raises(InvalidQuestion, match="request_id"):
            await client.ask(sql_question(SQL), request_id="a question")
        levels = await client.remaining()
    assert first.rows == again.rows
    assert [21, 0, 21] == [first.charged.information, again.charged.information, levels[-1].spent.information]


async def test_the_id_of_a_large_result_is_not_taken_for_another_question(gateway: GatewayWorld) -> None:
    """Its elements are not kept, so it is asked again, for nothing; another question is refused, and costs nothing."""
    large = structured_question("wide", "element", k=None)
    async with asking(gateway, gateway.analyst()) as client:
        first = await client.ask(large, request_id="large")
        with pytest.raises(InvalidQuestion, match="request_id"):
            await client.ask(TOP, request_id="large")
        again = await client.ask(large, request_id="large")
        found = [release async for release in client.releases()]
        levels = await client.remaining()
    assert first.rows == again.rows
    assert ["large"] == [each.request_id for each in found]
    assert first.charged.information == levels[-1].spent.information


@pytest.mark.parametrize("order", [(0.6, 0.999), (0.999, 0.6)])
async def test_a_caller_chooses_the_confidence(gateway: GatewayWorld, order: tuple[float, float]) -> None:
    """Of one release, for one price; both answers are listed, and without a choice it is the gateway's own."""
    async with asking(gateway, gateway.analyst()) as client:
        first, second = [await client.ask(TOP, confidence=each) for each in order]
        own = await client.ask(TOP)
        again = await client.ask(TOP, confidence=order[0])
        listed = [PastResult.of(release) async for release in client.releases()]
    assert [each.confidence for each in (first, second, own, again)] == [*order, 0.95, order[0]]
    assert first.charged.information > 0
    assert [each.charged.information for each in (second, own, again)] == [0, 0, 0]
    assert {each.release_id for each in (first, second, own)} == {first.release_id}
    assert first.rows == again.rows != second.rows
    assert {each.result.confidence: each.result.rows for each in listed} == {
        each.confidence: each.rows for each in (first, second, own)
    }


async def test_a_request_id_stands_for_one_confidence(gateway: GatewayWorld) -> None:
    """A retry with another one is another request, and gets no answer that it did not ask for."""
    async with asking(gateway, gateway.analyst()) as client:
        first = await client.ask(TOP, request_id="sure", confidence=0.99)
        again = await client.ask(TOP, request_id="sure", confidence=0.99)
        for other in (0.9, None):
            with pytest.raises(InvalidQuestion, match="another question or confidence"):
                await client.ask(TOP, request_id="sure", confidence=other)
    assert (first.rows, first.confidence) == (again.rows, again.confidence)


async def test_a_request_id_means_nothing_to_another_account(gateway: GatewayWorld) -> None:
    """A caller that guesses another account's id asks and pays as if that id did not exist."""
    async with asking(gateway, gateway.analyst()) as one, asking(gateway, gateway.analyst()) as other:
        await one.ask(TOP, request_id="shared")
        result = await other.ask(sql_question(SQL), request_id="shared")
    assert 4 == len(result.rows)
    assert result.charged.information > 0


async def test_only_one_request_of_an_id_is_answered_at_a_time(gateway: GatewayWorld) -> None:
    """Of many at once one asks, and the others wait for its result; one charge stands."""
    request = app_pb2.AskRequest(question=TOP, request_id="race")
    async with gateway.channel(gateway.analyst("racer")) as channel:
        stub = stub_of(channel)
        outcomes = await asyncio.gather(*(ended(stub.Ask(request, timeout=30)) for _ in range(8)))
        levels = (await stub.GetRemaining(app_pb2.GetRemainingRequest(), timeout=30)).levels
    assert {grpc.StatusCode.OK} == set(outcomes)
    assert 21 == levels[-1].spent.information


async def test_a_caller_who_leaves_pays_all_or_nothing(gateway: GatewayWorld) -> None:
    """A question cancelled before its noise is drawn gives its reservation back; a later one is charged."""
    question = structured_question("wide", "element", k=None)
    credentials = gateway.analyst()
    async with gateway.channel(credentials) as channel, asking(gateway, credentials) as client:
        stub = stub_of(channel)
        call = stub.Ask(app_pb2.AskRequest(question=question))
        async with asyncio.timeout(30):
            while not call.done():
                level = (await stub.GetRemaining(app_pb2.GetRemainingRequest(), timeout=30)).levels[-1]
                if level.reserved.information or level.spent.information:
                    break
        call.cancel()
        # What it had reserved is given back by another task; a busy machine takes its time for that.
        async with asyncio.timeout(20):
            while True:
                await asyncio.sleep(0.5)
                level = (await stub.GetRemaining(app_pb2.GetRemainingRequest(), timeout=30)).levels[-1]
                if not level.reserved.information:
                    break
        price = (await client.explain(question)).worst_case_cost.information
        assert level.spent.information in (0, price)


async def test_an_exhausted_budget_says_all_that_is_missing(gateway: GatewayWorld) -> None:
    """Both units, with what was asked and what is left, as in process."""
    poor = gateway.authority.client(email("poor@example.org"), file="poor")
    async with asking(gateway, poor) as client:
        with pytest.raises(BudgetExhausted) as refused:
            await client.ask(TOP)
    assert ["information"] == [shortfall.unit for shortfall in refused.value.shortfalls]
    assert (21, 5) == (refused.value.shortfalls[0].requested, refused.value.shortfalls[0].remaining)
    assert ("alone", "one") == refused.value.shortfalls[0].level
    assert 2 == refused.value.largest_k


async def test_a_lowered_limit_is_told_by_the_gateway_too(gateway: GatewayWorld) -> None:
    """In the price, in the result, and in what is listed later."""
    text = "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id LIMIT 50000"
    async with asking(gateway, gateway.analyst()) as client:
        assert 50_000 == (await client.explain(text)).requested_k
        result = await client.sql(text)
        assert (100, 50_000) == (result.parameters.k, result.requested_k)
        assert [50_000] == [each.result.shown.requested_k async for each in client.releases()]


async def test_the_policy_refuses_by_name(gateway: GatewayWorld) -> None:
    """The error names the rule, and nothing is spent."""
    async with asking(gateway, gateway.analyst()) as client:
        with pytest.raises(RefusedByPolicy):
            await client.top_k("feedback", "member_id", 3)


def test_ordinary_programs_and_pandas_ask_by_the_same_gateway(gateway: GatewayWorld) -> None:
    """The blocking client and DB-API have the same answers as each other."""
    credentials = gateway.analyst()
    with GatewayClient(Endpoint(gateway.address, credentials)) as client:
        rows = client.sql(SQL).rows
        assert client.remaining()
    with connect(f"gris://{gateway.address}", credentials=credentials) as cursor:
        table = cursor.execute(SQL).fetchall()
    assert [(*row.element, row.noisy_count) for row in rows] == [row[:2] for row in table]


async def test_an_account_below_the_callers_own_pays_for_itself(gateway: GatewayWorld) -> None:
    """An application asks for each of its analysts."""
    acme = gateway.authority.client(uri("spiffe://example.org/acme"), file="acme")
    async with asking(gateway, acme, "app/acme/guest") as client:
        await client.ask(TOP)
        levels = await client.remaining()
    assert [("app",), ("app", "acme"), ("app", "acme", "guest")] == [level.path for level in levels]
    assert 21 == levels[-1].spent.information


def test_a_connection_is_for_the_account_of_its_url_or_its_argument(gateway: GatewayWorld) -> None:
    """The argument counts where there are both."""
    acme = gateway.authority.client(uri("spiffe://example.org/acme"), file="acme-by-url")
    url = f"gris://{gateway.address}/?account=app%2Facme%2Furl"
    for account, last in ((None, "url"), ("app/acme/given", "given")):
        with closing(connect(url, credentials=acme, account=account)) as connection:
            assert ("app", "acme", last) == connection.remaining()[-1].path


async def test_a_token_decides_before_a_certificate(gateway: GatewayWorld) -> None:
    """An application that shows its certificate hands on the token of its analyst."""
    acme = gateway.authority.client(uri("spiffe://example.org/acme"), file="acme-too")
    token = gateway.issuer.token_file("gris-gateway", "handed-on", org="acme", sub="handed-on")
    both = Credentials(acme.ca_file, acme.certificate_file, acme.key_file, token)
    async with asking(gateway, both) as client:
        levels = await client.remaining()
    assert ("app", "acme", "handed-on") == levels[-1].path


@pytest.mark.parametrize(
    ("method", "request_", "field"),
    [
        ("Ask", app_pb2.AskRequest(), "question"),
        ("Ask", app_pb2.AskRequest(question=question_pb2.Question(sql="")), "sql"),
        ("Ask", app_pb2.AskRequest(question=TOP, request_id="x" * 129), "request_id"),
        ("Ask", app_pb2.AskRequest(question=TOP, request_id="né"), "request_id"),
        ("Ask", app_pb2.AskRequest(question=TOP, request_id="a\nb"), "request_id"),
        *(
            ("Ask", app_pb2.AskRequest(question=TOP, confidence=each), "confidence")
            for each in (0.5, 1.0, -0.9, 95.0, float("nan"))
        ),
        ("Ask", app_pb2.AskRequest(question=TOP, max_cost=-1), "max_cost"),
        ("Ask", app_pb2.AskRequest(question=TOP, max_cost=0), "max_cost"),
        ("Explain", app_pb2.ExplainRequest(), "question"),
        (
            "Explain",
            app_pb2.ExplainRequest(question=TOP, account=budget_pb2.Account(path=["a/b"])),
            "account.path",
        ),
        ("GetCatalog", app_pb2.GetCatalogRequest(page_token="?"), "page_token"),
        ("ListReleases", app_pb2.ListReleasesRequest(page_size=-1), "page_size"),
        ("ListReleases", app_pb2.ListReleasesRequest(page_size=101), "page_size"),
        ("ListReleases", app_pb2.ListReleasesRequest(page_token="-1"), "page_token"),
        ("ListReleases", app_pb2.ListReleasesRequest(page_token="9" * 30), "page_token"),
        ("ListReleases", app_pb2.ListReleasesRequest(page_token="²"), "page_token"),
        ("GetRemaining", app_pb2.GetRemainingRequest(account=budget_pb2.Account(path=[""])), "account.path"),
    ],
)
async def test_bad_input_names_its_field(
    gateway: GatewayWorld, method: str, request_: Any, field: str
) -> None:
    """INVALID_ARGUMENT, with the field in BadRequest."""
    async with gateway.channel(gateway.by_token(org="globex")) as channel:
        call = getattr(stub_of(channel), method)(request_, timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await (call.read() if method == "Ask" else call)
    assert grpc.StatusCode.INVALID_ARGUMENT is error.value.code()
    assert (error.value.details() or "").startswith(field)


async def test_whoever_reaches_the_gateway_may_ask_whether_it_lives(gateway: GatewayWorld) -> None:
    """Health and reflection ask for no account."""
    async with gateway.channel(gateway.nobody) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(
            health_pb2.HealthCheckRequest(service="gris.app.v1.PrivateQueryService"), timeout=5
        )
    assert health_pb2.HealthCheckResponse.SERVING == answer.status


async def test_what_is_promised_is_told_with_the_shared_budget(gateway: GatewayWorld) -> None:
    """The same as the connector tells, of the caller's own account or one below it, and of no other."""
    credentials = gateway.analyst("promised")
    own = ("app", "acme", "promised")
    more = [PublishedDomain("0.1", "1e-9")]
    async with asking(gateway, credentials) as client:
        reported = await client.guarantee()
        with_more = await client.guarantee(domains=more)
        with pytest.raises(InvalidQuestion, match=r"domains\[0\]\.delta"):
            await client.guarantee(domains=[PublishedDomain("0.1", "2")])
    async with client_of(gateway, DuckDBEngine({}), account=own) as trusted:
        assert await trusted.guarantee() == reported
        assert await trusted.guarantee(domains=more) == with_more
    assert (own, Sharing.COSTS) == (reported.own.path, reported.sharing)
    assert reported.shared is not None
    assert (("app",), 1_000_000) == (
        reported.shared.path,
        reported.shared.limit and reported.shared.limit.information,
    )
    assert with_more.epsilon > reported.epsilon
    company = gateway.authority.client(uri("spiffe://example.org/acme"), file="acme-promised")
    async with asking(gateway, company, account="app/acme/promised") as client:
        assert reported == await client.guarantee()
    async with asking(gateway, credentials, account="app/acme/bob") as client:
        with pytest.raises(ServiceRefused, match="ACCOUNT_OUT_OF_REACH"):
            await client.guarantee()
    poor = gateway.authority.client(email("poor@example.org"), file="poor-promised")
    await asyncio.to_thread(_promised_alone, gateway, poor)


def _promised_alone(gateway: GatewayWorld, credentials: Credentials) -> None:
    """Without a level above there is nothing shared, and the blocking client tells the same."""
    with GatewayClient(Endpoint(gateway.address, credentials)) as client:
        reported = client.guarantee()
    assert (Sharing.NONE, None, ("alone", "one")) == (reported.sharing, reported.shared, reported.holds.path)


async def test_an_analyst_who_floods_with_sql_does_not_starve_another(gateway: GatewayWorld) -> None:
    """dp_service tells the callers of a gateway apart: one is refused by name, the other one gets every answer."""
    values = ", ".join(f"'{number:06}'" for number in range(9_000))
    text = EXPLAINED.replace(" GROUP", f" WHERE app NOT IN ({values}) GROUP")
    async with (
        asking(gateway, gateway.analyst("flooding")) as flooding,
        asking(gateway, gateway.analyst()) as other,
    ):
        flood = [asyncio.ensure_future(flooding.sql(text.format(k))) for k in range(10, 34)]
        await asyncio.sleep(0.2)
        for k in range(1, 6):
            assert (await other.sql(EXPLAINED.format(k))).explanation
        assert (await other.sql(text.format(9))).explanation
        ended = await asyncio.gather(*flood, return_exceptions=True)
    refused = [each for each in ended if isinstance(each, BaseException)]
    assert 1 <= len(refused) <= 22
    assert {type(each) for each in refused} == {TooMuchSql}
    assert all("expected at most 262,144 at a time" in str(each) for each in refused)

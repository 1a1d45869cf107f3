"""What callers of gRPC try who are not who they say, or want what is not theirs."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import question_pb2

from gris_gateway.limits import DEFAULT_LIMITS
from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, gateway_address
from pinot_connector.errors import InvalidQuestion, RefusedByPolicy, ServiceRefused, ServiceUnavailable
from pinot_connector.questions import structured_question
from tests.support.gateways import AUDIENCE, GatewayWorld, stub_of
from tests.support.pki import Authority, dns, email, uri

TOP = structured_question("feedback", "article_id", k=10)
REMAINING = app_pb2.GetRemainingRequest()


async def reason_of(gateway: GatewayWorld, credentials: Credentials, request: Any = REMAINING) -> str:
    """Return the reason for which GetRemaining is refused, or the account that it tells of."""
    async with gateway.channel(credentials) as channel:
        try:
            answer = await stub_of(channel).GetRemaining(request, timeout=30)
        except grpc.aio.AioRpcError as error:
            return reason_in(error)
    return "/".join(answer.account.path)


def details_of(error: grpc.aio.AioRpcError) -> Status:
    """Return the google.rpc.Status of an error."""
    packed = dict(tuple(error.trailing_metadata() or ())).get("grpc-status-details-bin", b"")
    return Status.FromString(packed if isinstance(packed, bytes) else packed.encode())


def reason_in(error: grpc.aio.AioRpcError) -> str:
    """Return the reason in an error's ErrorInfo; the gateway's domain is checked."""
    info = ErrorInfo()
    assert any(detail.Unpack(info) for detail in details_of(error).details), error.details()
    assert "gris.app" == info.domain
    return str(info.reason)


def naming(*path: str) -> app_pb2.GetRemainingRequest:
    """Return a request about an account."""
    return app_pb2.GetRemainingRequest(account=budget_pb2.Account(path=path))


async def test_a_good_certificate_does_not_make_up_for_a_bad_token(gateway: GatewayWorld) -> None:
    """UNAUTHENTICATED: a bad token is never just overlooked."""
    forged = gateway.by_token(org="acme", sub="ana", exp=1)
    assert "TOKEN_REFUSED" == await reason_of(gateway, forged)
    ana = gateway.authority.client(uri("spiffe://example.org/ana"), file="ana-too")
    with_certificate = Credentials(ana.ca_file, ana.certificate_file, ana.key_file, forged.token_file)
    assert "TOKEN_REFUSED" == await reason_of(gateway, with_certificate)


@pytest.mark.parametrize("header", ["Basic YTpi", "bearer", "token"])
async def test_another_scheme_or_two_tokens_are_refused(gateway: GatewayWorld, header: str) -> None:
    """A header that is there has to be right."""
    good = ("authorization", "Bearer " + gateway.issuer.token(AUDIENCE, org="acme", sub="x"))
    async with gateway.channel(gateway.nobody) as channel:
        for metadata in ([("authorization", header)], [good, good], [good, ("authorization", header)]):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub_of(channel).GetRemaining(REMAINING, metadata=metadata, timeout=30)
            assert "TOKEN_REFUSED" == reason_in(error.value)
        answer = await stub_of(channel).GetRemaining(REMAINING, metadata=[good], timeout=30)
    assert ["app", "acme", "x"] == answer.account.path


async def test_only_exact_names_of_certificates_count(gateway: GatewayWorld) -> None:
    """Neither another kind of name nor one that nearly is; two names of two accounts are no account."""
    for name in (
        uri("spiffe://example.org/ana/"),
        uri("spiffe://example.org/Ana"),
        dns("spiffe"),
        email("ana@example.org"),
    ):
        assert "CALLER_WITHOUT_ACCOUNT" == await reason_of(
            gateway, gateway.authority.client(name, file="near")
        )
    two = gateway.authority.client(uri("spiffe://example.org/two"), email("two@example.org"), file="two")
    assert "CALLER_WITHOUT_ACCOUNT" == await reason_of(gateway, two)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("app", "acme", "ana"), "app/acme/ana"),
        (("app", "acme", "ana", "notebook"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme"), "ACCOUNT_OUT_OF_REACH"),
        (("app",), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme", "bob"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "globex", "ana"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme", "ana2"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme", "\u0430na"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme", "Ana"), "ACCOUNT_OUT_OF_REACH"),
        (("app", "acme", "ana", "*"), "INVALID_ARGUMENT"),
        (("app", "acme", "*"), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", ".."), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "."), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "../bob"), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", ""), "INVALID_ARGUMENT"),
        (("", "app", "acme", "ana"), "INVALID_ARGUMENT"),
        (("app", "", "acme", "ana"), "INVALID_ARGUMENT"),
        (("app/acme/ana",), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "x\u200d"), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "e\u0301"), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "x\n"), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "x" * 129), "INVALID_ARGUMENT"),
        (("app", "acme", "ana", "1", "2"), "INVALID_ARGUMENT"),
    ],
)
async def test_nobody_reaches_another_account(
    gateway: GatewayWorld, ana: Credentials, path: tuple[str, ...], expected: str
) -> None:
    """Ana reaches only her own account; no answer says whether others exist."""
    assert expected == await reason_of(gateway, ana, naming(*path))


async def test_nobody_makes_budgets_below_their_own_account(gateway: GatewayWorld, ana: Credentials) -> None:
    """Each name below one's own would be a fresh budget where accounts are made at first use."""
    wide = gateway.authority.client(uri("spiffe://example.org/wide"), file="wide")
    for credentials, own in ((ana, ("app", "acme", "ana")), (wide, ("app", "acme"))):
        assert ["ACCOUNT_OUT_OF_REACH"] * 3 == [
            await reason_of(gateway, credentials, naming(*own, name)) for name in ("x1", "x2", "x3")
        ]


async def test_a_rule_may_let_its_callers_name_accounts_below_their_own(gateway: GatewayWorld) -> None:
    """Of certificates and of tokens; never beside their own."""
    acme = gateway.authority.client(uri("spiffe://example.org/acme"), file="acme-below")
    assert "app/acme/x1" == await reason_of(gateway, acme, naming("app", "acme", "x1"))
    eve = gateway.by_token(org="notebooks", sub="eve")
    assert "app/notebooks/eve/n1" == await reason_of(gateway, eve, naming("app", "notebooks", "eve", "n1"))
    for credentials in (acme, eve):
        assert "ACCOUNT_OUT_OF_REACH" == await reason_of(
            gateway, credentials, naming("app", "notebooks", "bob", "n1")
        )


async def test_every_method_with_an_account_guards_it(gateway: GatewayWorld, ana: Credentials) -> None:
    """Asking and listing as much as what is left."""
    other = budget_pb2.Account(path=["app", "acme", "bob"])
    async with gateway.channel(ana) as channel:
        stub = stub_of(channel)
        calls = (
            stub.Ask(app_pb2.AskRequest(question=TOP, account=other)).read(),
            stub.ListReleases(app_pb2.ListReleasesRequest(account=other)),
        )
        for call in calls:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call
            assert (grpc.StatusCode.PERMISSION_DENIED, "ACCOUNT_OUT_OF_REACH") == (
                error.value.code(),
                reason_in(error.value),
            )


async def test_a_page_token_of_another_account_shows_nothing_of_it(gateway: GatewayWorld) -> None:
    """It is refused like one that is made up; and a token does not tell how many results others have."""
    victim = gateway.analyst()
    async with AsyncGatewayClient(Endpoint(gateway.address, victim)) as client:
        await client.ask(TOP)
        await client.top_k("feedback", "article_id", 3)
    async with gateway.channel(victim) as channel:
        first = await stub_of(channel).ListReleases(app_pb2.ListReleasesRequest(page_size=1), timeout=30)
        token = first.next_page_token
        same = await stub_of(channel).ListReleases(app_pb2.ListReleasesRequest(page_size=1), timeout=30)
        second = app_pb2.ListReleasesRequest(page_size=1, page_token=token)
        assert len((await stub_of(channel).ListReleases(second, timeout=30)).releases) == 1
    assert (token.isdecimal(), token == same.next_page_token) == (False, False)
    async with gateway.channel(gateway.analyst()) as channel:
        for guess in (token, "1", "999999", str(10**17), token[:-2] + "AA"):
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await stub_of(channel).ListReleases(app_pb2.ListReleasesRequest(page_token=guess), timeout=30)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert "page_token: expected the next_page_token of the page before" == error.value.details()


async def test_a_huge_request_is_refused_before_it_is_read(gateway: GatewayWorld) -> None:
    """More than 2 MiB never reaches a method, and it is not taken for a spent budget."""
    question = question_pb2.Question(sql="SELECT " + "x" * (2 * 2**20))
    async with gateway.channel(gateway.analyst()) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stub_of(channel).Explain(app_pb2.ExplainRequest(question=question), timeout=10)
    assert grpc.StatusCode.RESOURCE_EXHAUSTED is error.value.code()
    assert not details_of(error.value).details
    async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        with pytest.raises(InvalidQuestion):
            await client.sql("SELECT " + "x" * 2**20)


async def test_the_largest_question_is_not_too_large(gateway: GatewayWorld) -> None:
    """As many letters of four bytes, and beside them as many numbers, as a question may have: dp_service reads it."""
    letters, numbers = ["\U0001f600" * 1000] * 200, [2**62] * 1000
    where: dict[str, Any] = {"article_id": letters, **{f"column_{place}": numbers for place in range(31)}}
    async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        with pytest.raises((InvalidQuestion, RefusedByPolicy)):
            await client.explain(structured_question("feedback", "article_id", k=10, where=where))


async def test_no_engine_and_no_service_can_be_reached_through_the_gateway(gateway: GatewayWorld) -> None:
    """Only its own five methods are there."""
    for method in ("/gris.dp.v1.DpService/AddNoiseUnary", "/gris.budget.v1.BudgetService/UpdateBudget"):
        async with gateway.channel(gateway.analyst()) as channel:
            call: Any = channel.unary_unary(method)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call(b"", timeout=30)
        assert grpc.StatusCode.UNIMPLEMENTED is error.value.code()


async def test_the_limit_holds_for_calls_that_come_at_once(gateway: GatewayWorld) -> None:
    """Of 600 calls at once, only the burst and what is refilled meanwhile are let in; the rest learn when to retry."""
    hasty = gateway.authority.client(email("hasty@example.org"), file="hasty")
    async with gateway.channel(hasty) as channel:
        stub = stub_of(channel)
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcomes = await asyncio.gather(
            *(stub.ListReleases(app_pb2.ListReleasesRequest(), timeout=30) for _ in range(600)),
            return_exceptions=True,
        )
        allowed = 400 + 200 * (loop.time() - began) + 1
    refused = [each for each in outcomes if isinstance(each, grpc.aio.AioRpcError)]
    assert 64 <= len(outcomes) - len(refused) <= allowed
    assert {"RATE_LIMITED", "TOO_MANY_AT_ONCE"} >= {reason_in(error) for error in refused}
    for error in refused:
        retry = RetryInfo()
        assert grpc.StatusCode.UNAVAILABLE is error.code()
        assert any(detail.Unpack(retry) for detail in details_of(error).details)
        pushback = dict(tuple(error.trailing_metadata() or ()))["grpc-retry-pushback-ms"]
        assert int(pushback) == retry.retry_delay.ToMilliseconds() >= 1
    assert "app/acme/calm" == await reason_of(gateway, gateway.analyst("calm"))


async def test_a_flood_of_strangers_cancels_nobodys_call(gateway: GatewayWorld) -> None:
    """Each of 5000 calls at once is not let in, or not begun, on a connection that has enough: none is cancelled.

    Clients repeat what is not begun, and do not repeat what is cancelled.
    """
    async with gateway.channel(gateway.nobody) as channel:
        stub = stub_of(channel)
        outcomes = await asyncio.gather(
            *(stub.GetRemaining(REMAINING, timeout=60) for _ in range(5000)), return_exceptions=True
        )
    codes = Counter(each.code() for each in outcomes if isinstance(each, grpc.aio.AioRpcError))
    assert codes[grpc.StatusCode.PERMISSION_DENIED] >= DEFAULT_LIMITS.connection_calls
    assert codes[grpc.StatusCode.PERMISSION_DENIED] + codes[grpc.StatusCode.UNAVAILABLE] == 5000


async def test_a_client_comes_back_when_it_is_told_to(gateway: GatewayWorld) -> None:
    """Calls that change nothing are repeated by gRPC itself, after the pause that the gateway names."""
    credentials = gateway.analyst()
    async with AsyncGatewayClient(Endpoint(gateway.address, credentials)) as client:

        async def several() -> int:
            return sum([len(await client.remaining()) for _ in range(25)])

        answered = await asyncio.gather(*(several() for _ in range(20)))
    # 500 calls are more than the burst of 400.
    assert [75] * 20 == answered


async def test_errors_say_what_a_program_does_about_them(gateway: GatewayWorld, tmp_path: Path) -> None:
    """The connector's client raises its own errors for the gateway's reasons."""
    client = AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst()), account="app/globex")
    with pytest.raises(ServiceRefused, match="ACCOUNT_OUT_OF_REACH"):
        await client.remaining()
    await client.close()
    stranger = Authority.new(tmp_path).client(email("x@example.org"), file="stranger")
    unknown = Credentials(gateway.authority.ca_file, stranger.certificate_file, stranger.key_file)
    client = AsyncGatewayClient(Endpoint(gateway.address, unknown))
    with pytest.raises(ServiceUnavailable):
        await client.remaining()
    await client.close()


@pytest.mark.parametrize(
    "url",
    ["", "gris://", "http://h:1", "h:1", "gris://h", "gris://h:x", "gris://h:99999", "gris://a:b@h:1", "gris://h:1/p",
     "gris://h:1?x", "gris://h:0", "gris://h,g:1", "gris://h%2Fg:1", "gris://-h:1", "gris://[unix]:1", "gris://unix:1",
     "gris://DNS:1", "gris://ipv4:1", "gris://xds:1", "gris://google-c2p:1", "gris://unix-abstract:1"],
)  # fmt: skip
def test_only_the_url_of_a_gateway_is_taken(url: str) -> None:
    """Host and port behind gris://, nothing that would be overlooked, and no name that gRPC reads as a scheme."""
    with pytest.raises(InvalidQuestion, match=r"gris://HOST:PORT"):
        gateway_address(url)

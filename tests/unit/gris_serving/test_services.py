"""Both services behind TLS: each method asks for its role, and nothing is served to strangers by accident."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc, regions_pb2
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import CollectorRegistry

from budget_service.server.hosting import METHODS as BUDGET_METHODS
from budget_service.server.process import main as budget_main
from dp_service.server.process import METHODS as DP_METHODS
from dp_service.server.process import main as dp_main
from gris_serving.authorisation import Callers
from gris_serving.instrumentation import NOTHING, Instrumentation
from gris_serving.metrics import CallMetrics
from gris_serving.reloading_files import SecurityError
from gris_serving.security import Security, SecurityOptions
from pinot_connector import AsyncPrivateClient, Credentials, Endpoint
from pinot_connector.channels import open_channel
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ServiceRefused
from tests.support.dp_server import servicer_of
from tests.support.pki import ISSUER, Authority, Issuer, dns, email, uri
from tests.support.processes import budget_command, dp_command, process
from tests.support.rings import needs
from tests.support.world import COFACTS, POLICY, new_account

AUDIENCE = "gris-services"


@dataclass(frozen=True)
class Guarded:
    """Both services, and who may call them."""

    dp: str
    budget: str
    admin: str
    authority: Authority
    issuer: Issuer
    app: Credentials
    access: Path


def access_file(folder: Path, issuer: Issuer) -> Path:
    """Write who has which role."""
    path = folder / "access.yaml"
    path.write_text(f"""
certificates:
  "uri:spiffe://example.org/app": [spend, read]
  "dns:reader.example.org": [read]
  "dns:ops.example.org": [admin]
  "uri:spiffe://example.org/eu": ["region:eu"]
  "email:nobody@example.org": []
jwt:
  key_file: {issuer.key_file}
  algorithms: [ES256]
  issuer: {ISSUER}
  audience: {AUDIENCE}
""")
    return path


def security_options(authority: Authority, access: Path) -> list[object]:
    """Return the command line of a protected service."""
    certificate, key = authority.server()
    tls = ["--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", authority.ca_file]
    return [*tls, "--access", access]


@pytest.fixture(scope="module")
@needs("process")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Run both services behind mutual TLS."""
    folder = tmp_path_factory.mktemp("guarded")
    authority, issuer = Authority.new(folder), Issuer(folder)
    access = access_file(folder, issuer)
    words = security_options(authority, access)
    admin = ["--admin-listen", "127.0.0.1:0"]
    with (
        process("dp_service", [*dp_command(folder), *words], folder / "dp.log") as dp,
        process("budget_service", [*budget_command(folder), *words, *admin], folder / "budget.log") as budget,
    ):
        app = authority.client(uri("spiffe://example.org/app"), file="app")
        yield Guarded(
            dp["address"], budget["address"], budget["admin_address"], authority, issuer, app, access
        )


async def outcome(
    address: str, credentials: Credentials, method: str, request: bytes = b""
) -> tuple[grpc.StatusCode, str]:
    """Return how a call of a method ends, by default an empty one."""
    async with open_channel(Endpoint(address, credentials)) as channel:
        call: Any = channel.unary_unary(method)
        try:
            await call(request, timeout=20)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or ""
        return grpc.StatusCode.OK, ""


ROLE_OF = {**DP_METHODS.roles, **BUDGET_METHODS.roles}
ANSWERED = (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)
ROLES = {
    "spend, read": uri("spiffe://example.org/app"),
    "read": dns("reader.example.org"),
    "admin": dns("ops.example.org"),
    "region:eu": uri("spiffe://example.org/eu"),
    "": email("nobody@example.org"),
}


@pytest.mark.parametrize("held", ROLES)
async def test_each_method_is_served_exactly_to_its_role(guarded: Guarded, held: str) -> None:
    """Every method of both services, asked by every role: refused without it, and answered otherwise."""
    caller = guarded.authority.client(ROLES[held], file=f"role-{len(held)}")
    for method, role in ROLE_OF.items():
        address = guarded.dp if "Dp" in method else guarded.admin if "Admin" in method else guarded.budget
        code, text = await outcome(address, caller, method)
        if role in [each.partition(":")[0] for each in held.split(", ")]:
            # Nothing was asked, so the service itself answers, or says what is missing.
            assert code in ANSWERED, (method, text)
        else:
            assert (grpc.StatusCode.PERMISSION_DENIED, f"this method asks for the role {role}") == (
                code,
                text,
            )


REQUESTS = (
    ("BorrowBudget", regions_pb2.BorrowBudgetRequest),
    ("ReportCharges", regions_pb2.ReportChargesRequest),
    ("ReturnBudget", regions_pb2.ReturnBudgetRequest),
)


@pytest.mark.parametrize(("method", "request_type"), REQUESTS)
async def test_a_region_speaks_for_itself_alone(guarded: Guarded, method: str, request_type: Any) -> None:
    """Under another name, or with a role that names no region, nothing is lent, recorded or taken back."""
    region = guarded.authority.client(ROLES["region:eu"], file="region")
    nobody = guarded.authority.client(ROLES[""], file="nobody")
    token = guarded.issuer.token_file(AUDIENCE, name="region-token", gris_roles=["region"])
    unnamed = Credentials(nobody.ca_file, nobody.certificate_file, nobody.key_file, token)
    for credentials, name, wanted in (
        (region, "us", "region:us"),
        (region, "eu", None),
        (unnamed, "eu", "region"),
    ):
        request = request_type(region=name).SerializeToString()
        code, text = await outcome(
            guarded.budget, credentials, f"/gris.budget.v1.RegionService/{method}", request
        )
        if wanted is None:
            assert code in ANSWERED, text
        else:
            expected = grpc.StatusCode.PERMISSION_DENIED, f"this method asks for the role {wanted}"
            assert (code, text) == expected


def test_a_role_for_every_region_is_refused(tmp_path: Path) -> None:
    """The file is not used, and says what it should have."""
    path = tmp_path / "access.yaml"
    for role in ("region", "region:", "region:EU", "regions:eu", "all"):
        path.write_text(f'certificates: {{"dns:eu.example.org": [spend, "{role}"]}}')
        with pytest.raises(SecurityError, match=r"certificates.*region:NAME"):
            Callers(path)


def test_every_method_of_every_service_has_a_role() -> None:
    """A method that is added to a proto and forgotten here would be refused to everybody."""
    services = (
        dp_pb2.DESCRIPTOR.services_by_name["DpService"],
        budget_pb2.DESCRIPTOR.services_by_name["BudgetService"],
        admin_pb2.DESCRIPTOR.services_by_name["BudgetAdminService"],
        regions_pb2.DESCRIPTOR.services_by_name["RegionService"],
    )
    declared = {f"/{service.full_name}/{method.name}" for service in services for method in service.methods}
    assert declared == set(ROLE_OF)


async def test_an_unknown_name_is_told_no_more_than_that(guarded: Guarded) -> None:
    """A certificate of the right authority that the file does not name has no role; kinds are not mixed up."""
    for name in (uri("spiffe://example.org/app/.."), dns("spiffe"), email("app@example.org")):
        stranger = guarded.authority.client(name, file="stranger")
        code, text = await outcome(guarded.budget, stranger, "/gris.budget.v1.BudgetService/GetBudget")
        assert (grpc.StatusCode.PERMISSION_DENIED, "this method asks for the role read") == (code, text)


async def test_whoever_reaches_a_service_may_ask_whether_it_lives(guarded: Guarded) -> None:
    """Health asks for no role, only for the handshake."""
    nobody = guarded.authority.client(email("nobody@example.org"), file="nobody")
    async with open_channel(Endpoint(guarded.dp, nobody)) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=30)
    assert health_pb2.HealthCheckResponse.SERVING == answer.status


async def test_a_role_is_given_and_taken_while_the_service_runs(guarded: Guarded) -> None:
    """The access file counts from the next call on, also on a connection that is open; a spoilt one changes nothing."""
    late = guarded.authority.client(dns("late.example.org"), file="late")
    method, before = "/gris.budget.v1.BudgetService/GetBudget", guarded.access.read_text()
    async with open_channel(Endpoint(guarded.budget, late)) as channel:
        call: Any = channel.unary_unary(method)
        codes = []
        for content in (
            before,
            before.replace("certificates:", 'certificates:\n  "dns:late.example.org": [read]'),
            "certificates: [spoilt",
            before,
        ):
            guarded.access.write_text(content)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await call(b"", timeout=30)
            codes.append(error.value.code())
    # An empty request is refused for what it lacks once its caller may ask.
    denied, asked = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.INVALID_ARGUMENT
    assert [denied, asked, asked, denied] == codes


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ({"gris_roles": ["read"]}, grpc.StatusCode.OK),
        ({"gris_roles": "read"}, grpc.StatusCode.PERMISSION_DENIED),
        ({"gris_roles": [["read"], 1, None, "READ", "read "]}, grpc.StatusCode.PERMISSION_DENIED),
        ({}, grpc.StatusCode.PERMISSION_DENIED),
        ({"gris_roles": ["read"], "exp": 1}, grpc.StatusCode.UNAUTHENTICATED),
        ({"gris_roles": ["read"], "aud": "another"}, grpc.StatusCode.UNAUTHENTICATED),
    ],
)
async def test_a_token_gives_the_roles_that_it_lists(
    guarded: Guarded, claims: dict[str, Any], expected: grpc.StatusCode
) -> None:
    """A list of roles in the configured claim counts, and nothing that only resembles it."""
    nobody = guarded.authority.client(email("nobody@example.org"), file="holder")
    token = guarded.issuer.token_file(claims.pop("aud", AUDIENCE), **claims)
    credentials = Credentials(nobody.ca_file, nobody.certificate_file, nobody.key_file, token)
    request = budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=["t", "x"]))
    async with open_channel(Endpoint(guarded.budget, credentials)) as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        try:
            await stub.GetBudget(request, timeout=30)
            code = grpc.StatusCode.OK
        except grpc.aio.AioRpcError as error:
            code = error.code()
    assert expected is code


@asynccontextmanager
async def open_to_tokens(
    folder: Path, authority: Authority, issuer: Issuer, instrumentation: Instrumentation
) -> AsyncIterator[str]:
    """Serve with TLS of the server's side only, to whom a token gives the role."""
    certificate, key = authority.server()
    access = folder / "access.yaml"
    access.write_text(
        f"jwt: {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: {AUDIENCE}}}"
    )
    options = SecurityOptions(tls_certificate=certificate, tls_key=key, access=access)
    security = Security(options, DP_METHODS)
    server = grpc.aio.server(interceptors=security.interceptors(instrumentation))
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer_of(POLICY), instrumentation.before(server))
    address = f"127.0.0.1:{security.bind(server, '127.0.0.1:0')}"
    await server.start()
    try:
        yield address
    finally:
        # Not at once: a call is counted a moment after its client has the answer.
        await server.stop(10)


async def test_tokens_alone_open_a_service_that_asks_for_no_certificates(tmp_path: Path) -> None:
    """A token with the role is let in, and a call without one is nobody's."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    method = "/gris.dp.v1.DpService/GetCatalog"
    token = issuer.token_file(AUDIENCE, gris_roles=["read"])
    async with open_to_tokens(tmp_path, authority, issuer, NOTHING) as address:
        with_token = await outcome(address, Credentials(authority.ca_file, token_file=token), method)
        without = await outcome(address, Credentials(authority.ca_file), method)
    assert grpc.StatusCode.OK is with_token[0]
    assert (
        grpc.StatusCode.UNAUTHENTICATED,
        "expected a certificate or a token that says who calls",
    ) == without


async def test_callers_who_are_not_let_in_are_counted_by_method_and_reason(tmp_path: Path) -> None:
    """Each of them once; a method that nobody serves has no line, for its name is the caller's own."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    reader = Credentials(authority.ca_file, token_file=issuer.token_file(AUDIENCE, gris_roles=["read"]))
    registry = CollectorRegistry()
    instrumentation = Instrumentation(metrics=CallMetrics(registry))
    async with open_to_tokens(tmp_path, authority, issuer, instrumentation) as address:
        await outcome(address, Credentials(authority.ca_file), "/gris.dp.v1.DpService/GetCatalog")
        await outcome(address, reader, "/gris.dp.v1.DpService/AddNoise")
        await outcome(address, reader, "/gris.dp.v1.DpService/AddNoise")
        await outcome(address, reader, "/gris.dp.v1.DpService/GetCatalog")
        await outcome(address, reader, "/gris.dp.v1.DpService/Invented")
    (failures,) = [each for each in registry.collect() if each.name == "gris_rpc_failures"]
    counted = {
        (each.labels["grpc_method"], each.labels["code"], each.labels["reason"]): each.value
        for each in failures.samples
        if each.name == "gris_rpc_failures_total"
    }
    assert counted == {
        ("GetCatalog", "UNAUTHENTICATED", "CALLER_UNKNOWN"): 1,
        ("AddNoise", "PERMISSION_DENIED", "ROLE_MISSING"): 2,
    }


async def test_the_application_asks_its_questions(guarded: Guarded) -> None:
    """The whole path runs over mutual TLS on both lines, streams too."""
    engine = DuckDBEngine({"feedback": COFACTS})
    async with AsyncPrivateClient(
        dp=Endpoint(guarded.dp, guarded.app),
        budget=Endpoint(guarded.budget, guarded.app),
        account=new_account(),
        engine=engine,
    ) as client:
        result = await client.top_k("feedback", "article_id", 10)
    engine.close()
    assert 10 == len(result.rows)


async def test_a_reader_can_neither_release_nor_reserve(guarded: Guarded) -> None:
    """The connector says which reason a service gave, and which role is missing."""
    reader = guarded.authority.client(dns("reader.example.org"), file="reader")
    engine = DuckDBEngine({"feedback": COFACTS})
    async with AsyncPrivateClient(
        dp=Endpoint(guarded.dp, reader),
        budget=Endpoint(guarded.budget, reader),
        account=new_account(),
        engine=engine,
    ) as client:
        assert await client.catalog()
        with pytest.raises(ServiceRefused, match=r"ROLE_MISSING\): this method asks for the role spend"):
            await client.top_k("feedback", "article_id", 10)
    engine.close()


async def test_an_administrator_sets_limits_by_certificate(guarded: Guarded) -> None:
    """The administrator's address has the same lock."""
    ops = guarded.authority.client(dns("ops.example.org"), file="ops")
    async with open_channel(Endpoint(guarded.admin, ops)) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        answer = await stub.VerifyLedger(admin_pb2.VerifyLedgerRequest(), timeout=30)
    assert 0 == answer.different


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--listen", "0.0.0.0:0"], "others can reach this address"),
        (["--listen", "[::]:0"], "others can reach this address"),
        (["--listen", "0.0.0.0:0", "--tls-certificate", "CERT", "--tls-key", "KEY"], "others can reach"),
        (["--tls-certificate", "CERT"], "both --tls-certificate and --tls-key"),
        (["--access", "ACCESS"], "need --tls-certificate"),
        (["--tls-client-ca", "CA"], "need --tls-certificate"),
        (["--tls-certificate", "CERT", "--tls-key", "KEY", "--tls-client-ca", "CA"], "needs --access"),
        (["--tls-certificate", "CERT", "--tls-key", "KEY", "--access", "ACCESS"], "need --tls-client-ca"),
        (["--tls-certificate", "CERT", "--tls-key", "CERT"], "private key"),
    ],
)
@pytest.mark.parametrize("service", [dp_main, budget_main])
def test_a_service_does_not_start_half_protected(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    service: Callable[[list[str]], int],
    words: list[str],
    complaint: str,
) -> None:
    """What is missing is said in one line, with exit code 2."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    certificate, key = authority.server()
    access = access_file(tmp_path, issuer)
    files = {"CERT": certificate, "KEY": key, "CA": authority.ca_file, "ACCESS": access}
    base = dp_command(tmp_path) if service is dp_main else budget_command(tmp_path)
    assert 2 == service([str(word) for word in (*base, *(files.get(word, word) for word in words))])
    assert complaint in capsys.readouterr().err


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("service", ["dp_service", "budget_service"])
@pytest.mark.parametrize("listen", ["0.0.0.0:0", "127.0.0.1:0"])
@pytest.mark.parametrize("tls", [False, True])
def test_an_open_address_beyond_this_machine_is_asked_for_by_name_and_logged(
    tmp_path: Path, service: str, listen: str, tls: bool
) -> None:
    """`--insecure` is the one word that opens it; the log says what is missing, and where."""
    certificate, key = Authority.new(tmp_path).server()
    words = dp_command(tmp_path) if service == "dp_service" else budget_command(tmp_path)
    words += ["--listen", listen, "--insecure", "--log-format", "json"]
    words += ["--tls-certificate", certificate, "--tls-key", key] if tls else []
    with process(service, words, tmp_path / "log") as ready:
        assert ready["address"].startswith(listen.removesuffix("0"))
    logged = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines() if line[0] == "{"]
    warned = [each for each in logged if each.get("event") == "protection.missing"]
    missing = ["access"] if tls else ["tls", "access"]
    expected = [("WARNING", listen, missing)] if listen.startswith("0.") else []
    assert expected == [(each["level"], each["listen"], each["missing"]) for each in warned]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "expected keys and their values"),
        ("certificates: {}", "nobody could call"),
        ("certificates: {'ana': [read]}", "certificates.ana"),
        ("certificates: {'dns:a': [root]}", "certificates.dns:a.0"),
        ("certificates: {'dns:a': [read], 'dns:a': [admin]}", "the key 'dns:a' is repeated"),
        ("jwt: {key_file: x, algorithms: [none], issuer: i, audience: a}", "jwt.algorithms.0"),
        ("jwt: {key_file: x, algorithms: [HS256], issuer: i, audience: a}", "jwt.algorithms.0"),
        ("jwt: {key_file: x, algorithms: [ES256], issuer: '', audience: a}", "jwt.issuer"),
        ("jwt: {key_file: /absent, algorithms: [ES256], issuer: i, audience: a}", "/absent"),
        ("unknown: 1\ncertificates: {'dns:a': [read]}", "unknown"),
        ("certificates: {'dns:a': [2024-02-30]}", "certificates.dns:a.0"),
    ],
)
def test_a_wrong_access_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, complaint: str
) -> None:
    """File and field, in one line, by `--validate` too."""
    authority, access = Authority.new(tmp_path), tmp_path / "access.yaml"
    access.write_text(content)
    words = [*dp_command(tmp_path), *security_options(authority, access), "--validate"]
    assert 2 == dp_main([str(word) for word in words])
    said = capsys.readouterr().err
    assert str(access) in said or complaint == "/absent"
    assert complaint in said


@pytest.mark.slow
async def test_bytes_that_are_no_message_are_no_fault_of_a_service(caplog: pytest.LogCaptureFixture) -> None:
    """Alone, or in a stream that a service reads by itself: refused, and nothing is logged as failed."""
    instrumentation = Instrumentation(metrics=CallMetrics(registry := CollectorRegistry()))
    server = grpc.aio.server()
    dp_pb2_grpc.add_DpServiceServicer_to_server(servicer_of(POLICY), instrumentation.before(server))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    undecodable = b"\x0a\x7f"
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        one: Any = channel.unary_unary("/gris.dp.v1.DpService/TranslateQuery")
        many: Any = channel.stream_stream("/gris.dp.v1.DpService/AddNoise")
        for call in (one(undecodable), many(iter([undecodable])).read()):
            with pytest.raises(grpc.aio.AioRpcError, match="cannot be decoded") as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    # A caller hears of its refusal before it is counted.
    await server.stop(10)
    for method in ("TranslateQuery", "AddNoise"):
        labels = {"grpc_service": "gris.dp.v1.DpService", "grpc_method": method}
        reported = {"code": "INVALID_ARGUMENT", "reason": "UNDECODABLE"}
        assert registry.get_sample_value("gris_rpc_failures_total", labels | reported) == 1
    assert not [each for each in caplog.records if each.levelname in ("WARNING", "ERROR")]

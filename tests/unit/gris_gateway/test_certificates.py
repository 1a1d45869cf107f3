"""Callers who are known by the certificates of their connections, at every address of a gateway."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import psycopg
import pytest
from cryptography.x509 import GeneralName
from gris_api.app.v1 import app_pb2

from pinot_connector import Credentials
from tests.support.gateways import AUDIENCE, GatewayWorld, stub_of, write_configuration
from tests.support.pki import Authority, Issuer, email, uri
from tests.support.processes import process

COUNT = (
    "SELECT app, COUNT(DISTINCT member_id) AS people FROM feedback GROUP BY app ORDER BY people DESC LIMIT 1"
)
ANA, PORTAL = uri("spiffe://example.org/ana"), uri("spiffe://example.org/acme")
ACCOUNT = "app/acme/ana"


@contextmanager
def running(gateway: GatewayWorld, folder: Path, *, with_tokens: bool) -> Iterator[GatewayWorld]:
    """Run a gateway that asks for certificates at every address; with tokens too, or not."""
    for name in ("wide.parquet", "small.parquet"):
        (folder / name).symlink_to(gateway.folder / name)
    authority, issuer = Authority.new(folder), Issuer(folder)
    config = write_configuration(folder, authority, issuer, gateway.dp, gateway.budget)
    text = config.read_text()
    tokens = text[text.index("  jwt:") : text.index("history:")] if with_tokens else ""
    faces = "".join(f"{name}: {{listen: 127.0.0.1:0}}\n" for name in ("mcp", "broker"))
    faces += "postgres: {listen: 127.0.0.1:0, catalogue: false}\n"
    history = text[text.index("history:") : text.index("mcp:")]
    config.write_text(text[: text.index("  jwt:")] + tokens + history + faces + text[text.index("limits:") :])
    with process("gris_gateway", ["--config", config], folder / "log") as ready:
        yield replace(
            gateway,
            address=ready["address"],
            authority=authority,
            issuer=issuer,
            folder=folder,
            mcp_address=ready["mcp_address"],
            broker_address=ready["broker_address"],
            postgres_address=ready["postgres_address"],
        )


@pytest.fixture(scope="module")
def certificates_alone(
    gateway: GatewayWorld, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayWorld]:
    """Run a gateway whose configuration has no `identity.jwt`."""
    with running(gateway, tmp_path_factory.mktemp("alone"), with_tokens=False) as found:
        yield found


@pytest.fixture(scope="module")
def with_tokens(gateway: GatewayWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    """Run a gateway that accepts tokens as well."""
    with running(gateway, tmp_path_factory.mktemp("tokens"), with_tokens=True) as found:
        yield found


def holder(gateway: GatewayWorld, *names: GeneralName) -> Credentials:
    """Return credentials with a certificate of these names."""
    return gateway.authority.client(*names, file="holder")


def posted(
    gateway: GatewayWorld, shown: Credentials, path: str, address: str, sent: dict[str, Any], **more: Any
) -> httpx.Response:
    """Send a request on a connection with a certificate."""
    trusting = ssl.create_default_context(cafile=str(gateway.authority.ca_file))
    trusting.load_cert_chain(str(shown.certificate_file), str(shown.key_file))
    accepted = {"Accept": "application/json, text/event-stream"}
    with httpx.Client(verify=trusting, timeout=60, headers=accepted) as client:
        return client.post(f"https://{address}{path}", json=sent, **more)


def asked(gateway: GatewayWorld, shown: Credentials, **more: Any) -> dict[str, Any]:
    """Return what a client of Pinot is answered."""
    answer: dict[str, Any] = posted(
        gateway, shown, "/query/sql", gateway.broker_address, {"sql": COUNT}, **more
    ).json()
    return answer


def connected(gateway: GatewayWorld, shown: Credentials, **options: Any) -> psycopg.Connection[Any]:
    """Connect a client of PostgreSQL with a certificate."""
    host, _, port = gateway.postgres_address.rpartition(":")
    parameters: dict[str, Any] = {
        **{"host": host, "port": port, "dbname": "gris", "autocommit": True, "passfile": "/dev/null"},
        **{"sslmode": "verify-full", "sslrootcert": str(shown.ca_file), "sslkey": str(shown.key_file)},
        **{"sslcert": str(shown.certificate_file), "user": ACCOUNT, **options},
    }
    return psycopg.connect(**parameters)


async def test_a_token_is_refused_and_not_ignored(certificates_alone: GatewayWorld) -> None:
    """Its sender means the token's account, and the certificate's would pay."""
    ana = holder(certificates_alone, ANA)
    remaining = app_pb2.GetRemainingRequest()
    token = certificates_alone.issuer.token("x", sub="bob")
    async with certificates_alone.channel(ana) as channel:
        for header in ("Bearer " + token, "Basic YTpi"):
            metadata = [("authorization", header)]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub_of(channel).GetRemaining(remaining, metadata=metadata, timeout=5)
            assert grpc.StatusCode.UNAUTHENTICATED is refused.value.code()
        answer = await stub_of(channel).GetRemaining(remaining, timeout=5)
    assert ["app", "acme", "ana"] == answer.account.path
    (exception,) = asked(certificates_alone, ana, headers={"Authorization": f"Bearer {token}"})["exceptions"]
    assert "no tokens are accepted here" in exception["message"]


def test_clients_of_pinot_are_known_by_certificates(certificates_alone: GatewayWorld) -> None:
    """A user without a password names the account; one that the certificate does not have is refused."""
    ana = holder(certificates_alone, ANA)
    own = asked(certificates_alone, ana)
    assert own["exceptions"] == []
    again = asked(certificates_alone, ana, auth=(ACCOUNT, ""))
    assert again["resultTable"] == own["resultTable"]
    assert again["gris"]["charged"]["information"] == 0
    portal = holder(certificates_alone, PORTAL)
    assert asked(certificates_alone, portal, auth=(ACCOUNT, ""))["gris"]["charged"]["information"] == 0
    for other in ("app/two", "app/acme", "app/acme/ana/x"):
        (exception,) = asked(certificates_alone, holder(certificates_alone, ANA), auth=(other, ""))[
            "exceptions"
        ]
        assert exception["errorCode"] == 180, other
    unknown = holder(certificates_alone, email("nobody@example.org"))
    assert [each["errorCode"] for each in asked(certificates_alone, unknown)["exceptions"]] == [180]


def test_clients_of_postgresql_are_known_by_certificates(certificates_alone: GatewayWorld) -> None:
    """Who names an account of the certificate needs no password; others have none that would do."""
    ana = holder(certificates_alone, ANA)
    with connected(certificates_alone, ana) as connection:
        assert connection.execute(COUNT).fetchone()
    for user, password in (("app/two", "x"), ("app/acme", "x"), ("-", "x"), (ACCOUNT + "/x", "x")):
        with pytest.raises(psycopg.OperationalError, match="no tokens are accepted here"):
            connected(certificates_alone, holder(certificates_alone, ANA), user=user, password=password)
    with pytest.raises(psycopg.OperationalError, match="no tokens are accepted here"):
        connected(certificates_alone, holder(certificates_alone, email("nobody@example.org")), password="x")


def test_agents_are_known_by_certificates(certificates_alone: GatewayWorld) -> None:
    """What is left of the certificate's account, and of no other one's."""
    call = {"name": "budget", "arguments": {}}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    for names, status in ((ANA, 200), (email("nobody@example.org"), 403)):
        answer = posted(
            certificates_alone,
            holder(certificates_alone, names),
            "/mcp",
            certificates_alone.mcp_address,
            sent,
        )
        assert answer.status_code == status
        assert (r"\"ana\"" in answer.text) == (status == 200), answer.text


def test_a_token_counts_before_the_certificate_of_its_connection(with_tokens: GatewayWorld) -> None:
    """As an application passes on its analysts' tokens; one that is not accepted is refused, whatever else is shown."""
    portal = holder(with_tokens, PORTAL)
    token = with_tokens.issuer.token(AUDIENCE, org="globex", sub="zoe")
    header = {"Authorization": f"Bearer {token}"}
    call = {"sql": "SELECT 1"}
    assert asked(with_tokens, portal, headers=header)["exceptions"] == []
    (refused,) = asked(with_tokens, portal, auth=(ACCOUNT, token))["exceptions"]
    assert refused["errorCode"] == 180
    expired = with_tokens.issuer.token(AUDIENCE, org="acme", sub="ana", exp=1)
    for shown in ({"headers": {"Authorization": f"Bearer {expired}"}}, {"auth": (ACCOUNT, expired)}):
        answer = posted(with_tokens, portal, "/query/sql", with_tokens.broker_address, call, **shown)
        assert [each["errorCode"] for each in answer.json()["exceptions"]] == [180]
    # Without the name of an account it is the password that says who asks.
    with connected(with_tokens, portal, user="-", password=token) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("-",)
    with pytest.raises(psycopg.OperationalError, match="expired"):
        connected(with_tokens, portal, user="-", password=expired)
    with pytest.raises(psycopg.OperationalError):
        connected(with_tokens, portal, user="app/globex")
    # It may pay for the accounts below its own, and nobody who states one of these goes unverified.
    with pytest.raises(psycopg.OperationalError, match="not valid"):
        connected(with_tokens, portal, user=ACCOUNT, password="x")
    with connected(with_tokens, portal, user="app/acme") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with connected(with_tokens, portal, user="app/globex", password=token) as connection:
        assert connection.execute(COUNT).fetchone()


def test_nobody_is_heard_without_a_certificate_where_they_are_asked_for(with_tokens: GatewayWorld) -> None:
    """The best of tokens does not help, nor a certificate that another authority has signed."""
    token = with_tokens.issuer.token(AUDIENCE, org="acme", sub="ana")
    trusting = ssl.create_default_context(cafile=str(with_tokens.authority.ca_file))
    with httpx.Client(verify=trusting) as client, pytest.raises(httpx.HTTPError):
        client.post(
            f"https://{with_tokens.broker_address}/query/sql",
            json={"sql": COUNT},
            headers={"Authorization": f"Bearer {token}"},
        )
    other = with_tokens.folder / "other"
    other.mkdir()
    stranger = Authority.new(other).client(ANA, file="stranger")
    with pytest.raises(psycopg.OperationalError):
        connected(with_tokens, replace(stranger, ca_file=with_tokens.authority.ca_file), password=token)

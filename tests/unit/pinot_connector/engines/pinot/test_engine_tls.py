"""Pinot behind TLS: each side proves itself, and nothing is sent in the clear."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from gris_cli.data.engines import PinotAccess
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineUnavailable
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot

CREDENTIALS = "Bearer token"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """The authority that signs everybody's certificates."""
    return trustme.CA()


@pytest.fixture
def pinot(authority: trustme.CA) -> Iterator[FakePinot]:
    """A Pinot that shows a certificate and wants to see one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    with FakePinot(context).serving() as fake:
        yield fake


def ask(pinot: FakePinot, tls: ssl.SSLContext | None) -> list[int]:
    """Return the counts of a confirmed answer."""
    engine = PinotEngine(
        controller=pinot.url, broker=pinot.url, authorization=CREDENTIALS, tls=tls, timeout_seconds=2
    )
    try:
        return confirmed(engine, QUERY).counts
    finally:
        engine.close()


def test_a_cluster_behind_mutual_tls_is_asked(
    pinot: FakePinot, authority: trustme.CA, tmp_path: Path
) -> None:
    """Broker and controller are both reached with certificate and token, as the command line's files give them."""
    (tmp_path / "authorization").write_text(f"{CREDENTIALS}\n")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("app").private_key_and_cert_chain_pem.write_to_path(tmp_path / "app.pem")
    access = PinotAccess(tmp_path / "authorization", tmp_path / "ca.pem", tmp_path / "app.pem")
    assert ask(pinot, access.tls()) == [5]
    assert access.authorization() == CREDENTIALS
    assert {CREDENTIALS} == set(pinot.headers)


def test_the_servers_are_shown_certificate_and_token_too(pinot: FakePinot, authority: trustme.CA) -> None:
    """They are asked by the controller's scheme, on their port that speaks TLS, which Pinot does not tell."""
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    authority.issue_cert("app").configure_cert(tls)
    pinot.replies["/instances/server"] = {"hostName": "127.0.0.1", "adminPort": 1}
    pinot.replies["/tables/t_OFFLINE/segments/crc"] = {"s": "1"}
    port = int(pinot.url.rpartition(":")[2])
    engine = PinotEngine(
        controller=pinot.url,
        broker=pinot.url,
        authorization=CREDENTIALS,
        tls=tls,
        server_admin=True,
        server_admin_port=port,
    )
    try:
        assert confirmed(engine, QUERY).counts == [5]
    finally:
        engine.close()
    assert "/tables/t_OFFLINE/segments/crc" in pinot.paths
    assert {CREDENTIALS} == set(pinot.headers)


def test_an_unknown_authority_is_not_trusted(pinot: FakePinot) -> None:
    """The token goes to nobody whose certificate cannot be checked."""
    with pytest.raises(EngineUnavailable):
        ask(pinot, None)
    assert [] == pinot.headers


def test_a_certificate_for_another_name_is_not_trusted(authority: trustme.CA) -> None:
    """A server is not Pinot just because it has some certificate of the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with FakePinot(context).serving() as other:
        with pytest.raises(EngineUnavailable):
            ask(other, trusting)
        assert [] == other.headers


def test_a_pinot_that_wants_a_certificate_is_unavailable_without_one(
    pinot: FakePinot, authority: trustme.CA
) -> None:
    """The engine says so and does not fall back to anything."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with pytest.raises(EngineUnavailable):
        ask(pinot, trusting)
    assert [] == pinot.headers


def test_certificates_are_not_taken_for_addresses_in_the_clear() -> None:
    """A caller that gives a TLS context means TLS."""
    with pytest.raises(ValueError, match="https"):
        PinotEngine(controller="http://a", broker="http://b", tls=ssl.create_default_context())


@pytest.mark.parametrize("content", ["", "two\nlines", "\u00fcber"])
def test_an_authorization_file_holds_one_line(tmp_path: Path, content: str) -> None:
    """What could split a header is refused, and the error does not show it."""
    path = tmp_path / "authorization"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(Exception, match="one line of ASCII") as refused:
        PinotAccess(authorization_file=path).authorization()
    assert content not in str(refused.value) or not content

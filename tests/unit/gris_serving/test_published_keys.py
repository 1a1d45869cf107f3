"""Keys that an issuer publishes: they are followed, and no server that fails or lies lets a forged token in."""

from __future__ import annotations

import gc
import hmac
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from prometheus_client import CollectorRegistry

from gris_serving.https_client import FetchLimits
from gris_serving.instrumentation import NOTHING, Instrumentation
from gris_serving.metrics import Readiness
from gris_serving.published_keys import THREAD, RefreshLimits
from gris_serving.reloading_files import SecurityError
from gris_serving.tokens import JwtSettings, TokenError, TokenVerifier
from tests.support.key_server import (
    DISCOVERY,
    KEYS,
    Answer,
    KeyServer,
    drips,
    hangs,
    issuing,
    jwks,
    says,
    serving,
    silent_port,
    until,
)
from tests.support.log_events import everything_logged, logged_events
from tests.support.pki import Authority, Issuer

AUDIENCE = "gris"
# Refreshes follow at once, and a machine that is busy may take its time for each.
QUICK = RefreshLimits(
    early_seconds=0.02, retry_seconds=0.02, most_retry_seconds=0.05, fetch=FetchLimits(seconds=10)
)
# For servers whose answer never ends.
IMPATIENT = replace(QUICK, fetch=FetchLimits(seconds=0.5))


def threads() -> list[threading.Thread]:
    """Return those that fetch keys."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


@pytest.fixture(autouse=True)
def _end_of_threads() -> Iterator[None]:
    """What a test has begun would otherwise be logged in the next one."""
    gc.collect()
    _joined()
    yield
    _joined()


def _joined() -> None:
    for thread in threads():
        thread.join(2)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Whom the verifier trusts to name servers."""
    return Authority.new(tmp_path)


@pytest.fixture
def key(tmp_path: Path) -> Issuer:
    """The key that the issuer signs with."""
    return Issuer(tmp_path, key_id="first")


@pytest.fixture
def server(authority: Authority, key: Issuer) -> Iterator[KeyServer]:
    """The issuer's server."""
    with issuing(authority, key) as running:
        yield running


def settings_of(server: KeyServer, authority: Authority, **changed: Any) -> JwtSettings:
    """Return settings for the issuer; those of times may be shorter than files may state."""
    times = {name: changed.pop(name) for name in tuple(changed) if name.endswith("_seconds")}
    stated = {
        "keys_url": server.keys_url,
        "ca_file": str(authority.ca_file),
        "algorithms": ["ES256"],
        "issuer": server.issuer,
        "audience": AUDIENCE,
        **changed,
    }
    settings = JwtSettings.model_validate(
        {name: value for name, value in stated.items() if value is not None}
    )
    return settings.model_copy(update=times)


def started(
    server: KeyServer, authority: Authority, limits: RefreshLimits = QUICK, **changed: Any
) -> TokenVerifier:
    """Return a verifier that fetches the keys."""
    verifier = TokenVerifier(settings_of(server, authority, **changed), limits=limits)
    verifier.start()
    return verifier


def accepts(verifier: TokenVerifier, token: str) -> bool:
    """Return whether a token is accepted."""
    try:
        return bool("ana" == verifier.claims(token)["sub"])
    except TokenError:
        return False


def signed(server: KeyServer, key: Issuer, **claims: Any) -> str:
    """Return a token of the issuer."""
    return key.token(AUDIENCE, **{"iss": server.issuer, "sub": "ana", **claims})


def problems(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return why keys could not be fetched, in order."""
    return [fields["problem"] for event, fields in logged_events(caplog) if event == "keys.not_fetched"]


@pytest.mark.parametrize("place", [{}, {"keys_url": None, "discover": True}], ids=["keys_url", "discover"])
def test_published_keys_are_believed(
    server: KeyServer, authority: Authority, key: Issuer, place: dict[str, Any]
) -> None:
    """At a pinned address, or where the discovery document says; and only for tokens of that issuer."""
    verifier = started(server, authority, **place)
    until(lambda: accepts(verifier, signed(server, key)))
    with pytest.raises(TokenError, match="another issuer"):
        verifier.claims(signed(server, key, iss="https://login.example.org"))
    assert ([DISCOVERY, KEYS] if place else [KEYS]) == server.asked[: len(place) or 1]


def test_a_slash_at_the_end_of_an_issuer_is_part_of_its_name(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """The document is found without it, and has to name the issuer with it."""
    issuer = f"{server.issuer}/"
    server.answers[DISCOVERY] = says(server.discovery(issuer=issuer))
    verifier = started(server, authority, keys_url=None, discover=True, issuer=issuer)
    until(lambda: accepts(verifier, signed(server, key, iss=issuer)))
    assert not accepts(verifier, signed(server, key))


def test_tokens_are_refused_until_their_issuer_answers(
    authority: Authority, key: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that is down at the start keeps no verifier from starting, and none is let in meanwhile."""
    caplog.set_level(logging.INFO)
    with silent_port() as port:
        with serving(authority.server(), port) as server:
            pass
        verifier = started(server, authority)
        token = signed(server, key)
        until(lambda: problems(caplog))
        with pytest.raises(TokenError, match="the keys of their issuer are not here"):
            verifier.claims(token)
        with serving(authority.server(), port) as server:
            server.publish(key)
            until(lambda: accepts(verifier, token))
    assert {"unreachable"} == set(problems(caplog))
    assert ("keys.fetched", {"keys": 1}) in logged_events(caplog)


def test_an_unknown_key_brings_an_early_refresh(
    server: KeyServer, authority: Authority, key: Issuer, tmp_path: Path
) -> None:
    """A new key is believed, and one that is gone is not, long before the next refresh is due."""
    verifier = started(server, authority)
    old, new = signed(server, key), signed(server, following := Issuer(tmp_path, key_id="second"))
    until(lambda: accepts(verifier, old))
    server.publish(following)
    until(lambda: accepts(verifier, new))
    assert not accepts(verifier, old)


def test_a_key_that_is_taken_out_is_gone_after_the_next_refresh(
    server: KeyServer, authority: Authority, key: Issuer, tmp_path: Path
) -> None:
    """Nothing but time is needed for it; and where the issuer publishes no key at all, no token is accepted."""
    verifier = started(server, authority, keys_refresh_seconds=0.05)
    old, new = signed(server, key), signed(server, following := Issuer(tmp_path, key_id="second"))
    until(lambda: accepts(verifier, old))
    server.publish(following)
    until(lambda: not accepts(verifier, old))
    assert accepts(verifier, new)
    server.publish()
    until(lambda: not accepts(verifier, new))


@pytest.mark.slow
def test_made_up_keys_neither_flood_the_issuer_nor_hold_up_others(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """While the issuer's server hangs, 2,000 tokens with keys that nobody has bring one request, and all are judged."""
    verifier = started(server, authority, RefreshLimits(early_seconds=0.02, fetch=FetchLimits(seconds=60)))
    good = signed(server, key)
    until(lambda: accepts(verifier, good))
    released = threading.Event()
    server.answers[KEYS] = hangs(released)
    server.asked.clear()
    try:
        for number in range(2000):
            headers = {"kid": f"made up {number}"}
            assert not accepts(verifier, jwt.encode({"exp": 2**40}, key.key, "ES256", headers=headers))
        until(lambda: server.asked)
        assert accepts(verifier, good)
        assert [KEYS] == server.asked
    finally:
        released.set()


@pytest.mark.slow
def test_unknown_keys_wait_for_their_turn(server: KeyServer, authority: Authority, key: Issuer) -> None:
    """The refresh that they ask for comes no sooner than the limit says."""
    verifier = started(server, authority, RefreshLimits(early_seconds=0.4))
    until(lambda: accepts(verifier, signed(server, key)))
    began, made_up = time.monotonic(), jwt.encode({}, key.key, "ES256", headers={"kid": "made up"})
    while time.monotonic() - began < 1.0:
        assert not accepts(verifier, made_up)
    assert len(server.asked) <= 4


@pytest.mark.slow
def test_failures_are_not_hammered(server: KeyServer, authority: Authority, key: Issuer) -> None:
    """Retries wait twice as long each time, whatever tokens ask for."""
    server.answers[KEYS] = says(b"", 500)
    began = time.monotonic()
    verifier = started(server, authority, RefreshLimits(early_seconds=0, retry_seconds=0.1))
    token = signed(server, key)
    while len(server.asked) < 5:
        assert not accepts(verifier, token)
        assert time.monotonic() - began < 50
    # At 0, then after at least 0.05, 0.1, 0.2 and 0.4 seconds.
    assert time.monotonic() - began >= 0.75


def faults(server: KeyServer, key: Issuer) -> Mapping[str, tuple[Answer, str]]:
    """Return what a server may say instead of its keys, and what that is in the log."""
    private = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.key))
    entry, other = key.jwk(), Issuer(key.folder, key_id="other").jwk()
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key()  # noqa: S505 - that is what is tested
    brief = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(short))

    def keys(*entries: object) -> Answer:
        return says(json.dumps({"keys": entries}).encode())

    return {
        "an error": (says(b"{}", 500), "status"),
        "nothing there": (says(b"{}", 404), "status"),
        "no content": (says(b"", 204), "status"),
        "another place here": (says(b"", 302, location=server.issuer + "/other"), "redirect"),
        "another host": (says(b"", 301, location="https://elsewhere.invalid/keys"), "redirect"),
        "a page": (says(b"<html>"), "keys"),
        "a certificate": (says(key.public_pem), "keys"),
        "nothing": (says(b""), "keys"),
        "half of it": (says(jwks(key), stated_length=5000), "unreachable"),
        "endless lists": (says(b'{"keys": ' + b"[" * 100_000), "keys"),
        "too much": (says(b" " * 300_000), "too_large"),
        "far too much in pieces": (drips(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 100_000), "too_large"),
        "too many keys": (keys(*(entry | {"kid": str(number)} for number in range(101))), "keys"),
        "a private key": (keys(other, private | {"kid": key.key_id}), "keys"),
        "a private key for another use": (keys(entry, private | {"kid": "b", "use": "enc"}), "keys"),
        "a shared key": (keys(entry, {"kty": "oct", "k": "AAAA", "kid": "b"}), "keys"),
        "two keys of one id": (keys(entry, other | {"kid": key.key_id}), "keys"),
        "a short key": (keys(entry, brief | {"kid": "short"}), "keys"),
        "a drip of content": (drips(b" "), "timeout"),
        "a drip of headers": (drips(b"HTTP/1.1 200 OK\r\nX: "), "timeout"),
        "a drip without a length": (drips(b"HTTP/1.1 200 OK\r\n\r\n "), "timeout"),
        "no words of HTTP": (drips(b"SSH-2.0\r\n"), "unreachable"),
    }


FAULTS = (
    "an error", "nothing there", "no content", "another place here", "another host", "a page", "a certificate",
    "nothing", "half of it", "endless lists", "too much", "far too much in pieces", "too many keys", "a private key",
    "a private key for another use", "a shared key", "two keys of one id", "a short key", "a drip of content",
    "a drip of headers", "a drip without a length", "no words of HTTP",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_answer_changes_nothing(
    server: KeyServer, authority: Authority, key: Issuer, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    """The keys before stay in force, the log says what was wrong, and later answers count again."""
    token, answers = signed(server, key), faults(server, key)
    assert set(FAULTS) == set(answers)
    answer, expected = answers[fault]
    limits = IMPATIENT if expected == "timeout" else QUICK
    verifier = started(server, authority, limits, keys_refresh_seconds=0.02)
    until(lambda: accepts(verifier, token))
    caplog.clear()
    server.answers[KEYS] = answer
    until(lambda: problems(caplog))
    assert accepts(verifier, token)
    assert {expected} == set(problems(caplog))
    server.publish(following := Issuer(key.folder, key_id="second"))
    until(lambda: accepts(verifier, signed(server, following)))


@pytest.mark.slow
def test_a_server_that_says_nothing_at_all_ends_in_time(
    server: KeyServer, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    """It takes the connection and leaves the handshake undone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/keys"
        verifier = started(server, authority, IMPATIENT, keys_url=url)
        until(lambda: problems(caplog))
    assert "timeout" == problems(caplog)[0]
    assert verifier


@pytest.mark.slow
def test_only_the_named_host_with_a_certificate_that_is_trusted_is_believed(
    server: KeyServer, authority: Authority, key: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a certificate of an authority that is not trusted, nor one for another name counts."""
    (tmp_path / "stranger").mkdir()
    strange = Authority.new(tmp_path / "stranger")
    other = authority.ca.issue_cert("login.example.org")
    files = tmp_path / "other.pem", tmp_path / "other.key"
    other.cert_chain_pems[0].write_to_path(files[0])
    other.private_key_pem.write_to_path(files[1])
    with serving(files) as named_otherwise:
        named_otherwise.publish(key)
        for asked, changed in (
            (server, {"ca_file": str(strange.ca_file)}),
            (server, {"ca_file": None}),
            (named_otherwise, {}),
        ):
            caplog.clear()
            verifier = started(asked, authority, **changed)
            until(lambda: problems(caplog))
            assert {"tls"} == set(problems(caplog))
            assert not accepts(verifier, signed(asked, key))
            assert [] == asked.asked
            del verifier
            _joined()


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        {"issuer": "https://login.example.org"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "/keys"},
        {"jwks_uri": "http://127.0.0.1:1/keys"},
        {"jwks_uri": "http://login.example.org/keys"},
        {"jwks_uri": "https:///keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": ["https://login.example.org/keys"]},
        b"[]",
        b"<html>",
        b"[" * 100_000,
    ],
    ids=lambda document: str(document)[:50],
)
def test_a_discovery_document_that_is_not_the_issuers_is_refused(
    server: KeyServer,
    authority: Authority,
    key: Issuer,
    caplog: pytest.LogCaptureFixture,
    document: dict[str, Any] | bytes,
) -> None:
    """It names exactly the configured issuer, and keys that are as safely fetched; nobody is asked for others."""
    content = document if isinstance(document, bytes) else server.discovery(**document)
    server.answers[DISCOVERY] = says(content)
    verifier = started(server, authority, keys_url=None, discover=True)
    until(lambda: problems(caplog))
    assert "discovery" == problems(caplog)[0]
    assert not accepts(verifier, signed(server, key))
    assert {DISCOVERY} == set(server.asked)


@pytest.mark.slow
def test_keys_that_have_become_too_old_are_no_longer_believed(
    server: KeyServer, authority: Authority, key: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """While no fetch succeeds; the log then says so more loudly."""
    verifier = started(server, authority, keys_refresh_seconds=0.02, keys_max_age_seconds=4.0)
    until(lambda: accepts(verifier, signed(server, key)))
    server.answers[KEYS] = says(b"", 500)
    until(lambda: problems(caplog))
    assert accepts(verifier, signed(server, key))
    until(lambda: not accepts(verifier, signed(server, key)))
    until(lambda: any(record.levelno == logging.ERROR for record in caplog.records))
    levels = [(record.levelname, record.__dict__["fields"]["keys"]) for record in caplog.records
              if record.__dict__.get("event") == "keys.not_fetched"]  # fmt: skip
    assert {("WARNING", 1), ("ERROR", 0)} == set(levels)


def test_whether_keys_can_be_fetched_is_a_metric(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """1 while they can, and 0 while they cannot, though the keys before are still in force."""
    registry = CollectorRegistry()

    def shown() -> float | None:
        return registry.get_sample_value("gris_component_serving", {"component": "token_keys"})

    verifier = TokenVerifier(settings_of(server, authority, keys_refresh_seconds=0.02), limits=QUICK)
    verifier.start(Instrumentation(readiness=Readiness(registry)))
    until(lambda: shown() == 1)
    server.answers[KEYS] = says(b"", 500)
    until(lambda: shown() == 0)
    assert accepts(verifier, signed(server, key))
    server.publish(key)
    until(lambda: shown() == 1)


def test_keys_of_algorithms_to_come_are_left_out(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """An issuer may publish them beside its own; so may it publish keys that are for encryption, and more words."""
    entry = key.jwk()
    others = (
        {"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA", "kid": "a"},
        {"kty": "EC", "crv": "secp256k1", "x": "AAAA", "y": "AAAA", "kid": "b"},
        {"kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "c"},
        {"kty": "RSA", "alg": "RSA-OAEP", "n": "AAAA", "e": "AQAB", "kid": "d"},
        entry | {"use": "enc", "kid": "e"},
    )
    content = {"keys": [*others, entry | {"x5t": "AAAA", "key_ops": ["verify"]}]}
    server.answers[KEYS] = says(json.dumps(content).encode())
    verifier = started(server, authority)
    until(lambda: accepts(verifier, signed(server, key)))
    assert not accepts(verifier, jwt.encode({"sub": "ana"}, key.key, "ES256", headers={"kid": "e"}))


def test_a_published_key_is_no_shared_secret_and_serves_its_own_algorithm_alone(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """Neither its bytes as a secret of HMAC, nor another algorithm than its entry states, nor the key of another id."""
    rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key.public_key()))
    entry |= {"kid": "rsa", "alg": "RS256"}
    server.answers[KEYS] = says(json.dumps({"keys": [key.jwk(), entry]}).encode())
    verifier = started(server, authority, algorithms=["ES256", "RS256", "PS256"])
    until(lambda: accepts(verifier, signed(server, key)))
    claims = {"sub": "ana", "iss": server.issuer, "aud": AUDIENCE, "exp": int(time.time()) + 60}

    def under(algorithm: str, signer: Any, key_id: str) -> str:
        return jwt.encode(claims, signer, algorithm, headers={"kid": key_id})

    header, body, _ = under("RS256", rsa_key, "rsa").split(".")
    header = jwt.utils.base64url_encode(b'{"alg":"HS256","kid":"rsa"}').decode()
    pem = rsa_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    mac = jwt.utils.base64url_encode(hmac.digest(pem, f"{header}.{body}".encode(), "sha256")).decode()
    assert accepts(verifier, under("RS256", rsa_key, "rsa"))
    assert not accepts(verifier, under("PS256", rsa_key, "rsa"))
    assert not accepts(verifier, under("RS256", rsa_key, "first"))
    assert not accepts(verifier, under("ES256", ec.generate_private_key(ec.SECP256R1()), "first"))
    assert not accepts(verifier, f"{header}.{body}.{mac}")


def test_a_token_cannot_say_where_its_key_is(
    server: KeyServer, authority: Authority, key: Issuer, tmp_path: Path
) -> None:
    """`jku`, `x5u` and `jwk` of its header are not looked at."""
    stranger = Issuer(tmp_path, key_id="stranger")
    with issuing(authority, stranger) as elsewhere:
        verifier = started(server, authority)
        until(lambda: accepts(verifier, signed(server, key)))
        claims = jwt.decode(signed(server, stranger), options={"verify_signature": False})
        headers = {
            "kid": "stranger",
            "jku": elsewhere.keys_url,
            "x5u": elsewhere.keys_url,
            "jwk": stranger.jwk(),
        }
        for _ in range(20):
            assert not accepts(verifier, jwt.encode(claims, stranger.key, "ES256", headers=headers))
            time.sleep(0.01)
    assert [] == elsewhere.asked


def test_the_log_has_no_token_no_key_and_no_address(
    server: KeyServer, authority: Authority, key: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the server says."""
    caplog.set_level(logging.DEBUG)
    verifier = started(server, authority, keys_refresh_seconds=0.02)
    token = signed(server, key)
    until(lambda: accepts(verifier, token))
    server.answers[KEYS] = says(b'{"keys": "marker"}')
    until(lambda: problems(caplog))
    accepts(verifier, signed(server, Issuer(key.folder, key_id="made-up")))
    logged = everything_logged(caplog)
    for secret in (token, "marker", "first", "made-up", key.jwk()["x"], server.issuer, KEYS):
        assert secret not in logged


def test_new_settings_of_the_same_issuer_keep_its_keys(
    authority: Authority, key: Issuer, caplog: pytest.LogCaptureFixture
) -> None:
    """As where an access file changes while the issuer is down; settings of another address begin anew."""
    with issuing(authority, key) as server:
        before = started(server, authority)
        until(lambda: accepts(before, signed(server, key)))
    same = TokenVerifier(settings_of(server, authority, leeway_seconds=0), before=before, limits=QUICK)
    assert accepts(same, signed(server, key))
    other = settings_of(server, authority, keys_url=f"{server.issuer}/others")
    assert not accepts(TokenVerifier(other, before=before, limits=QUICK), signed(server, key))


def test_nothing_is_fetched_for_a_verifier_that_nobody_has_started_or_still_has(
    server: KeyServer, authority: Authority, key: Issuer
) -> None:
    """A program that only checks its configuration asks nobody; and threads do not outlive a changed access file."""
    idle = TokenVerifier(settings_of(server, authority), limits=QUICK)
    assert not accepts(idle, signed(server, key))
    assert [] == server.asked
    verifiers = [started(server, authority, keys_refresh_seconds=0.02)]
    until(lambda: accepts(verifiers[0], signed(server, key)))
    verifiers[0].start(NOTHING)
    assert 1 == len(threads())
    verifiers.clear()

    def has_ended() -> bool:
        gc.collect()
        return not threads()

    until(has_ended)


@pytest.mark.usefixtures("starts_processes")
def test_a_program_that_ends_asks_nobody_once_more(server: KeyServer, authority: Authority) -> None:
    """The thread waits for its next refresh then, and must not take the end of the program for a reason."""
    address = settings_of(server, authority).key_address()
    program = f"""
import atexit, time
atexit.register(time.sleep, 0.5)
from gris_serving.instrumentation import NOTHING
from gris_serving.published_keys import KeyAddress, PublishedKeys, RefreshLimits
keys = PublishedKeys({address!r}, RefreshLimits(early_seconds=0))
keys.start(NOTHING)
while not keys.value():
    time.sleep(0.01)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ("", [KEYS]) == (ended.stderr, server.asked)


def test_plain_http_is_for_this_machine_alone(key: Issuer, authority: Authority) -> None:
    """As a sidecar has it, which needs no authority."""
    with serving(None) as server:
        server.publish(key)
        verifier = started(server, authority, keys_url=None, discover=True, ca_file=None)
        until(lambda: accepts(verifier, signed(server, key)))


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, "exactly one of key_file, keys_url, discover"),
        ({"discover": False}, "exactly one of key_file, keys_url, discover"),
        ({"key_file": "k", "keys_url": "https://a/keys"}, "exactly one of"),
        ({"keys_url": "https://a/keys", "discover": True}, "exactly one of"),
        ({"keys_url": "http://login.example.org/keys"}, "expected https://HOST/PATH"),
        ({"keys_url": "http://127.0.0.1.example.org/keys"}, "expected https://HOST/PATH"),
        ({"keys_url": "file:///etc/passwd"}, "expected https://HOST/PATH"),
        ({"keys_url": "https:///keys"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://user@a/keys"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://a/keys#b"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://a:99999/keys"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://a/ke ys"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://a/\r\nX: b"}, "expected https://HOST/PATH"),
        ({"keys_url": "https://[::1/keys"}, "expected https://HOST/PATH"),
        ({"discover": True, "issuer": "login.example.org"}, "issuer: expected https://HOST/PATH"),
        ({"discover": True, "issuer": "https://a/?tenant=1"}, "issuer: expected no query"),
        ({"key_file": "k", "ca_file": "c"}, "ca_file: expected only with keys_url or discover"),
        ({"key_file": "k", "keys_max_age_seconds": 3600}, "keys_max_age_seconds: expected only with"),
        ({"discover": True, "keys_refresh_seconds": 29}, "keys_refresh_seconds"),
        ({"discover": True, "keys_max_age_seconds": 700_000}, "keys_max_age_seconds"),
    ],
)  # fmt: skip
def test_settings_that_mean_nothing_are_refused(stated: dict[str, Any], expected: str) -> None:
    """Each names its key, and what was expected."""
    common = {"algorithms": ["ES256"], "issuer": "https://login.example.org", "audience": AUDIENCE}
    with pytest.raises(ValueError, match=expected):
        JwtSettings.model_validate(common | stated)


def test_a_changed_file_of_authorities_is_read_again(
    server: KeyServer, authority: Authority, key: Issuer, tmp_path: Path
) -> None:
    """As where the issuer's server gets a certificate of another one."""
    (tmp_path / "former").mkdir()
    ca_file = Authority.new(tmp_path / "former").ca_file
    verifier = started(server, authority, ca_file=str(ca_file))
    assert not accepts(verifier, signed(server, key))
    ca_file.write_bytes(authority.ca_file.read_bytes())
    until(lambda: accepts(verifier, signed(server, key)))


def test_authorities_that_cannot_be_used_are_refused_at_the_start(
    server: KeyServer, authority: Authority, tmp_path: Path
) -> None:
    """Missing, or no certificates: unlike an issuer that is down, that does not mend itself."""
    (tmp_path / "no.pem").write_text("nothing")
    for name in ("absent.pem", "no.pem"):
        with pytest.raises(SecurityError, match=f"{name}: expected PEM certificates"):
            TokenVerifier(settings_of(server, authority, ca_file=str(tmp_path / name)))

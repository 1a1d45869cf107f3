"""Who the page is opened to: by a header of the proxy alone, or by a link that works once; all others are refused."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.page_settings import PageSettings
from gris_serving.documents import read_document
from gris_serving.reloading_files import SecurityError
from pinot_connector.endpoints import Credentials
from tests.support.pki import dns
from tests.support.stage import Stage, announced_gateway
from tests.support.web_page import ADDRESS, HEADER, Served, opened

PROXY = {"header": HEADER, "account": ["acme"]}
SQL = "SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app"


async def test_each_name_of_the_proxy_has_its_own_account(served: Served) -> None:
    """A token means nothing here, and says nothing."""
    async with served.person("tom") as tom, served.person("uma", ("Authorization", "Bearer x")) as uma:
        before = (await uma.get()).left("acme/uma")
        paid = await tom.asked(SQL)
        assert paid.status == 200, paid.text
        assert paid.left("acme/tom") < before == (await uma.get()).left("acme/uma")
        assert "acme/tom" not in (await uma.get()).html


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(HEADER, "")],
        [(HEADER, "ana"), (HEADER, "ben")],
        [(HEADER, "ana"), (HEADER.lower(), "ana")],
        [(HEADER, "ana, ben")],
        [(HEADER, "ana,ben")],
        [(HEADER, "x" * 129)],
        [(HEADER, "an\ta")],
        [(HEADER, "a b")],
        [(HEADER, b"an\xc3\xa4".decode("latin-1"))],
        [(HEADER, "../poor/ana")],
        [(HEADER, "..")],
        [(HEADER, "*")],
        [("X-Forwarded-User2", "ana")],
        [("X_Forwarded_User", "ana")],
        [("Cookie", f"{HEADER}=ana")],
        [("Authorization", "Bearer x")],
    ],
)
async def test_a_header_that_is_not_one_name_lets_nobody_in(
    served: Served, headers: list[tuple[str, str]]
) -> None:
    """Neither to the page nor to a question."""
    async with served.person("", *headers) as nobody:
        page = await nobody.get()
        asked = await nobody.send("price", {"sql": SQL, "sent": "x"})
    assert [page.status, asked.status] == [403, 403]
    assert "expected" in page.text
    assert "ana" not in page.text
    assert "tables" not in page.html


@pytest.mark.parametrize(
    "header", [f"{HEADER}: an\x01a", f"{HEADER}: an\x00a", f"{HEADER}: an\x7fa", f" {HEADER}: ana"]
)
def test_control_characters_let_nobody_in(served: Served, header: str) -> None:
    """Sent as they are, without a library that refuses to."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(20)
        raw.connect(str(served.socket))
        raw.sendall(f"GET / HTTP/1.1\r\nHost: ask.example.org\r\n{header}\r\n\r\n".encode("latin-1"))
        status = raw.recv(4096).split(b" ", 2)[1]
    assert status in (b"400", b"403", b"421")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": ADDRESS.replace("https", "http")}, 403),
        ({"origin": f"{ADDRESS}:8443"}, 403),
        ({"origin": ADDRESS, "sec-fetch-site": "cross-site"}, 403),
        ({"origin": ADDRESS, "sec-fetch-site": "same-site"}, 403),
        ({"origin": ADDRESS, "content-type": "text/plain"}, 415),
        ({"origin": ADDRESS, "host": "evil.example"}, 421),
        ({"origin": "https://evil.example", "host": "evil.example"}, 421),
        ({"origin": ADDRESS}, 200),
        ({"origin": ADDRESS, "sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_only_forms_of_the_page_itself_are_read(
    served: Served, headers: dict[str, str], status: int
) -> None:
    """Another site's form does nothing, and neither does one of which nobody says where it is from."""
    async with served.person("vic") as vic:
        before = (await vic.get()).left("acme/vic")
        page = await vic.send("price", {"sql": SQL, "sent": "x"}, headers)
        assert page.status == status, page.text
        assert before == (await vic.get()).left("acme/vic")


@pytest.mark.parametrize(
    ("body", "status", "names"),
    [
        (b"act=ask&act=ask", 400, "each once"),
        (b"&".join(b"a%d=1" % each for each in range(9)), 400, "each once"),
        (b"act=price&sql=%ff", 400, "UTF-8"),
        (b"act=price&sql=\xff", 400, "UTF-8"),
        (b"act=ask&most=-1", 400, "most"),
        (b"act=price&most=1e3", 400, "most"),
        (b"act=ask&most=99999999999999999999", 400, "most"),
        (b"act=ask&sql=x", 400, "most"),
        (b"act=buy", 400, "act"),
        (b"", 400, "act"),
        (b"sql=" + b"x" * 3_000_000, 413, "bytes"),
    ],
)
async def test_odd_forms_are_refused(served: Served, body: bytes, status: int, names: str) -> None:
    """Before a question is made of them, by the name of what is wrong."""
    headers = {"origin": ADDRESS, "content-type": "application/x-www-form-urlencoded"}
    async with served.person("wim") as wim:
        answered = await wim.client.post("/", content=body, headers=headers)
    assert answered.status_code == status
    assert names in answered.text


async def test_every_answer_forbids_scripts_frames_and_storing(served: Served) -> None:
    """Also a refusal; only a proxy is told to keep to https."""
    async with served.person("xan") as xan, served.person() as nobody:
        pages = [await xan.get(), await nobody.get(), await xan.get("/page.css"), await xan.get("/nowhere")]
        assert (await xan.client.request("DELETE", "/")).status_code == 405
        assert (await xan.get("/link/x")).status == 404
    assert [each.status for each in pages] == [200, 403, 200, 404]
    for page in pages:
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; form-action 'self'")
        assert "frame-ancestors 'none'" in policy
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["strict-transport-security"]
    assert {"script", "style", "img", "iframe"} & {tag for tag, _ in pages[0].tags} == set()
    assert not [
        named for _, named in pages[0].tags if "style" in named or any(n.startswith("on") for n in named)
    ]


def test_the_log_says_nothing_of_people(served: Served) -> None:
    """Neither names, nor questions, though requests failed."""
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=str(served.socket)), base_url="http://ask.example.org"
    ) as client:
        headers = {"origin": ADDRESS, HEADER: "karl-marker"}
        asked = client.post(
            "/", data={"sql": "SELECT secret_marker FROM nowhere", "act": "price"}, headers=headers
        )
        assert asked.status_code in (403, 422)
        assert client.get("/", headers={HEADER: "bad marker"}).status_code == 403
    assert "marker" not in served.log.read_text()


def test_the_socket_is_for_one_user_and_group(served: Served) -> None:
    """Others cannot connect, and so cannot say who they are."""
    assert served.socket.stat().st_mode & 0o777 == 0o660


def _tls(credentials: Credentials | None, authority: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority))
    if credentials is not None:
        context.load_cert_chain(str(credentials.certificate_file), str(credentials.key_file))
    return context


async def test_over_tls_only_the_holder_of_one_certificate_says_who_asks(stage: Stage) -> None:
    """Others of the same authority, who may be callers of the gateway, are refused with the same header."""
    certificate, key = stage.authority.server("page-tls")
    page = {
        "listen": "127.0.0.1:0",
        "address": ADDRESS,
        "tls": {"certificate": str(certificate), "key": str(key), "client_ca": str(stage.authority.ca_file)},
        "proxy": {**PROXY, "certificate": "dns:proxy.example.org"},
    }
    proxy = stage.authority.client(dns("proxy.example.org"), file="proxy")
    other = stage.authority.client(dns("proxy.example.org.evil.example"), file="other")
    found = []
    with announced_gateway(stage.folder, "mutual", stage, page=page) as ready:
        assert "page_link" not in ready
        for each in (proxy, other):
            context = _tls(each, stage.authority.ca_file)
            async with httpx.AsyncClient(
                verify=context, base_url=f"https://{ready['page_address']}"
            ) as client:
                headers = {"host": "ask.example.org", HEADER: "yan"}
                found.append((await client.get("/", headers=headers)).status_code)
        context = _tls(None, stage.authority.ca_file)
        async with httpx.AsyncClient(verify=context, base_url=f"https://{ready['page_address']}") as client:
            with pytest.raises(httpx.TransportError):
                await client.get("/", headers={"host": "ask.example.org", HEADER: "yan"})
    assert found == [200, 403]


async def test_a_link_opens_the_page_once(stage: Stage) -> None:
    """The browser that opened it keeps its cookie; everybody else, and a header, get nothing."""
    page = {"listen": "127.0.0.1:0", "tls": False, "link": ["acme", "zoe"]}
    with announced_gateway(stage.folder, "linked", stage, page=page) as ready:
        base, _, token = ready["page_link"].rpartition("/link/")
        async with opened(ready["page_link"]) as zoe:
            assert (await zoe.get()).left("acme/zoe") > 0
            assert (await zoe.asked(SQL)).status == 200
            cookies = dict(zoe.client.cookies)
            assert token not in cookies.values()
            assert (await zoe.send("price", {"sql": SQL}, {"origin": "http://evil.example"})).status == 403
        async with httpx.AsyncClient(base_url=base) as other:
            assert (await other.get(f"/link/{token}")).status_code == 403
            assert (await other.get("/", headers={HEADER: "zoe"})).status_code == 403
            (name,) = cookies
            for value in (token, "", "é".encode().decode("latin-1"), f"{cookies[name]}x"):
                sent = [(b"cookie", f"{name}={value}".encode("latin-1"))]
                assert (await other.get("/", headers=sent)).status_code == 403
            twice = f"{name}={cookies[name]}; {name}={cookies[name]}"
            assert (await other.get("/", headers={"cookie": twice})).status_code == 403
            assert (await other.get("/", headers={"cookie": f"{name}={cookies[name]}"})).status_code == 200
            named = {"cookie": f"{name}={cookies[name]}", "host": "evil.example"}
            assert (await other.get("/", headers=named)).status_code == 421


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "expected one of proxy, link"),
        ({"link": ["acme", "ana"], "proxy": PROXY, "address": ADDRESS}, "expected one of proxy, link"),
        ({"link": ["acme", "ana"], "listen": "0.0.0.0:0"}, "link: expected listen to be an address of this"),
        (
            {"link": ["acme", "ana"], "listen": "unix:/tmp/x"},
            "link: expected listen to be an address of this",
        ),
        ({"link": ["acme", "ana"], "address": ADDRESS}, "address: expected with proxy"),
        ({"proxy": PROXY, "listen": "unix:/tmp/x"}, "address: expected with proxy"),
        ({"proxy": PROXY, "address": ADDRESS}, "proxy.certificate: expected where listen is HOST:PORT"),
        (
            {"proxy": {**PROXY, "certificate": "dns:p"}, "address": ADDRESS, "listen": "unix:/tmp/x"},
            "proxy.certificate: expected where listen is HOST:PORT",
        ),
        ({"proxy": PROXY, "address": "http://ask.example.org", "listen": "unix:/tmp/x"}, "address"),
        ({"proxy": PROXY, "address": ADDRESS, "listen": "unix:x"}, "expected unix:/PATH or HOST:PORT"),
        ({"proxy": {**PROXY, "account": list("abcd")}, "address": ADDRESS, "listen": "unix:/x"}, "account"),
        ({"proxy": {**PROXY, "header": "X:"}, "address": ADDRESS, "listen": "unix:/x"}, "header"),
    ],
)
def test_a_page_that_could_be_entered_otherwise_is_refused(changes: dict[str, Any], said: str) -> None:
    """The message names the key."""
    with pytest.raises(ValidationError) as refused:
        PageSettings.model_validate(changes)
    assert said in str(refused.value)


def test_a_proxy_over_tcp_needs_the_authority_of_its_certificate(stage: Stage, tmp_path: Path) -> None:
    """Also on this machine, where others could send the header, too."""
    certificate, key = stage.authority.server("half-tls")
    jwt = {"key_file": str(stage.issuer.key_file), "algorithms": ["ES256"], "issuer": "x", "audience": "x"}
    written = {
        "dp": {"address": stage.dp},
        "budget": {"address": stage.budget},
        "engine": {"duckdb": {"feedback": "x"}},
        "tls": {"certificate": str(certificate), "key": str(key)},
        "identity": {"jwt": {**jwt, "accounts": [{"claim": "iss", "equals": "x", "prefix": ["acme"]}]}},
        "page": {
            "listen": "127.0.0.1:0",
            "address": ADDRESS,
            "proxy": {**PROXY, "certificate": "dns:proxy.example.org"},
        },
    }
    path = tmp_path / "gateway.yaml"
    for tls in (None, False):
        written["page"]["tls"] = tls  # type: ignore[index]
        path.write_text(json.dumps(written))
        with pytest.raises(SecurityError, match=r"page.tls: expected client_ca"):
            read_document(path, GatewayConfiguration).require_protected()

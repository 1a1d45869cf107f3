"""What clients of Pinot may send over HTTP, changed at random: methods, addresses, headers and bodies."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from random import Random
from typing import Any
from urllib.parse import quote

from tests.campaigns.fuzz.mutating import CANARY_TEXT as MARK
from tests.campaigns.fuzz.mutating import mutated
from tests.campaigns.wires.conversations import Conversation, End
from tests.campaigns.wires.stage import EXACT, ONCE, QUESTION, REFUSED
from tests.campaigns.wires.texts import bent, in_parts, no_question

_METHODS = (
    "GET",
    "GET",
    "POST",
    "POST",
    "POST",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PATCH",
    "CONNECT",
    "x",
)
_TARGETS = (
    *("/query/sql", "/query/sql", "/query/sql", "/tables", "/schemas", "/health", "/v2/brokers/tables", "/"),
    *("/tables/engagement/schema", "/schemas/engagement", f"/tables/{MARK}/schema", "/tables/%00/schema"),
    *(
        "/v2/brokers/tenants/DefaultTenant",
        "/v2/brokers/tenants",
        "/tables/livebrokers",
        "/tables/%ff%fe/schema",
    ),
    *(
        "/tables/%ed%a0%80/schema",
        "/tables/../schema",
        "//query/sql",
        "/query/sql/",
        "/query%2Fsql",
        "*",
        "x",
    ),
    *(
        "http://elsewhere.example.org/query/sql",
        f"/{MARK}",
        "/query/sql?sql=%ff",
        "/query/sql?sql=SELECT%001",
    ),
    *("/query/sql?" + "a=b&" * 50, "/query/sql?sql=SELECT+1&sql=SELECT+2", "/" + "x" * 20_000),
)
_HEADERS = (
    *(
        "Content-Type: text/plain",
        "Content-Encoding: gzip",
        "Accept: */*",
        "Accept-Encoding: gzip, br",
        "Range: bytes=0-",
    ),
    *("Expect: 100-continue", "Upgrade: h2c", "Connection: Upgrade", "Upgrade: websocket", "Origin: null"),
    *(f"Origin: https://{MARK}", f"X-Request-Id: {MARK}", f"Cookie: a={MARK}", "X-Forwarded-For: 10.0.0.1"),
    *(
        "Content-Length: 0",
        "Content-Length: -1",
        "Content-Length: 99999999999999999999",
        "Content-Length: 1, 1",
    ),
    *(
        "Content-Length: \xb2",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: gzip",
        "Host: elsewhere",
        "Host:",
    ),
    *(
        f"Authorization: {MARK}",
        "Authorization: Basic",
        "Authorization: Basic !!!",
        "Database: x",
        " folded: x",
        "x",
    ),
    *("X: " + "x" * 9_000, "X-\xe9: \xe9", "a:\x00b"),
)
_HOSTS = (
    "localhost:" + "1" * 5_000,
    "localhost:99999999",
    "127.0.0.1:0",
    "[::1]:x",
    "LOCALHOST",
    "",
    "a b",
    "localhost:\xb2",
)
_OPTIONS: tuple[Any, ...] = (
    *(
        None,
        1,
        [],
        {},
        "",
        "a",
        "=;=;",
        "timeoutMs=1;grisIntervals=yes",
        "grisConfidence=nan",
        "grisMaxCost=1e9",
    ),
    *("grisMaxCost=" + "9" * 12, "grisConfidence=0.9", "grisIntervals=true", f"grisX={MARK}", "x=1;" * 2_000),
    *("max_error=1%", f"max_error={MARK}", "\ud800", "grisMaxCost=\u0663"),
)
_SETS = (
    "SET grisMaxCost=5; ",
    "SET a='b'; ",
    "SET grisConfidence = 1e9; ",
    f"SET b = '{MARK}';",
    "set gris.x = 1;",
)
_ENDS = (
    " OPTION(timeoutMs=1)",
    " LIMIT 1000000",
    f" OPTION(a='{MARK}')",
    ";;",
    " -- x",
    " OPTION(",
    " option(grisMaxCost=x)",
)


def conversation(random: Random, tokens: Mapping[str, str]) -> Conversation:
    """Return all that one connection sends."""
    is_exact = random.random() < 0.05
    caller = EXACT if is_exact else ONCE if random.random() < 0.1 else REFUSED
    requests = []
    count = random.randint(1, 8)
    for number in range(count):
        is_last = number + 1 == count
        if is_exact:
            requests.append(_question(random, tokens[EXACT], mutated(random), is_last=is_last))
            continue
        if caller == ONCE and random.random() < 0.5:
            requests.append(_question(random, tokens[ONCE], QUESTION, is_last=is_last))
            continue
        # What is the caller's own question is never bent.
        content = _request(random, tokens[REFUSED], is_last=is_last)
        if random.random() < 0.15:
            content = bent(content, random)
        requests.append(content)
    end = End.ANSWERED if is_exact else random.choices((End.WAIT, End.LEAVE, End.STAY), (8, 1, 1))[0]
    parts = [part for each in requests for part in ([each] if is_exact else in_parts(each, random))]
    return Conversation(parts, count, end, is_exact=is_exact)


def _question(random: Random, token: str, sql: str, *, is_last: bool) -> bytes:
    """Return a request as clients send it."""
    body = json.dumps({"sql": sql, "queryOptions": "timeoutMs=10000"}).encode()
    return _written(
        "POST",
        "/query/sql",
        [
            "Host: localhost",
            f"Authorization: {_authorization(random, token)}",
            f"Content-Length: {len(body)}",
        ],
        body,
        is_last=is_last,
    )


def _request(random: Random, token: str, *, is_last: bool) -> bytes:
    """Return a request of which little is as it should be."""
    method, target = random.choice(_METHODS), random.choice(_TARGETS)
    if target == "/query/sql" and method == "GET":
        options = quote(str(random.choice(_OPTIONS)), errors="replace")
        target += f"?sql={quote(no_question(random)[:9_000])}&queryOptions={options}"
    headers = [f"Host: {'localhost:1' if random.random() < 0.9 else random.choice(_HOSTS)}"]
    if random.random() < 0.8:
        headers.append(f"Authorization: {_authorization(random, token)}")
    body = b"" if method == "GET" else _body(random)
    chance = random.random()
    if chance < 0.8:
        headers.append(f"Content-Length: {len(body)}")
    elif chance < 0.9:
        headers.append("Transfer-Encoding: chunked")
        body = _in_chunks(body, random)
    if random.random() < 0.3:
        headers += [random.choice(_HEADERS) for _ in range(random.choice((1, 1, 2, 3, 300)))]
    return _written(method, target, headers, body, is_last=is_last)


def _written(method: str, target: str, headers: list[str], body: bytes, *, is_last: bool) -> bytes:
    closing = ["Connection: close"] if is_last else []
    head = "\r\n".join((f"{method} {target} HTTP/1.1", *headers, *closing, "", ""))
    return head.encode("latin-1", errors="replace") + body


def _authorization(random: Random, token: str) -> str:
    def basic(text: str) -> str:
        return "Basic " + base64.b64encode(text.encode()).decode()

    if random.random() < 0.9:
        return random.choice((f"Bearer {token}", basic(f"-:{token}"), basic(f":{token}")))
    return random.choice(
        (
            *(
                f"Bearer {MARK}",
                "Bearer",
                f"bearer  {token}",
                f"Bearer {token[:-4]}",
                basic(MARK),
                basic(f"{MARK}:x"),
            ),
            *(
                basic(f"wires/good:{token}"),
                basic(f"\x00:{token}\n"),
                "Basic " + "A" * 9_000,
                basic("\u00e9:\u00e9"),
            ),
        )
    )


def _in_chunks(body: bytes, random: Random) -> bytes:
    size = random.choice(
        (
            f"{len(body):x}",
            f"{len(body):X};a={MARK}",
            "0",
            "-1",
            "ffffffffffffffffff",
            "x",
            f"{len(body) + 9:x}",
        )
    )
    end = random.choice(("\r\n0\r\n\r\n", "\r\n0\r\n\r\n", "", "\r\n", f"\r\n0\r\nX: {MARK}\r\n\r\n"))
    return size.encode() + b"\r\n" + body + end.encode()


def _body(random: Random) -> bytes:
    sql: Any = no_question(random)
    if random.random() < 0.2:
        sql = random.choice(_SETS) + sql
    if random.random() < 0.2:
        sql += random.choice(_ENDS)
    if random.random() < 0.1:
        sql = random.choice(
            (None, 1, True, [sql], {"sql": sql}, "\ud800", sql + "\ud800", sql + "\0", "\udfff'", 1e400)
        )
    given = {"sql": sql, "queryOptions": random.choice(_OPTIONS)} if random.random() < 0.5 else {"sql": sql}
    given |= {"trace": True, "": None} if random.random() < 0.1 else {}
    text = json.dumps(given)
    chance = random.random()
    if chance < 0.1:
        return bent(text.encode(), random)
    if chance < 0.25:
        return random.choice(
            (
                lambda: text.encode(random.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig"))),
                lambda: b"[" * random.choice((100, 100_000)),
                lambda: b'{"sql":' * 5_000,
                lambda: b'{"sql": ' + b"9" * 10_000 + b"}",
                lambda: b'{"sql": NaN, "sql": -Infinity}',
                lambda: text.encode()[:-1] + b', "sql": "SELECT 2"}',
                lambda: b" " * random.choice((1_000, 2 * 2**20, 2 * 2**20 + 1)),
                lambda: random.randbytes(random.randint(0, 200)),
                lambda: b"\x1f\x8b" + text.encode(),
                lambda: b"",
            )
        )()
    return text.encode()

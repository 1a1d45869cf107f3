"""Sends what Pinot's client for Go sends, byte for byte; prints a line of JSON for each step, with the answer.

Recorded from github.com/startreedata/pinot-client-go after v0.9.0: the list of brokers, and questions as they are, with
the multi-stage engine and a time-out, and with a trace. All on one connection, as Go keeps it.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

_BROKERS = (
    "GET /v2/brokers/tables?state=ONLINE HTTP/1.1\r\nHost: {place}\r\nUser-Agent: Go-http-client/1.1\r\n"
    "Accept: application/json\r\nAuthorization: Bearer {token}\r\nAccept-Encoding: gzip\r\n\r\n"
)
_QUESTION = (
    "POST /query/sql HTTP/1.1\r\nHost: {place}\r\nUser-Agent: Go-http-client/1.1\r\nContent-Length: {length}\r\n"
    "Authorization: Bearer {token}\r\nContent-Type: application/json; charset=utf-8\r\n"
    "X-Correlation-Id: e0011530-8d9b-4646-a9c1-cf4e9e0b7702\r\nAccept-Encoding: gzip\r\n\r\n{body}"
)
_OPTIONS = "groupByMode=sql;responseFormat=sql"
_MULTI_STAGE = f"{_OPTIONS};useMultistageEngine=true;timeoutMs=10000"


def main(file: str) -> None:
    """Ask everything."""
    asked = json.loads(Path(file).read_text())
    with _connected(asked) as connection:

        def step(name: str, request: str, **values: str) -> None:
            text = request.format(place=asked["place"], **{"token": asked["token"], **values})
            connection.sendall(text.encode())
            response = HTTPResponse(connection)
            response.begin()
            print(json.dumps({"step": name, "answer": json.loads(response.read())}), flush=True)

        step("tables", _BROKERS)
        step("connect", _QUESTION, **_body("SELECT 1"))
        for name, variant in (
            ("top", {}),
            ("series", {"options": _MULTI_STAGE}),
            ("sum", {"trace": "true"}),
            ("refused", {}),
        ):
            step(name, _QUESTION, **_body(asked[name], **variant))
        step("exhausted", _QUESTION, token=asked["poor_token"], **_body(asked["top"]))
        step("again", _QUESTION, **_body(asked["top"]))


def _connected(asked: dict[str, Any]) -> socket.socket:
    host, _, port = asked["place"].rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=60)
    if asked["scheme"] == "http":
        return plain
    return ssl.create_default_context(cafile=asked["ca_file"]).wrap_socket(plain, server_hostname=host)


def _body(sql: str, *, options: str = _OPTIONS, **more: str) -> dict[str, str]:
    """Return the body and its length; Go writes keys in order, without blanks, and what HTML reserves by its code."""
    body = json.dumps(
        {"queryOptions": options, "sql": sql, **more}, separators=(",", ":"), ensure_ascii=False
    )
    for reserved in "<>&":
        body = body.replace(reserved, f"\\u{ord(reserved):04x}")
    return {"body": body, "length": str(len(body.encode()))}


if __name__ == "__main__":
    main(sys.argv[1])

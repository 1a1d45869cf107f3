"""The HTTP of brokers and controllers that clients of Apache Pinot use, as an ASGI application.

A question that is not answered is HTTP 200 with an exception, as a broker's: of any other status most clients show
nothing but its number. Everything beside questions has HTTP's own statuses.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from gris_gateway.faces.broker.answers import answer_of, one_row, refusal
from gris_gateway.faces.broker.credentials import sender_and_account
from gris_gateway.faces.broker.failures import INTERNAL, code_of
from gris_gateway.faces.broker.statements import Asked, asked, asked_in
from gris_gateway.faces.broker.tables import broker_at, schema_of
from gris_serving.admitting import Admitting
from gris_serving.distribution import version
from gris_serving.http_application import HttpApplication, require_method
from gris_serving.http_connections import sender_of
from gris_serving.http_requests import HttpRules
from gris_serving.internal_errors import log_internal_error
from gris_serving.refusals import HttpRefusalError
from pinot_connector.catalog import Catalog
from pinot_connector.errors import AccountUnknown, GrisError, InvalidQuestion, RefusedByPolicy
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.liveness import liveness_column
from pinot_connector.questions import sql_question

QUERY = "/query/sql"
_ASKING = ("GET", "POST")
SMALL_ROWS = 1000
_SCHEMA = re.compile(r"/(?:schemas/(?P<schema>[^/]+)|tables/(?P<table>[^/]+)/schema)")
_LIMIT = re.compile(r"(?<!\s)\s++LIMIT\s++\d++\Z", re.IGNORECASE)
_TENANT = re.compile(r"/v2/brokers/tenants(?:/[^/]+)?")

_Answering = Callable[[AsyncGatewayClient, bytes], Awaitable[Response]]

log = logging.getLogger(__name__)


class BrokerApplication(HttpApplication):
    """The ASGI application.

    Args:
        admitting: Knows who sends requests.
        rules: Which requests are read.
        address: HOST:PORT, by which clients that ask for brokers reach this one; None: that by which they asked.
    """

    def __init__(
        self, admitting: Admitting[AsyncGatewayClient], rules: HttpRules, address: str | None = None
    ) -> None:
        super().__init__(rules)
        self._admitting = admitting
        self._address = address

    def _refused(self, refusal: HttpRefusalError, scope: Scope) -> Response:
        of_http = (HTTPStatus.MISDIRECTED_REQUEST, HTTPStatus.METHOD_NOT_ALLOWED)
        # What asks otherwise is no client of a broker: 200 to CONNECT would begin another protocol.
        is_asked = scope["path"] == QUERY and scope["method"] in _ASKING
        is_question = is_asked and refusal.status not in of_http
        return _refused(refusal) if is_question else _refused_otherwise(refusal)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._rules.require_right_address(Headers(scope=scope))
        if (open_to_all := _open_to_all(scope)) is not None:
            await open_to_all(scope, receive, send)
            return
        answering = self._answering(scope)
        sender, account = sender_and_account(sender_of(scope))
        admitted = self._rules.admitted(self._admitting, sender, scope, receive, account=account)
        async with admitted as (client, body):
            await self._respond(lambda: answering(client, body), body, scope, receive, send)

    def _answering(self, scope: Scope) -> _Answering:
        """Return what answers a request, by its path and method.

        Raises:
            HttpRefusalError: Nothing does.
        """
        path, method = scope["path"], scope["method"]
        if path == QUERY:
            require_method(method, *_ASKING)
            return partial(_queried, scope=scope)
        require_method(method, "GET")
        if path in ("/tables", "/schemas"):
            return partial(_listed, key="tables" if path == "/tables" else "")
        if path == "/version":
            return _versions
        if path in ("/tables/livebrokers", "/v2/brokers/tables"):
            return partial(_brokers_of_tables, broker=self._broker(scope))
        if _TENANT.fullmatch(path):
            return partial(_brokers, broker=self._broker(scope))
        if (found := _SCHEMA.fullmatch(path)) is not None:
            return partial(_described, table=found["schema"] or found["table"])
        raise HttpRefusalError(HTTPStatus.NOT_FOUND, f"expected {QUERY}, /tables or /tables/TABLE/schema")

    def _broker(self, scope: Scope) -> dict[str, Any]:
        """Return where this broker is."""
        return broker_at(self._address or Headers(scope=scope)["host"], is_secure=scope["scheme"] == "https")


def _open_to_all(scope: Scope) -> Response | None:
    """Return the answer to what monitors ask, who are nobody."""
    return PlainTextResponse("OK") if scope["path"] == "/health" and scope["method"] == "GET" else None


async def _queried(client: AsyncGatewayClient, body: bytes, *, scope: Scope) -> Response:
    try:
        question = asked_in(body) if scope["method"] == "POST" else _in_address(scope)
        return await _answered(client, question)
    except GrisError as error:
        return JSONResponse(refusal(code_of(error), str(error)))
    except Exception as error:
        # What it says may hold SQL.
        log_internal_error(log, "A question over HTTP failed.", error)
        return JSONResponse(refusal(INTERNAL, "the gateway failed; its log says where"))


def _in_address(scope: Scope) -> Asked:
    try:
        given = parse_qs(scope["query_string"].decode(), max_num_fields=20)
    except ValueError:
        raise InvalidQuestion("sql", "expected ?sql=.. in UTF-8") from None
    sql, options = (given.get(name, [None])[0] for name in ("sql", "queryOptions"))
    return asked(sql, options)


async def _answered(client: AsyncGatewayClient, question: Asked) -> Response:
    # Clients put a LIMIT behind every statement.
    if (one := liveness_column(_LIMIT.sub("", question.sql.strip()))) is not None:
        return JSONResponse(one_row(one))
    result = await client.ask(
        sql_question(question.sql), confidence=question.confidence, max_cost=question.max_cost
    )

    def written() -> Response:
        return JSONResponse(answer_of(result, intervals=question.intervals))

    # A long list would keep all other callers waiting.
    return written() if len(result.rows) <= SMALL_ROWS else await asyncio.to_thread(written)


async def _listed(client: AsyncGatewayClient, body: bytes, *, key: str) -> Response:
    del body
    names = [table.name for table in (await _read(client)).tables]
    return JSONResponse({key: names} if key else names)


async def _versions(client: AsyncGatewayClient, body: bytes) -> Response:
    del client, body
    return JSONResponse({"gris": version()})


async def _brokers(client: AsyncGatewayClient, body: bytes, *, broker: dict[str, Any]) -> Response:
    del client, body
    return JSONResponse([broker])


async def _brokers_of_tables(client: AsyncGatewayClient, body: bytes, *, broker: dict[str, Any]) -> Response:
    del body
    return JSONResponse({table.name: [broker] for table in (await _read(client)).tables})


async def _described(client: AsyncGatewayClient, body: bytes, *, table: str) -> Response:
    del body
    return JSONResponse(schema_of((await _read(client, table)).tables[0]))


async def _read(client: AsyncGatewayClient, table: str = "") -> Catalog:
    """Read the catalogue.

    Raises:
        HttpRefusalError: There is no such table, or no answer.
    """
    try:
        return await client.catalog(table)
    except (RefusedByPolicy, InvalidQuestion) as error:
        raise HttpRefusalError(HTTPStatus.NOT_FOUND, str(error)) from None
    except AccountUnknown as error:
        raise HttpRefusalError(HTTPStatus.FORBIDDEN, str(error)) from None
    except GrisError as error:
        raise HttpRefusalError(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from None


def _refused(error: HttpRefusalError) -> Response:
    return JSONResponse(refusal(code_of(error), error.message), headers=dict(error.headers))


def _refused_otherwise(error: HttpRefusalError) -> Response:
    body = {"code": int(error.status), "error": error.message}
    return JSONResponse(body, status_code=int(error.status), headers=dict(error.headers))

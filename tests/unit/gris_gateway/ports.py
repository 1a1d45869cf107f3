"""The ports of a gateway as one thing: somebody asks a text, and gets rows or a refusal."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

import httpx
import psycopg

from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Level, level_of
from pinot_connector.errors import (
    BudgetExhausted,
    GrisError,
    InvalidQuestion,
    RefusedByPolicy,
    ServiceRefused,
)
from tests.support.gateways import AUDIENCE, GatewayWorld

# Each client would else read all authorities of this machine, for plain text.
_TRUSTED = ssl.create_default_context()
_CHARGED = re.compile(r"charged: (\d+) information")
_TOO_MANY = re.compile("too many|at most .* at a time")


class Refused(Enum):
    """Why there is no answer."""

    CALLER = auto()
    BUSY = auto()
    BUDGET = auto()
    QUESTION = auto()
    FAILED = auto()


@dataclass(frozen=True)
class Outcome:
    """What came of a question.

    Attributes:
        rows: The answer.
        charged: The information units that it cost this time.
        refused: Why there is none; None: there is one.
        said: What the refusal says.
    """

    rows: tuple[tuple[object, ...], ...] = ()
    charged: int = 0
    refused: Refused | None = None
    said: str = ""


class Port(Protocol):
    """A port of the gateway."""

    async def ask(self, gateway: GatewayWorld, sql: str, token: str, account: str = "") -> Outcome:
        """Ask a text on a connection of its own; who cancels this leaves as this port's clients leave.

        Args:
            gateway: Whose port.
            sql: The text.
            token: Who asks; empty: shows none.
            account: Whose budget is to pay; empty: the caller's own.
        """
        ...


class Grpc:
    """The port of gRPC."""

    async def ask(self, gateway: GatewayWorld, sql: str, token: str, account: str = "") -> Outcome:
        """Ask by the connector's client."""
        known = gateway.nobody
        files = (known.ca_file, known.certificate_file, known.key_file)
        shown = Credentials(*files, token=(lambda: token) if token else None)
        try:
            async with AsyncGatewayClient(
                Endpoint(gateway.address, shown), account=account or None
            ) as client:
                result = await client.sql(sql)
        except GrisError as error:
            return Outcome(refused=_kind_of(error), said=str(error))
        rows = tuple((*row.element, row.noisy_count) for row in result.rows)
        return Outcome(rows, result.charged.information)


class Broker:
    """The port of a broker of Apache Pinot."""

    async def ask(self, gateway: GatewayWorld, sql: str, token: str, account: str = "") -> Outcome:
        """Ask as pinotdb and curl do."""
        # As bytes, since a header that has been made up need not be ASCII.
        headers = [(b"Authorization", f"Bearer {token}".encode())] if token and not account else []
        basic = (account, token) if account else None
        async with httpx.AsyncClient(timeout=60, headers=headers, auth=basic, verify=_TRUSTED) as client:
            response = await client.post(
                f"http://{gateway.broker_address}/query/sql",
                json={"sql": sql},
            )
        assert response.status_code == 200, response.text
        answer = response.json()
        for exception in answer["exceptions"]:
            return Outcome(refused=_kind_of_code(exception), said=exception["message"])
        return Outcome(
            tuple(map(tuple, answer["resultTable"]["rows"])), answer["gris"]["charged"]["information"]
        )


class Postgres:
    """The port of PostgreSQL's messages."""

    async def ask(self, gateway: GatewayWorld, sql: str, token: str, account: str = "") -> Outcome:
        """Ask as psycopg does."""
        host, _, port = gateway.postgres_address.rpartition(":")
        said: list[str] = []
        try:
            async with await psycopg.AsyncConnection.connect(
                host=host,
                port=int(port),
                dbname="gris",
                user=account or "-",
                password=token or None,
                passfile="/dev/null",
                sslmode="verify-full",
                sslrootcert=str(gateway.authority.ca_file),
                autocommit=True,
            ) as connection:
                connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
                cursor = await connection.execute(sql.encode())
                rows = tuple(await cursor.fetchall())
        except psycopg.Error as error:
            # Of a connection that is refused there is but the text.
            return Outcome(refused=_kind_of_state(error), said=str(error))
        charged = [int(found[1]) for each in said if (found := _CHARGED.match(each))]
        return Outcome(rows, sum(charged))


PORTS: dict[str, Port] = {"grpc": Grpc(), "broker": Broker(), "postgres": Postgres()}


def token_of(gateway: GatewayWorld, name: str) -> str:
    """Return the token of an analyst of acme."""
    return gateway.issuer.token(AUDIENCE, org="acme", sub=name)


async def ledger_of(gateway: GatewayWorld, *path: str) -> Level:
    """Return what the ledger itself says of an account."""
    calls = BudgetServiceClient(gateway.budget, path, Timeouts())
    try:
        return level_of((await calls.levels())[-1])
    finally:
        await calls.close()


def _kind_of(error: GrisError) -> Refused:
    match error:
        case ServiceRefused():
            return Refused.CALLER
        case InvalidQuestion(field=field) if field.startswith("account"):
            return Refused.CALLER
        case InvalidQuestion() | RefusedByPolicy():
            return Refused.QUESTION
        case BudgetExhausted():
            return Refused.BUDGET
        case _:
            return Refused.BUSY if _TOO_MANY.search(str(error)) else Refused.FAILED


def _kind_of_code(exception: dict[str, object]) -> Refused:
    """Return the kind of an exception of a broker, which has one code for whatever is exhausted."""
    is_busy = _TOO_MANY.search(str(exception["message"])) is not None
    kinds = {180: Refused.CALLER, 429: Refused.BUSY if is_busy else Refused.BUDGET}
    kinds |= dict.fromkeys((150, 190, 700, 710), Refused.QUESTION)
    return kinds.get(int(str(exception["errorCode"])), Refused.FAILED)


def _kind_of_state(error: psycopg.Error) -> Refused:
    match error.sqlstate or "":
        case "53000":
            return Refused.BUSY
        case "53400":
            return Refused.BUDGET
        case "22023":
            return Refused.QUESTION
        case state if state.startswith("42"):
            return Refused.QUESTION
        case "":
            is_caller = any(each in str(error) for each in ("token", "account", "password"))
            return Refused.CALLER if is_caller else Refused.FAILED
        case _:
            return Refused.FAILED

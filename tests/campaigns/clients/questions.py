"""What every client is asked for, as whom, and the answers that it has to show."""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore

from pinot_connector import Credentials, Endpoint, GatewayClient
from tests.campaigns.clients.sales import TABLE
from tests.campaigns.superset.stack import Stack

STEPS = (
    *("connect", "tables", "columns", "top", "again", "parameter", "list", "days", "series", "sum"),
    *("refused", "exhausted", "paid once"),
)
VALUE = "NL"
_TOP = """
SELECT article, COUNT(DISTINCT member_id) AS members FROM sales WHERE country {} GROUP BY article
ORDER BY members DESC LIMIT 5"""
_SERIES = """
SELECT DATE_TRUNC('month', day) AS month, COUNT(DISTINCT member_id) AS members FROM sales
WHERE day >= {} AND day < {} GROUP BY DATE_TRUNC('month', day)"""
QUESTIONS = {
    "top": _TOP.format(f"= '{VALUE}'"),
    "prepared": _TOP.format("= ?"),
    "listed": _TOP.format("= ANY(?)"),
    "series": _SERIES.format("'2025-01-01'", "'2026-01-01'"),
    "between": _SERIES.format("?", "?"),
    "sum": "SELECT country, SUM(euros) AS euros FROM sales GROUP BY country",
    "refused": "SELECT country, COUNT(DISTINCT member_id) FROM sales WHERE member_id = 'm1' GROUP BY country",
    "tables_in_sql": "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
    "columns_in_sql": "SELECT column_name FROM information_schema.columns WHERE table_name = 'sales'",
}
DRIVERS = ("psycopg", "psycopg2")
"""The drivers by which SQLAlchemy asks PostgreSQL."""
REFERENCE, POOR = "reference", "poor"
_PASSWORD = "public"  # noqa: S105 - what it protects is a certificate


@dataclass(frozen=True)
class Expected:
    """What a plain request gets, from another account.

    Attributes:
        rows: The rows of each answer, by its step.
        texts: What each refusal has to say, by its step.
        units: What the answers cost together, in information units.
    """

    rows: dict[str, list[list[Any]]]
    texts: dict[str, str]
    units: int


def written(stack: Stack, caller: str, folder: Path) -> Path:
    """Write what a client has to know to a file of JSON, and whom it trusts to one that Java reads."""
    scheme, _, place = stack.broker_url.partition("://")
    certificate = PKCS12Certificate(x509.load_pem_x509_certificate(stack.ca_file.read_bytes()), b"gateway")
    encryption = BestAvailableEncryption(_PASSWORD.encode())
    (folder / "ca.p12").write_bytes(serialize_java_truststore([certificate], encryption))
    asked = {
        "url": stack.broker_url,
        "scheme": scheme,
        "place": place,
        "ca_file": str(stack.ca_file),
        "truststore": str(folder / "ca.p12"),
        "truststore_password": _PASSWORD,
        "account": f"bi/{caller}",
        "token": stack.token(caller),
        "poor_account": f"bi/{POOR}",
        "poor_token": stack.token(POOR),
        **_urls(stack, "", caller),
        **_urls(stack, "poor_", POOR),
        "table": TABLE,
        "value": VALUE,
        **QUESTIONS,
    }
    file = folder / f"{caller}.json"
    file.write_text(json.dumps(asked))
    return file


def _urls(stack: Stack, who: str, caller: str) -> dict[str, str]:
    """Return the URLs by which a caller asks, for each kind of client."""
    return {
        f"{who}sqlalchemy_url": stack.pinot_url(caller),
        f"{who}postgres_dsn": stack.postgres_url(caller),
        # It has user and password apart.
        f"{who}jdbc_url": f"jdbc:postgresql://{stack.postgres_url(caller).partition('@')[2]}",
        **{f"{who}{each}_url": stack.postgres_url(caller, f"postgresql+{each}") for each in DRIVERS},
    }


def expected(stack: Stack) -> Expected:
    """Ask everything once by plain requests, whose answers are whole: so nothing is missing from all clients alike."""
    answers = {name: _posted(stack, REFERENCE, QUESTIONS[name]) for name in ("top", "series", "sum")}
    refusals = {
        "refused": _posted(stack, REFERENCE, QUESTIONS["refused"]),
        "exhausted": _posted(stack, POOR, QUESTIONS["top"]),
    }
    rows = {name: answer["resultTable"]["rows"] for name, answer in answers.items()}
    assert {name: len(found) for name, found in rows.items()} == {"top": 5, "series": 12, "sum": 3}, answers
    texts = {name: _sentence(answer["exceptions"][0]["message"]) for name, answer in refusals.items()}
    assert re.search(r"refreshed \d{4}-\d\d-\d\d", texts["exhausted"]), texts
    return Expected(rows, texts, spent(stack, REFERENCE))


def _sentence(message: str) -> str:
    """Return what a message says without the place in the SQL, which clients write in their own way."""
    return re.sub(r"^line \d+, column \d+: ", "", message.splitlines()[0])


def spent(stack: Stack, caller: str) -> int:
    """Return the information units that a caller has spent; one who was never charged has no budget yet."""
    stack.write_token(caller)
    credentials = Credentials(ca_file=stack.ca_file, token_file=stack.credentials / f"{caller}.jwt")
    with GatewayClient(Endpoint(stack.address, credentials)) as client:
        return client.remaining()[-1].spent.information


def _posted(stack: Stack, caller: str, sql: str) -> dict[str, Any]:
    response = httpx.post(
        f"{stack.broker_url}/query/sql",
        json={"sql": sql},
        headers={"Authorization": f"Bearer {stack.token(caller)}"},
        verify=ssl.create_default_context(cafile=stack.ca_file),
        timeout=60,
    )
    answer: dict[str, Any] = response.raise_for_status().json()
    return answer

"""Release stores, and releases to keep in them."""

from __future__ import annotations

import itertools
from pathlib import Path

from gris_api.app.v1 import app_pb2
from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2
from psycopg import sql

from pinot_connector.release_store import KeptRelease, Payment, Receipt
from pinot_connector.release_store.encryption import StoreKey, StoreKeys
from pinot_connector.release_store.interface import DAY
from tests.support.postgres_server import PostgresServer

KEY, OTHER_KEY = StoreKey(b"k" * 32), StoreKey(b"o" * 32)
KEYS = StoreKeys(KEY)
ANA, BOB = ("acme", "ana"), ("acme", "bob")
# 2026-01-01 and the months after it.
MONTHS = [1_767_225_600 * 10**6 + month * 31 * DAY for month in range(48)]

_numbers = itertools.count()


def kept(name: str = "r", *, fixed: bool = True, noise_key: str = "n", elements: int = 3) -> KeptRelease:
    """Return a whole release of so many elements."""
    strings = histogram_pb2.StringValues(values=[f"secret-element-{each}" for each in range(elements)])
    column = histogram_pb2.ElementColumn(name="c", strings=strings)
    content = dp_pb2.Kept(
        bill=dp_pb2.Bill(release_id=name),
        key_id=noise_key,
        element_count=elements,
        elements=dp_pb2.KeptElements(columns=[column], noisy_counts=range(elements, 0, -1)),
    )
    return KeptRelease(content, fixed)


def in_month(month: int) -> Payment:
    """Return a payment in a month."""
    return Payment(MONTHS[month], MONTHS[month + 1])


def receipt(query_id: str = "", *, request_id: str = "", k: int = 1, at: int = MONTHS[0]) -> Receipt:
    """Return a receipt for the first k elements of a release, or for one that is not kept."""
    structured = question_pb2.HistogramQuery(table="t", k=k)
    past = app_pb2.PastRelease(question=question_pb2.Question(structured=structured), request_id=request_id)
    past.released_at.FromMicroseconds(at)
    past.result.shown.element_count = k
    past.result.shown.query_id = query_id
    past.result.shown.interval_kind = dp_pb2.INTERVAL_KIND_PLAIN
    past.elements.noise_lower.extend(range(k))
    past.elements.noise_upper.extend(range(k))
    return Receipt(past, f"{query_id}:{k}", query_id)


def new_database(server: PostgresServer) -> str:
    """Make an empty database, and return how it is reached."""
    name = f"releases_{next(_numbers)}"
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return server.address.replace("/postgres?", f"/{name}?")


def key_file(folder: Path, content: bytes = b"k" * 32, name: str = "releases.key", mode: int = 0o400) -> Path:
    """Write a key file."""
    path = folder / name
    path.touch(mode=0o600)
    path.write_bytes(content)
    path.chmod(mode)
    return path

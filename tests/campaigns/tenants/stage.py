"""A gateway of fifty tenants, and gateways of worlds that have nothing but what one tenant is offered.

Those worlds know of no audience: their policies list what is offered and nothing else, their tables hold the rows of
one tenant, and a question there states itself what is forced here. So it is the same question with the same noise.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import grpc
import pyarrow as pa
import pyarrow.parquet as pq
from gris_api.app.v1 import app_pb2_grpc

from dp_service.queries.filters import In, Value
from tests.support.budget_process import service
from tests.support.dp_questions import Clock
from tests.support.dp_server import listening, servicer_of
from tests.support.pki import ISSUER, Issuer
from tests.support.processes import process
from tests.support.queries.reference import Row
from tests.support.queries.strategies import DAYS, NOW, NUMBERS, TEXTS

_SAID: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "group_by": True, "filter": ["in", "not_in"]},
    "number": {"type": "int64", "group_by": True, "filter": ["in", "not_in", "range"]},
    "flag": {"type": "bool", "group_by": True, "filter": ["in", "not_in"], "delta": 1},
    "day": {"type": "date", "group_by": True, "filter": ["in", "not_in", "range"]},
}
AUDIENCES: dict[str, dict[str, Any]] = {
    "one": {"t": {"columns": ["number"], "where": {"text": "$tenant"}}},
    "two": {"t": {"where": {"text": ["$first", "$second"]}}},
    "shelf": {"t": {"columns": ["text"], "where": {"number": "$shelf"}}},
    "clerk": {
        "t": {"where": {"text": "$tenant", "flag": True}},
        "payroll": {"columns": ["flag"], "where": {"text": "$tenant"}},
    },
}
OFFERED: dict[str, dict[str, tuple[str, ...]]] = {
    "one": {"t": ("text", "number", "day")},
    "two": {"t": ("text", "number", "flag", "day")},
    "shelf": {"t": ("text", "number", "day")},
    "clerk": {"t": ("text", "number", "flag", "day"), "payroll": ("text", "flag", "day")},
}
"""What a world of an audience has, table by table: said once more, for the product derives it."""
_VALUES = {
    "one": {"tenant": "account[2]"},
    "two": {"first": "account[2]", "second": "account[3]"},
    "shelf": {"shelf": "account[2]"},
    "clerk": {"tenant": "account[2]"},
}
# Names that begin others, differ in case, accents or alphabet, and hold what patterns and quotes mean something by.
NAMES = [
    *(text for text in TEXTS if text not in ("", "null", "\u212a", "a\nA")),
    *("acme", "acmecorp", "Acme", "ACME", "acme corp", "acm_", "acme%", "acme'", "\u0430cme", "o'hara"),
    *("É", "ß", "ss", "t1", "t10", "t100", "1", "true"),
]
_SHELVES = ["-1", "0", "1", "2", "3"]
_PAIRS = [("acme", "a"), ("acme", "acmecorp"), ("acm_", "acme'"), ("k", "é"), ("k", "o'hara")]
_CLERKS = ["acme", "acmecorp", "a", "'", "%", "é", "t1"]
AUDIENCE, SEED = "gris-gateway", 1
_BUDGET = {
    "accounts": [
        {"path": [root, *["*"] * depth], "limit": {"information": 10**12, "calls": 10**9}, "window": "never"}
        for root in ("t", "alone")
        for depth in range(4)
    ],
}


@dataclass(frozen=True)
class Tenant:
    """An account below the root, which begins with its audience, and what is forced on its questions of each table."""

    account: tuple[str, ...]
    rows: dict[str, tuple[In, ...]]

    def has(self, table: str, row: Row) -> bool:
        """Return whether a row is one of its rows."""
        return all(getattr(row, each.column) in each.values for each in self.rows[table])


def _of(column: str, *values: Value) -> tuple[In, ...]:
    return (In(column, values),)


TENANTS = [
    *(Tenant(("one", name), {"t": _of("text", name)}) for name in NAMES),
    *(Tenant(("two", *pair), {"t": _of("text", *pair)}) for pair in _PAIRS),
    *(Tenant(("shelf", name), {"t": _of("number", int(name))}) for name in _SHELVES),
    *(
        Tenant(("clerk", name), {"t": (*_of("text", name), *_of("flag", True)), "payroll": _of("text", name)})
        for name in _CLERKS
    ),
]


def _rows() -> list[Row]:
    """Return rows of which members have many, of several tenants too, and some are of nobody."""
    random = Random(SEED)

    def few(values: list[Any]) -> Any:
        return values[min(int(random.expovariate(0.7)), len(values) - 1)]

    days = [DAYS[2], DAYS[1], DAYS[3], None, DAYS[0], DAYS[4]]
    return [
        Row(
            random.choice([f"{text}/{random.randrange(60)}", f"m{random.randrange(60)}"]),
            text,
            few([1, 2, 0, 3, -1, None, *NUMBERS]),
            random.choice([True, True, False, None]),
            few(days),
        )
        for text in [*TEXTS, *NAMES, None]
        for _ in range(150)
    ]


@dataclass
class World:
    """A gateway, and the file of each table that it answers from."""

    stub: Any
    files: dict[str, Path]


class Stage:
    """Everything that is asked."""

    def __init__(self, issuer: Issuer, rows: list[Row], whole: World, alone: dict[str, World]) -> None:
        self.whole = whole
        self._issuer, self._rows, self._alone = issuer, rows, alone

    def alone(self, tenant: Tenant) -> World:
        """Return the world that has nothing but what a tenant is offered, with its rows."""
        world = self._alone[tenant.account[0]]
        for table, file in world.files.items():
            write([row for row in self._rows if tenant.has(table, row)], file)
        return world

    def of(self, tenant: Tenant) -> list[tuple[str, str]]:
        """Return the metadata of a tenant's calls."""
        *above, own = tenant.account
        claims: dict[str, Any] = {"org": "/".join(above), "sub": own, "exp": int(time.time()) + 3600}
        return [("authorization", f"Bearer {self._issuer.token(AUDIENCE, **claims)}")]


def write(rows: list[Row], file: Path) -> None:
    """Write rows in place of those that a file has."""
    kinds = [pa.string(), pa.string(), pa.int64(), pa.bool_(), pa.date32()]
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * len(kinds)
    arrays = [pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)]
    new = file.with_suffix(".new")
    pq.write_table(pa.table(arrays, Row._fields), new)
    new.replace(file)


def policy(tables: dict[str, tuple[str, ...]], audiences: dict[str, dict[str, Any]] | None = None) -> str:
    """Return the policy of tables with some columns each."""
    said = {
        name: {
            "member": "member",
            "time": {"column": "day", "type": "date"},
            "data_version": "one",
            "measures": {"distinct_members": True, "events": {"tau": 3, "tau_is": "clipped"}},
            "columns": {column: _SAID[column] for column in columns},
        }
        for name, columns in tables.items()
    }
    more = (
        {}
        if audiences is None
        else {"audiences": {name: {"tables": each} for name, each in audiences.items()}}
    )
    return json.dumps({"epsilon_per": 2, "delta": "1e-3", "tables": said, **more}, ensure_ascii=False)


@asynccontextmanager
async def running_stage(folder: Path) -> AsyncIterator[Stage]:
    """Run the services and gateways."""
    issuer, rows = Issuer(folder), _rows()
    async with AsyncExitStack() as opened:
        store = f"sqlite:{folder / 'ledger.db'}"
        ledger = opened.enter_context(service(folder, store, configuration=json.dumps(_BUDGET))).address
        of_all = policy(dict.fromkeys(("t", "payroll"), tuple(_SAID)), AUDIENCES)
        whole = await _world(
            opened, folder / "whole", of_all, ledger, _identity(issuer, "t"), audiences=_rules()
        )
        for file in whole.files.values():
            write(rows, file)
        alone = {
            name: await _world(opened, folder / name, policy(offered), ledger, _identity(issuer, "alone"))
            for name, offered in OFFERED.items()
        }
        yield Stage(issuer, rows, whole, alone)


async def _world(
    opened: AsyncExitStack, folder: Path, said: str, ledger: str, identity: dict[str, Any], **more: Any
) -> World:
    """Run a dp_service, in this process, and a gateway before it."""
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs yet
    clock = Clock()
    clock.seconds = NOW
    dp = await opened.enter_async_context(listening(servicer_of(said, clock=clock)))
    files = {table: folder / f"{table}.parquet" for table in json.loads(said)["tables"]}
    for file in files.values():
        write([], file)
    config = {
        "listen": "127.0.0.1:0",
        "dp": {"address": dp},
        "budget": {"address": ledger},
        "engine": {"duckdb": {table: str(file) for table, file in files.items()}},
        "identity": {"jwt": identity},
        "limits": {"per_second": 10_000, "burst": 10_000, "concurrent": 64, "waiting": 1000},
        "timeouts": {"budget_silence": 30, "budget_attempt": 20, "budget": 30},
        **more,
    }
    (folder / "gateway.yaml").write_text(json.dumps(config))
    words = ["--config", folder / "gateway.yaml"]
    ready = opened.enter_context(process("gris_gateway", words, folder / "gateway.log"))
    channel = await opened.enter_async_context(grpc.aio.insecure_channel(ready["address"]))
    return World(app_pb2_grpc.PrivateQueryServiceStub(channel), files)


def _rules() -> list[dict[str, Any]]:
    return [{"accounts": ["t", name], "audience": name, "values": values} for name, values in _VALUES.items()]


def _identity(issuer: Issuer, root: str) -> dict[str, Any]:
    above = sorted({each.account[:-1] for each in TENANTS})
    rules = [
        {"claim": "org", "equals": "/".join(each), "prefix": [root, *each], "append": "sub"} for each in above
    ]
    known = {"key_file": str(issuer.key_file), "algorithms": ["ES256"], "issuer": ISSUER}
    return {**known, "audience": AUDIENCE, "accounts": rules}

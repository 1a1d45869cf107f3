"""Who did what: an act of an administrator has actor and reason in the journal, and cannot be changed there unseen."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pwd
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from cryptography import x509
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2
from psycopg import sql
from redis.asyncio import Redis

from budget_service.configuration.budget_file import Configuration, ConfigurationError, load_configuration
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Cost
from budget_service.ledger.verification import Sum
from budget_service.server.actors import local_actor
from budget_service.server.audit import Verification, verify
from budget_service.server.hosting import METHODS, administering, new_server
from budget_service.server.ledger import Ledger as HeldLedger
from budget_service.server.process import main
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store, StoreDamagedError
from budget_service.stores.opening import open_store
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.sqlite.store import SqliteStore
from gris_serving.instrumentation import NOTHING
from gris_serving.security import Security, SecurityOptions
from pinot_connector import Credentials, Endpoint
from pinot_connector.channels import open_channel
from tests.support.budget_client import failure
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    OTHER_UNIT,
    SteppedClock,
    charge,
    levels,
    limit,
)
from tests.support.ledger_stores import UNHURRIED, closing, empty
from tests.support.log_events import everything_logged, logged_events
from tests.support.pki import ISSUER, Authority, Issuer, dns, email, uri
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import RedisServer
from tests.unit.budget_service.memory_store import MemoryStore

AUDIENCE = "gris-budget"
ON = levels(own=limit(100, 100), above=limit(1000, 1000))
ROOT, ANN = (budget_pb2.Account(path=path) for path in (COMPANY.path, ANALYST.path))
CHANGE = pb.LimitChange(
    path=ANALYST.path,
    limit=pb.Limit(information=9, calls=9, mode=budget_pb2.MODE_ENFORCE, period=pb.PERIOD_MONTH),
)
# Every method that changes the ledger, in an order in which all are granted, and the kind of its entry.
ACTS: tuple[tuple[str, Any, int], ...] = (
    ("ResumeClock", pb.ResumeClockRequest(account=ROOT), pb.CHARGE_KIND_CLOCK),
    ("SetLimits", pb.SetLimitsRequest(changes=[CHANGE]), pb.CHARGE_KIND_LIMIT),
    ("RefundCharge", pb.RefundChargeRequest(account=ANN, release_id="rel"), pb.CHARGE_KIND_REFUNDED),
    ("BeginCurrency", pb.BeginCurrencyRequest(account=ROOT, unit_id=OTHER_UNIT), pb.CHARGE_KIND_CURRENCY),
    ("CloseAccount", pb.CloseAccountRequest(account=ANN), pb.CHARGE_KIND_CLOSE),
    ("ReopenAccount", pb.ReopenAccountRequest(account=ANN), pb.CHARGE_KIND_REOPEN),
)
# What leaves no entry: the log says who did it.
LOGGED: tuple[tuple[str, Any], ...] = (
    ("TrimJournal", pb.TrimJournalRequest(account={"path": ["nix"]}, exported="1")),
    ("BackUpLedger", pb.BackUpLedgerRequest()),
)
# They may be sent without a reason where none is required.
OPTIONAL = ("SetLimits", "BeginCurrency", "ResumeClock")


def configured(**administration: bool) -> LiveSettings:
    """Return settings with what administrators have to say."""
    limits = {"limit": {"information": 100, "calls": 100}}
    content = {
        "accounts": [{"path": ["acme"], **limits}, {"path": ["acme", "*"], **limits}],
        "administration": administration,
    }
    return LiveSettings(Settings(Configuration.model_validate(content)))


def filled(request: Any, request_id: str, clock: SteppedClock, **fields: str) -> Any:
    """Return a request with what each call of it needs."""
    found = type(request)()
    found.CopyFrom(request)
    found.request_id = request_id
    if isinstance(found, pb.ResumeClockRequest):
        found.true_time.FromMicroseconds(clock.now)
    for name, value in fields.items():
        setattr(found, name, value)
    return found


@asynccontextmanager
async def served(
    store: Store, settings: LiveSettings, security: Security | None = None, **folders: Any
) -> AsyncIterator[str]:
    """Serve the administrator, to everybody or behind TLS and an access file."""
    security = security or Security(SecurityOptions(), METHODS)
    server = new_server(interceptors=security.interceptors(NOTHING, reads_first=True))
    how: dict[str, Any] = {"server": server, "security": security, "tuning": UNHURRIED}
    serving = administering(HeldLedger(store), settings, "127.0.0.1:0", **how, **folders)
    async with serving as address:
        yield address


async def acted(store: Store, clock: SteppedClock, stub: Any, **fields: str) -> list[pb.JournalEntry]:
    """Do everything that an administrator can do; return the entries that this has made."""
    await store.apply(*charge("c", Cost(1, 1), on=ON, release_id="rel"))
    # The store's clock had jumped ahead, and was set right.
    clock.step(days=2)
    await store.apply(*charge("later", Cost(1, 1), on=ON[:1], account=COMPANY))
    clock.step(days=-2)
    for method, request, _ in ACTS:
        await getattr(stub, method)(filled(request, method, clock, **fields))
    listed = await stub.ReadJournal(pb.ReadJournalRequest(under=ROOT))
    return [each for each in listed.entries if each.kind != pb.CHARGE_KIND_DIRECT]


def test_every_method_that_changes_the_ledger_is_tried_here() -> None:
    """A new one too: it takes a request id, and says why."""
    service = pb.DESCRIPTOR.services_by_name["BudgetAdminService"]
    changing = {each.name for each in service.methods if "request_id" in each.input_type.fields_by_name}
    assert changing == {method for method, _, _ in ACTS}
    assert all("reason" in type(request).DESCRIPTOR.fields_by_name for _, request, _ in ACTS)
    reasoned = {each.name for each in service.methods if "reason" in each.input_type.fields_by_name}
    assert reasoned - changing == {method for method, _ in LOGGED}


async def test_every_act_has_a_reason_and_nobody_is_somebody(any_store: Store, clock: SteppedClock) -> None:
    """On every store. A service that asks nobody who they are says so; what was charged is nobody's act."""
    async with served(any_store, configured()) as address, grpc.aio.insecure_channel(address) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        found = await acted(any_store, clock, stub, reason="größer: 1/2 > x")
    assert [(kind, "unauthenticated", "größer: 1/2 > x") for *_, kind in ACTS] == [
        (each.kind, each.actor, each.reason) for each in found
    ]
    assert CHANGE.limit.information == found[1].limit_after.information
    charged = [each for _, each in await any_store.journal("acme", "", "", 99) if each.kind.is_charge]
    assert [("", "", "")] * 2 == [(each.actor, each.reason, each.change) for each in charged]
    verified = Verification()
    await verify(any_store, "acme", verified)
    assert [] == verified.differences


async def test_a_reason_is_required_where_the_configuration_says_so(clock: SteppedClock) -> None:
    """Without one every act is refused by name and changes nothing; elsewhere it may be left out of some."""
    for required in (True, False):
        store = MemoryStore(clock)
        await store.apply(*charge("c", Cost(1, 1), on=ON, release_id="rel"))
        settings = configured(requires_reason=required)
        async with served(store, settings) as address, grpc.aio.insecure_channel(address) as channel:
            stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
            for method, request, _ in ACTS:
                if method in OPTIONAL and not required:
                    continue
                error = await failure(getattr(stub, method)(filled(request, method, clock)))
                assert (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD") == (error.code, error.info.reason)
                assert error.message.startswith("reason must "), method
                assert ("requires_reason" in error.message) == (required and method in OPTIONAL), method
            for method, request in LOGGED:
                error = await failure(getattr(stub, method)(request))
                assert (error.info.reason == "INVALID_FIELD") == required, method
                two_lines = type(request)(reason="two\nlines")
                two_lines.MergeFrom(request)
                assert (await failure(getattr(stub, method)(two_lines))).info.reason == "INVALID_FIELD"
            wrong = filled(ACTS[1][1], "wrong", clock, reason="two\nlines")
            assert (await failure(stub.SetLimits(wrong))).code is grpc.StatusCode.INVALID_ARGUMENT
            assert 1 == len(store.entries)
            given = {"reason": "asked for"} if required else {}
            assert (await stub.SetLimits(filled(ACTS[1][1], "set", clock, **given))).version
            assert given.get("reason", "") == store.entries[-1].reason


async def test_a_retry_with_another_reason_is_another_request(clock: SteppedClock) -> None:
    """It is refused: the journal has the first one's reason."""
    store = MemoryStore(clock)
    async with served(store, configured()) as address, grpc.aio.insecure_channel(address) as channel:
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        first = filled(ACTS[1][1], "set", clock, reason="one")
        await stub.SetLimits(first)
        assert (await stub.SetLimits(first)).replayed
        error = await failure(stub.SetLimits(filled(ACTS[1][1], "set", clock, reason="two")))
    assert ("REQUEST_ID_REUSED", 1) == (error.info.reason, len(store.entries))


def guarded(folder: Path) -> tuple[Security, Authority, Issuer]:
    """Return the security of a service that knows its callers, and those who make certificates and tokens."""
    authority, issuer = Authority.new(folder), Issuer(folder)
    certificate, key = authority.server()
    access = folder / "access.yaml"
    access.write_text(f"""
certificates:
  "dns:ops.example.org": [read, admin]
  "email:ann@example.org": [admin]
  "uri:spiffe://example.org/app": [read]
jwt: {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: {AUDIENCE}}}
""")
    options = SecurityOptions(certificate, key, authority.ca_file, access)
    return Security(options, METHODS), authority, issuer


OPS, APP = dns("ops.example.org"), uri("spiffe://example.org/app")
# Names in the certificate, claims of the token (none: no token), and who that is.
CALLERS: tuple[tuple[tuple[x509.GeneralName, ...], dict[str, Any] | None, str], ...] = (
    ((OPS,), None, "dns:ops.example.org"),
    ((OPS, APP, dns("other.example.org")), None, "dns:ops.example.org"),
    ((OPS, email("ann@example.org")), None, "dns:ops.example.org email:ann@example.org"),
    ((APP,), {"sub": "ann", "gris_roles": ["admin"]}, "sub:ann"),
    ((OPS,), {"sub": "ann", "gris_roles": ["admin"]}, "dns:ops.example.org sub:ann"),
    ((OPS,), {"sub": "bob", "gris_roles": ["read"]}, "dns:ops.example.org"),
    ((OPS,), {"gris_roles": ["admin"]}, "dns:ops.example.org"),
    ((APP,), {"sub": "a dns:ops.example.org", "gris_roles": ["admin"]}, "sub:a%20dns:ops.example.org"),
    ((APP,), {"sub": "a%20\u202eé\n", "gris_roles": ["admin"]}, "sub:a%2520%E2%80%AEé%0A"),
    ((APP,), {"sub": "a\ufe0f\u3164\u2800", "gris_roles": ["admin"]}, "sub:a%EF%B8%8F%E3%85%A4%E2%A0%80"),
)


@pytest.mark.parametrize(("names", "claims", "expected"), CALLERS)
async def test_the_actor_is_who_was_authenticated(
    tmp_path: Path, clock: SteppedClock, names: Any, claims: dict[str, Any] | None, expected: str
) -> None:
    """By the names that have the role, of the certificate and of the token; a gateway's word for its caller is none."""
    security, authority, issuer = guarded(tmp_path)
    shown = authority.client(*names)
    token = None if claims is None else issuer.token_file(AUDIENCE, **claims)
    credentials = Credentials(shown.ca_file, shown.certificate_file, shown.key_file, token)
    async with (
        served(store := MemoryStore(clock), configured(), security) as address,
        open_channel(Endpoint(address, credentials)) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        request = filled(ACTS[1][1], "set", clock, reason="by somebody else")
        await stub.SetLimits(request, metadata=(("gris-caller", "0" * 32), ("actor", "mallory")))
    assert expected == store.entries[-1].actor


@pytest.mark.parametrize("subject", [None, "", "  ", 7, "a" * 253])
async def test_a_token_that_does_not_say_whose_it_is_changes_nothing(
    tmp_path: Path, clock: SteppedClock, subject: object
) -> None:
    """Empty never passes for somebody: every act is refused, and reading is not."""
    security, authority, issuer = guarded(tmp_path)
    shown = authority.client(APP)
    token = issuer.token_file(AUDIENCE, sub=subject, gris_roles=["admin"])
    credentials = Credentials(shown.ca_file, shown.certificate_file, shown.key_file, token)
    await (store := MemoryStore(clock)).apply(*charge("c", Cost(1, 1), on=ON, release_id="rel"))
    async with (
        served(store, configured(), security) as address,
        open_channel(Endpoint(address, credentials)) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        for method, request, _ in ACTS:
            error = await failure(getattr(stub, method)(filled(request, method, clock, reason="x")))
            # A library may refuse a subject that is no text.
            assert error.info.reason in ("CALLER_UNNAMED", "TOKEN_REFUSED"), method
            assert error.code is grpc.StatusCode.UNAUTHENTICATED
        for method, request in LOGGED:
            assert (await failure(getattr(stub, method)(request))).info.reason == error.info.reason, method
        assert error.info.reason == "CALLER_UNNAMED" or subject == 7
        if subject != 7:
            assert 1 == len((await stub.ReadJournal(pb.ReadJournalRequest(under=ROOT))).entries)
    assert 1 == len(store.entries)


async def test_the_log_says_who_trimmed_or_made_a_backup(
    tmp_path: Path, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """And why, and what became of it; no path is in it."""
    security, authority, _ = guarded(tmp_path)
    shown = authority.client(OPS)
    credentials = Credentials(shown.ca_file, shown.certificate_file, shown.key_file)
    (backups := tmp_path / "backups").mkdir()
    async with (
        closing(SqliteStore.open(tmp_path / "ledger.db", clock)) as store,
        served(store, configured(), security, backups=backups) as address,
        open_channel(Endpoint(address, credentials)) as channel,
    ):
        stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
        await store.apply(*charge("c", Cost(1, 1), on=ON, release_id="rel"))
        clock.step(days=60)
        with caplog.at_level(logging.INFO):
            await stub.TrimJournal(pb.TrimJournalRequest(account=ROOT, exported="1", reason="end of month"))
            copied = await stub.BackUpLedger(pb.BackUpLedgerRequest())
    who = {"actor": "dns:ops.example.org", "reason": "end of month"}
    logged = {"file": copied.file, "bytes": copied.bytes, **who, "reason": ""}
    assert [each for each in logged_events(caplog) if each[0].startswith("ledger.")] == [
        ("ledger.trimmed", {"root": "acme", "entries": 1, **who}),
        ("ledger.backed_up", logged),
    ]
    assert str(tmp_path) not in everything_logged(caplog)


def test_the_local_user_is_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the environment's, which the user writes; a number where it has no name."""
    for name in ("LOGNAME", "USER", "USERNAME", "LNAME", "SUDO_USER"):
        monkeypatch.setenv(name, "mallory")
    assert f"local:{pwd.getpwuid(os.getuid()).pw_name}" == local_actor()
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert "local:4000000000" == local_actor()


BUDGET = """
accounts: [{path: [acme], limit: {information: 9, calls: 9}}]
administration: {requires_reason: true}
"""


async def test_a_restored_ledger_is_confirmed_by_somebody_and_for_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What counts as lost has the user who ran the command; without a reason it is refused where one is required."""
    (tmp_path / "budget.yaml").write_text(BUDGET)
    store = f"sqlite:{tmp_path}/ledger.db"
    async with closing(await open_store(store, allow_volatile=False)) as opened:
        await opened.apply(*charge("c", Cost(1, 1), on=ON[:1], account=COMPANY))
    words = ["--config", f"{tmp_path}/budget.yaml", "--store", store]
    confirming = [*words, "--confirm-restored", "--spend-every-budget"]
    assert 2 == await asyncio.to_thread(main, confirming)
    assert "--reason: must say why" in capsys.readouterr().err
    assert 2 == await asyncio.to_thread(main, [*words, "--validate", "--reason", "x"])
    assert "--confirm-restored" in capsys.readouterr().err
    assert 0 == await asyncio.to_thread(main, [*confirming, "--reason", "the disk died"])
    async with closing(await open_store(store, allow_volatile=False)) as opened:
        (*_, lost) = [entry for _, entry in await opened.journal("acme", "", "", 9)]
    assert (EntryKind.LOST, local_actor(), "the disk died") == (lost.kind, lost.actor, lost.reason)


def test_an_empty_section_is_refused(tmp_path: Path) -> None:
    """Where its key is commented out, no reason would be required any more."""
    path = tmp_path / "budget.yaml"
    path.write_text("accounts: [{path: [acme], limit: {information: 9, calls: 9}}]\nadministration:\n")
    with pytest.raises(ConfigurationError, match="administration: expected keys and their values"):
        load_configuration(path)


CLOSING = CloseAccount(actor="sub:ann", account=ANALYST, request_id="close", reason="left")


@dataclass(frozen=True)
class Ledger:
    """A ledger that is opened, closed, changed by hand as the owner of the store can, and opened again."""

    open: Callable[[], Awaitable[Store]]
    change: Callable[[str, str], Awaitable[Any]]


def in_sqlite(path: Path, clock: SteppedClock) -> Ledger:
    """Return one in a file."""

    async def opened() -> Store:
        return SqliteStore.open(path, clock)

    async def change(column: str, value: str) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("DROP TRIGGER journal_is_not_changed")
            forged = (
                "UPDATE journal SET text = json_set(text, ?, ?) WHERE json_extract(text, '$.kind') = 'close'"
            )
            connection.execute(forged, (f"$.{column}", value))

    return Ledger(opened, change)


def in_postgres(server: PostgresServer, clock: SteppedClock) -> Ledger:
    """Return one in PostgreSQL."""
    server.forget()

    async def change(column: str, value: str) -> None:
        await asyncio.to_thread(server.execute, "ALTER TABLE gris.journal DISABLE TRIGGER USER")
        query = sql.SQL(
            "UPDATE gris.journal SET text = jsonb_set(text::jsonb, {}, {}) WHERE text::json ->> 'kind' = 'close'"
        )
        forged = query.format(sql.Literal(f"{{{column}}}"), sql.Literal(json.dumps(value)))
        await asyncio.to_thread(server.execute, forged)

    return Ledger(lambda: PostgresStore.open(server.address, clock=clock, tuning=UNHURRIED), change)


def in_redis(server: RedisServer, clock: SteppedClock) -> Ledger:
    """Return one in Redis, whose streams can be replaced, with the same positions."""

    async def change(column: str, value: str) -> None:
        client: Any = Redis.from_url(server.address, decode_responses=True)
        entries = await client.xrange("gris:{acme}:journal")
        await client.delete("gris:{acme}:journal")
        for position, fields in entries:
            entry = json.loads(fields["entry"])
            forged = {column: value} if entry["kind"] == "close" else {}
            await client.xadd("gris:{acme}:journal", {"entry": json.dumps(entry | forged)}, id=position)
        await client.aclose()

    return Ledger(lambda: RedisStore.open(server.address, clock=clock, tuning=UNHURRIED), change)


@pytest_asyncio.fixture(params=["sqlite", "redis", "postgres"])
async def ledger(request: pytest.FixtureRequest, tmp_path: Path, clock: SteppedClock) -> Ledger:
    """Give a ledger in each store in turn, in which an account was closed."""
    if request.param == "sqlite":
        found = in_sqlite(tmp_path / "ledger.db", clock)
    elif request.param == "postgres":
        found = in_postgres(request.getfixturevalue("shared_postgres"), clock)
    else:
        server: RedisServer = request.getfixturevalue("shared_redis")
        await empty(server.address)
        found = in_redis(server, clock)
    async with closing(await found.open()) as store:
        await store.apply(*charge("c", Cost(1, 1), on=ON, release_id="rel"))
        await store.apply(CLOSING, NO_LIMITS)
    return found


async def differences(store: Store) -> list[Sum]:
    """Verify the ledger; return what differs."""
    await verify(store, "acme", found := Verification())
    return [each.sum for each in found.differences]


@pytest.mark.parametrize(
    ("column", "value"), [("actor", "sub:bob"), ("reason", "asked to"), ("actor", "sub:ann ")]
)
async def test_who_changes_an_actor_or_a_reason_in_the_store_is_found(
    ledger: Ledger, column: str, value: str
) -> None:
    """In every store: the digest that the root keeps is of other entries."""
    async with closing(await ledger.open()) as store:
        assert [] == await differences(store)
    await ledger.change(column, value)
    async with closing(await ledger.open()) as store:
        assert [Sum.JOURNAL] == await differences(store)


async def test_who_removes_an_actor_from_the_store_is_found(ledger: Ledger) -> None:
    """In every store: an act of nobody cannot be read."""
    await ledger.change("actor", "")
    async with closing(await ledger.open()) as store:
        with pytest.raises(StoreDamagedError) as caught:
            await differences(store)
        assert "journal" == caught.value.table

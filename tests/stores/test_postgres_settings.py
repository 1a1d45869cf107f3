"""Which PostgreSQL may keep a ledger, how it is reached, and what is made in it at the start."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import traceback
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from psycopg import sql

from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.opening import open_store
from budget_service.stores.postgres import schema as postgres_schema
from budget_service.stores.postgres.store import PostgresStore
from budget_service.tuning import Tuning
from tests.support.budget_samples import (
    charge,
)
from tests.support.ledger_stores import UNHURRIED, closing
from tests.support.postgres_server import PostgresServer

PASSWORD = "h#s/h?w@o:r[d]%"  # noqa: S105 - of a server that lives for one test
ENCODED = "h%23s%2Fh%3Fw%40o%3Ar%5Bd%5D%25"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("synchronous_commit=off", "may forget charges .synchronous_commit is off."),
        ("synchronous_commit=local", "may forget charges .synchronous_commit is local."),
        ("fsync=off", "set fsync and full_page_writes to on"),
        ("full_page_writes=off", "set fsync and full_page_writes to on"),
    ],
)
async def test_a_postgres_that_may_forget_is_refused_unless_that_is_wanted(
    own_postgres: PostgresServer, setting: str, complaint: str
) -> None:
    """Each of the settings that what was acknowledged depends on."""
    own_postgres.restart(setting)
    with pytest.raises(StoreUnusableError, match=complaint):
        await PostgresStore.open(own_postgres.address)
    async with closing(await PostgresStore.open(own_postgres.address, allow_volatile=True)) as store:
        await store.check()


async def test_a_postgres_that_is_read_only_is_refused_whatever_is_wanted(
    own_postgres: PostgresServer,
) -> None:
    """The error says so when the store is opened, not at the first charge."""
    own_postgres.restart("default_transaction_read_only=on")
    with pytest.raises(StoreUnusableError, match="takes no writes"):
        await PostgresStore.open(own_postgres.address, allow_volatile=True)


async def test_a_standby_is_refused(own_postgres: PostgresServer) -> None:
    """A server in recovery answers questions, but a charge cannot be kept there."""
    own_postgres.stop()
    signal_file = own_postgres.folder / "standby.signal"
    signal_file.touch()
    try:
        own_postgres.start()
        with pytest.raises(StoreUnusableError, match="standby"):
            await PostgresStore.open(own_postgres.address)
    finally:
        own_postgres.stop()
        signal_file.unlink()


async def test_a_setting_that_turns_bad_is_reported_and_no_new_connection_is_used(
    own_postgres: PostgresServer,
) -> None:
    """By the check, and so by health; and by each connection that is made."""
    async with closing(await PostgresStore.open(own_postgres.address)) as store:
        own_postgres.execute("ALTER ROLE gris SET synchronous_commit = off")
        try:
            await store.check()
            own_postgres.hang_up()
            with pytest.raises(StoreUnavailableError, match="may forget"):
                await store.apply(*charge("c"))
            with pytest.raises(StoreUnusableError, match="may forget"):
                await store.check()
        finally:
            own_postgres.execute("ALTER ROLE gris RESET synchronous_commit")
        await store.check()


@pytest.mark.parametrize("table", ["gris.rows", "gris.journal"])
async def test_a_table_that_another_session_has_locked_is_reported(
    own_postgres: PostgresServer, table: LiteralString
) -> None:
    """Also by a lock that readers pass, such as that of CREATE INDEX: heartbeats are answered, charges are not."""
    tuning = Tuning(postgres_lock_seconds=0.1)
    async with closing(await PostgresStore.open(own_postgres.address, tuning=tuning)) as store:
        await store.apply(*charge("c"))
        with psycopg.connect(own_postgres.address) as other:
            other.execute(f"LOCK {table} IN SHARE MODE")
            with pytest.raises(StoreUnavailableError, match="55P03"):
                await store.check()
            await store.ping()
        await store.check()


async def test_a_database_in_another_encoding_is_refused(shared_postgres: PostgresServer) -> None:
    """An id that it cannot write would be refused much later."""
    shared_postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    address = shared_postgres.address.replace("/postgres?", "/latin?")
    with pytest.raises(StoreUnusableError, match="UTF8"):
        await PostgresStore.open(address)


async def test_many_may_start_at_once_on_an_empty_database(shared_postgres: PostgresServer) -> None:
    """One makes the tables, the others find them."""
    shared_postgres.forget()
    stores = await asyncio.gather(
        *(PostgresStore.open(shared_postgres.address, tuning=UNHURRIED) for _ in range(8))
    )
    answers = await asyncio.gather(*(store.apply(*charge("same")) for store in stores))
    assert sum(answer.replayed for answer in answers) == 7
    for store in stores:
        await store.close()


async def test_tables_that_are_gone_are_made_anew_by_the_next_start(shared_postgres: PostgresServer) -> None:
    """Until then nothing is allowed."""
    shared_postgres.forget()
    async with closing(await PostgresStore.open(shared_postgres.address, tuning=UNHURRIED)) as store:
        await store.apply(*charge("c"))
        shared_postgres.execute("DROP SCHEMA gris CASCADE")
        with pytest.raises(StoreUnavailableError, match=r"42\w+|3F000"):
            await store.apply(*charge("d"))
        async with closing(await PostgresStore.open(shared_postgres.address, tuning=UNHURRIED)):
            assert not (await store.apply(*charge("d"))).replayed


async def test_a_start_does_not_wait_for_ever_for_another_one(shared_postgres: PostgresServer) -> None:
    """Somebody else holds the lock of the installation and never lets go."""
    with psycopg.connect(shared_postgres.address) as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", (postgres_schema.INSTALLATION_LOCK,))
        with pytest.raises(StoreUnavailableError, match="cannot be installed"):
            await PostgresStore.open(shared_postgres.address, tuning=Tuning(installation_seconds=0.3))


@pytest.mark.parametrize(
    ("tuning", "code"),
    [
        (dataclasses.replace(UNHURRIED, postgres_statement_seconds=0.1), "57014"),
        (dataclasses.replace(UNHURRIED, postgres_lock_seconds=0.1), "55P03"),
    ],
    ids=["statement", "lock"],
)
async def test_sessions_have_the_time_outs_of_the_tuning(
    shared_postgres: PostgresServer, tuning: Tuning, code: str
) -> None:
    """PostgreSQL gives up, so that nothing was changed, long before the service would."""
    shared_postgres.forget()
    async with closing(await PostgresStore.open(shared_postgres.address, tuning=UNHURRIED)) as unhurried:
        await unhurried.apply(*charge("c"))
        async with closing(await PostgresStore.open(shared_postgres.address, tuning=tuning)) as store:
            with psycopg.connect(shared_postgres.address) as other:
                other.execute("SELECT FROM gris.rows FOR UPDATE")
                with pytest.raises(StoreUnavailableError, match=code):
                    await store.apply(*charge("d"))
        # In so short a time a busy machine may keep a sound charge from its commit, too.
        assert not (await unhurried.apply(*charge("d"))).replayed


async def test_a_user_who_may_not_make_the_tables_is_told_so(shared_postgres: PostgresServer) -> None:
    """In one sentence, at the start."""
    shared_postgres.forget()
    shared_postgres.execute("CREATE ROLE visitor LOGIN")
    with pytest.raises(StoreUnusableError, match="may not create"):
        await PostgresStore.open(shared_postgres.address.replace("gris@", "visitor@"))


async def test_a_password_is_percent_encoded(own_postgres: PostgresServer) -> None:
    """Every character that an address could mistake for its own; a wrong password is refused and not shown."""
    own_postgres.execute(sql.SQL("CREATE ROLE clerk LOGIN PASSWORD {}").format(sql.Literal(PASSWORD)))
    own_postgres.execute("GRANT CREATE ON DATABASE postgres TO clerk")
    rules = own_postgres.folder / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("host all clerk 127.0.0.1/32 scram-sha-256\n" + before)
    try:
        own_postgres.restart()
        address = own_postgres.address.replace("gris@", f"clerk:{ENCODED}@")
        async with closing(await PostgresStore.open(address)) as store:
            assert not (await store.apply(*charge("c"))).replayed
        with pytest.raises(StoreUnavailableError, match="authentication failed") as error:
            await PostgresStore.open(address.replace("%25", "x"))
        assert "h#s" not in str(error.value)
    finally:
        rules.write_text(before)
        own_postgres.forget()


ENCRYPTED = "SELECT pid FROM pg_stat_ssl WHERE ssl AND pid <> pg_backend_pid() ORDER BY pid"


async def test_sslmode_is_passed_on(own_postgres: PostgresServer) -> None:
    """With verify-full the server's certificate is checked; without TLS at the server, `require` refuses it."""
    with pytest.raises(StoreUnavailableError, match="SSL"):
        await PostgresStore.open(f"{own_postgres.address}&sslmode=require")
    authority = certificate_for(own_postgres.folder, "127.0.0.1")
    own_postgres.restart("ssl=on", "ssl_cert_file=tls.crt", "ssl_key_file=tls.key")
    address = f"{own_postgres.address}&sslmode=verify-full&sslrootcert={authority}"
    async with closing(await PostgresStore.open(address)) as store:
        await store.apply(*charge("c"))
        # One for charges, one for heartbeats.
        assert len(before := own_postgres.execute(ENCRYPTED)) == 2
        await store.apply(*charge("d"))
        assert own_postgres.execute(ENCRYPTED) == before
    with pytest.raises(StoreUnavailableError, match="certificate"):
        await PostgresStore.open(address.replace("@127.0.0.1", "@localhost"))


def certificate_for(folder: Path, address: str) -> Path:
    """Write a certificate for an address, signed by its own key, as PostgreSQL's; return its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gris test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    for file, content in (("tls.key", secret), ("tls.crt", certificate.public_bytes(encoding))):
        (folder / file).write_bytes(content)
        (folder / file).chmod(0o600)
        os.chown(folder / file, folder.stat().st_uid, folder.stat().st_gid)
    public = folder.parent / "authority.crt"
    public.write_bytes(certificate.public_bytes(encoding))
    return public


@pytest.mark.slow
@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hush#word@127.0.0.1:1/db",
        "postgresql://u:12345#word@127.0.0.1:1/db",
        "postgresql://hush#word@127.0.0.1:1/db",
        "postgresql://u:hush/word@127.0.0.1:1/db",
        "postgresql://u:12345/word@127.0.0.1:1/db",
        "postgresql://u:hush?word@127.0.0.1:1/db",
        "postgresql://u:12345?word@127.0.0.1:1/db",
        "postgresql://u:hush@word@127.0.0.1:1/db",
        "postgresql://u:hush[word@127.0.0.1:1/db",
        "postgresql://u:hush\u2100word@127.0.0.1:1/db",
        "postgresql://u:hush%word@127.0.0.1:1/db",
        "postgresql://u:hush%00word@127.0.0.1:1/db",
        "postgresql://u:hush-word@127.0.0.1:notaport/db",
        "postgresql://u:hush-word@127.0.0.1:1/db?hush",
        "postgresql://u:hush-word@127.0.0.1:1/db?hush=word@",
        "postgresql://u:hush-word@127.0.0.1:1/db?connect_timeout=hush",
        "postgresql://u:hush%23word@127.0.0.1:1/db",
    ],
)
async def test_no_error_shows_any_part_of_a_password(address: str) -> None:
    """Not even where an unescaped character makes a piece of it look like a port or a host."""
    with pytest.raises((StoreUnavailableError, StoreUnusableError)) as error:
        await open_store(address, allow_volatile=False)
    # Python shows what an exception was raised from, so that nothing may hang there either.
    shown = "".join(traceback.format_exception(error.value)[-1:]) + str(error.value.__cause__)
    assert not any(word in shown for word in ("hush", "word@", "12345", "notaport"))
    assert "%23" in shown or "port 1 failed" in shown

"""Many accounts at once: the rows of one account that has charged, copied in the store under other names.

Which columns a table has does not matter here, only which of them name an account or a request.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import Any

import psycopg
from redis import Redis

from tests.support.postgres_pair import REQUIRED

ROOT = "bench"
ANALYSTS = 1000
TEMPLATE = 0

ACCOUNT = f"'{ROOT}/c' || (i / {ANALYSTS}) || '/a' || (i % {ANALYSTS})"
COMPANY = f"'{ROOT}/c' || i"
REQUEST = "'filled-' || i"

# Of each kind of rows: which one is copied, the names of the copies, and whether there is one for each company.
ROW_COPIES = (
    ("balances", f"{ROOT}/c0/a0", ACCOUNT, False),
    ("balances", f"{ROOT}/c0", COMPANY, True),
    ("outcomes", "template", REQUEST, False),
)

NUMBERS = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :last) SELECT i FROM n)"

REDIS_BATCH = 20_000
REDIS_COPIES = """
local rows, names, journal = KEYS[1], KEYS[2], KEYS[3]
local root, from, to, analysts = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local leaf = redis.call('GET', rows .. 'balances\\t' .. root .. '/c0/a0')
local company = redis.call('GET', rows .. 'balances\\t' .. root .. '/c0')
local entry = redis.call('XRANGE', journal, '-', '+', 'COUNT', 1)[1][2][2]
local outcome = redis.call('GET', rows .. 'outcomes\\ttemplate')
local function put(name, text)
  redis.call('SET', rows .. name, text)
  redis.call('ZADD', names, 0, name)
end
for i = from, to do
  put('balances\\t' .. root .. '/c' .. math.floor(i / analysts) .. '/a' .. (i % analysts), leaf)
  if i % analysts == 0 then put('balances\\t' .. root .. '/c' .. math.floor(i / analysts), company) end
  redis.call('XADD', journal, i + 1, 'entry', entry)
  redis.call('SET', rows .. 'outcomes\\tfilled-' .. i, outcome)
end
local record = redis.call('GET', rows .. 'roots')
redis.call('SET', rows .. 'roots', (string.gsub(record, '"entries":%d+', '"entries":' .. (to + 1))))
"""


def account_of(number: int) -> tuple[str, str, str]:
    """Return the path of an account; number TEMPLATE is the one that is copied."""
    return ROOT, f"c{number // ANALYSTS}", f"a{number % ANALYSTS}"


def fill(address: str, accounts: int) -> None:
    """Give the ledger of a store, in which only the template has charged, so many accounts."""
    kind, _, place = address.partition(":")
    match kind:
        case "sqlite":
            _fill_sqlite(place, accounts)
        case "redis":
            _fill_redis(address, accounts)
        case _:
            _fill_postgres(address, accounts)


def _fill_sqlite(path: str, accounts: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        for kind, template, name, for_companies in ROW_COPIES:
            last = {"last": _last(accounts, for_companies)}
            connection.execute(
                f"INSERT INTO rows SELECT root, '{kind}\t' || {name}, text, keep_until "  # noqa: S608 - constants
                f"FROM rows, {NUMBERS} WHERE root = '{ROOT}' AND key = '{kind}\t{template}'",
                last,
            )
        connection.execute(
            "INSERT INTO journal (root, number, text) SELECT root, i + 1, text "  # noqa: S608 - constants
            f"FROM journal, {NUMBERS} WHERE root = '{ROOT}' AND number = 1",
            {"last": accounts - 1},
        )
        counted = (
            "UPDATE rows SET text = json_set(text, '$.record.entries', ?) WHERE root = ? AND key = 'roots'"
        )
        connection.execute(counted, (accounts, ROOT))
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _fill_postgres(address: str, accounts: int) -> None:
    with closing(psycopg.connect(address.removesuffix(REQUIRED), autocommit=True)) as connection:
        for kind, template, name, for_companies in ROW_COPIES:
            numbers = f"generate_series(1, {_last(accounts, for_companies)}) AS numbers(i)"
            # Everything here is a constant of this module.
            copying: Any = (
                f"INSERT INTO gris.rows SELECT root, '{kind}\t' || {name}, text, keep_until "  # noqa: S608
                f"FROM gris.rows, {numbers} WHERE root = '{ROOT}' AND key = '{kind}\t{template}'"
            )
            connection.execute(copying)
        connection.execute(
            "INSERT INTO gris.journal SELECT root, i + 1, text FROM gris.journal, generate_series(1, %s) AS numbers(i) "
            "WHERE root = %s AND number = 1",
            (accounts - 1, ROOT),
        )
        connection.execute(
            "UPDATE gris.rows SET text = jsonb_set(text::jsonb, '{record,entries}', to_jsonb(%s::bigint)) "
            "WHERE root = %s AND key = 'roots'",
            (accounts, ROOT),
        )
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def _last(accounts: int, for_companies: bool) -> int:
    return (accounts - 1) // ANALYSTS if for_companies else accounts - 1


def _fill_redis(address: str, accounts: int) -> None:
    keys = [f"gris:{{{ROOT}}}:{name}" for name in ("row:", "names", "journal")]
    with closing(Redis.from_url(address, protocol=2)) as client:
        for first in range(1, accounts, REDIS_BATCH):
            last = min(first + REDIS_BATCH, accounts) - 1
            client.eval(REDIS_COPIES, len(keys), *keys, ROOT, str(first), str(last), str(ANALYSTS))
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"]:
            time.sleep(0.1)

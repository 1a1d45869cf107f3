"""The tables of a release store, and every statement on them, for SQLite and PostgreSQL alike.

Parameters are written `:name`; the PostgreSQL store writes them its own way. Times are microseconds since 1970, by the
ledger's clock except for `released_at`.
"""

from __future__ import annotations

VERSION = 2

# {id} and {bytes} are what differs between the databases.
TABLES = (
    "CREATE TABLE gris_release_store_schema (version INTEGER NOT NULL)",
    f"INSERT INTO gris_release_store_schema (version) VALUES ({VERSION})",  # noqa: S608 - a constant
    """CREATE TABLE gris_release_store_keys (key_id TEXT PRIMARY KEY, index_key {bytes} NOT NULL)""",
    """CREATE TABLE gris_release_store_time (
        one INTEGER PRIMARY KEY CHECK (one = 1), ledger_time BIGINT NOT NULL, last_key_id TEXT NOT NULL)""",
    """CREATE TABLE gris_releases (
        query {bytes} PRIMARY KEY, key_id TEXT NOT NULL, noise_key_id TEXT NOT NULL, is_fixed INTEGER NOT NULL,
        written_at BIGINT NOT NULL, content {bytes} NOT NULL)""",
    """CREATE TABLE gris_release_payments (
        query {bytes} NOT NULL, account {bytes} NOT NULL, key_id TEXT NOT NULL, window_end BIGINT,
        content {bytes} NOT NULL, PRIMARY KEY (query, account))""",
    """CREATE TABLE gris_release_receipts (
        id {id}, account {bytes} NOT NULL, query {bytes}, same {bytes} NOT NULL, request {bytes},
        released_at BIGINT NOT NULL, key_id TEXT NOT NULL, content {bytes} NOT NULL)""",
    "CREATE INDEX gris_receipts_by_account ON gris_release_receipts (account, id)",
    "CREATE INDEX gris_receipts_by_time ON gris_release_receipts (released_at)",
    "CREATE INDEX gris_receipts_by_query ON gris_release_receipts (query)",
    "CREATE UNIQUE INDEX gris_receipts_by_request ON gris_release_receipts (account, request)",
    "INSERT INTO gris_release_store_time (one, ledger_time, last_key_id) VALUES (1, 0, '')",
)

SCHEMA_VERSION = "SELECT version FROM gris_release_store_schema"
INDEX_KEYS = "SELECT key_id, index_key FROM gris_release_store_keys"
ADD_INDEX_KEY = """INSERT INTO gris_release_store_keys (key_id, index_key) VALUES (:key_id, :index_key)
    ON CONFLICT (key_id) DO NOTHING"""
REMOVE_INDEX_KEY = "DELETE FROM gris_release_store_keys WHERE key_id = :key_id"
KEY_IDS = """SELECT key_id FROM gris_releases UNION SELECT key_id FROM gris_release_payments
    UNION SELECT key_id FROM gris_release_receipts"""

FIND = """SELECT r.key_id, r.is_fixed, r.content, p.key_id, p.content FROM gris_releases r
    LEFT JOIN gris_release_payments p ON p.query = r.query AND p.account = :account WHERE r.query = :query"""
KEEP = """INSERT INTO gris_releases (query, key_id, noise_key_id, is_fixed, written_at, content)
    SELECT :query, :key_id, :noise_key_id, :is_fixed, ledger_time, :content FROM gris_release_store_time WHERE one = 1
    ON CONFLICT (query) DO NOTHING"""
NOTE_NOISE_KEY = """UPDATE gris_release_store_time SET last_key_id = :noise_key_id
    WHERE one = 1 AND last_key_id <> :noise_key_id"""
MARK_PAID = """INSERT INTO gris_release_payments (query, account, key_id, window_end, content)
    SELECT query, :account, :key_id, CAST(:window_end AS BIGINT), :content FROM gris_releases WHERE query = :query
    ON CONFLICT (query, account) DO UPDATE
    SET key_id = excluded.key_id, window_end = excluded.window_end, content = excluded.content
    WHERE gris_release_payments.window_end IS NOT NULL
    AND (excluded.window_end IS NULL OR excluded.window_end >= gris_release_payments.window_end)"""
LEDGER_TIME = "SELECT ledger_time FROM gris_release_store_time WHERE one = 1"
ADVANCE = "UPDATE gris_release_store_time SET ledger_time = :time WHERE one = 1 AND ledger_time < :time"

REMOVE_REPLACED = """DELETE FROM gris_release_receipts
    WHERE account = :account AND ((same = :same AND request IS NULL) OR request = :request)"""
ADD_RECEIPT = """INSERT INTO gris_release_receipts (account, query, same, request, released_at, key_id, content)
    VALUES (:account, :query, :same, :request, :released_at, :key_id, :content)"""
REMOVE_OLD_RECEIPTS = "DELETE FROM gris_release_receipts WHERE released_at < :oldest"
REMOVE_SURPLUS = """DELETE FROM gris_release_receipts WHERE account = :account AND id <= (
    SELECT id FROM gris_release_receipts WHERE account = :account ORDER BY id DESC LIMIT 1 OFFSET :most)"""
RECEIPT_BYTES = "SELECT COALESCE(SUM(LENGTH(content)), 0) FROM gris_release_receipts"
# Each receipt is ranked by the size of itself and all newer ones of its account. The largest are deleted first, so that
# the accounts that keep most lose their oldest receipts, until they keep no more than others.
MAKE_ROOM = """WITH
    sized AS MATERIALIZED (SELECT id, account, LENGTH(content) AS size FROM gris_release_receipts),
    counted AS (SELECT id, size, SUM(size) OVER (PARTITION BY account ORDER BY id DESC) AS kept FROM sized),
    ordered AS (
        SELECT id, size, SUM(size) OVER (ORDER BY kept DESC, id ROWS UNBOUNDED PRECEDING) AS free FROM counted)
    DELETE FROM gris_release_receipts WHERE id IN (SELECT id FROM ordered WHERE free - size < :missing)"""
RECEIPT = """SELECT t.id, t.key_id, t.content, r.query, r.key_id, r.is_fixed, r.content
    FROM gris_release_receipts t LEFT JOIN gris_releases r ON r.query = t.query
    WHERE t.account = :account AND t.request = :request AND t.released_at >= :oldest"""
RECEIPTS = """SELECT t.id, t.key_id, t.content, r.query, r.key_id, r.is_fixed, r.content
    FROM gris_release_receipts t LEFT JOIN gris_releases r ON r.query = t.query
    WHERE t.account = :account AND t.id < :before AND t.released_at >= :oldest ORDER BY t.id DESC LIMIT :most"""

DATE_UNDATED = """UPDATE gris_releases SET written_at = (SELECT ledger_time FROM gris_release_store_time)
    WHERE written_at = 0"""
# As `retention.is_removable` says it, for all releases at once.
_REMOVABLE = """SELECT r.query FROM gris_releases r, gris_release_store_time s
    WHERE NOT (r.is_fixed = 1 AND r.noise_key_id = s.last_key_id)
    AND NOT EXISTS (SELECT 1 FROM gris_release_receipts t WHERE t.query = r.query)
    AND NOT EXISTS (SELECT 1 FROM gris_release_payments p WHERE p.query = r.query
        AND (p.window_end IS NULL OR p.window_end > s.ledger_time - :kept_after_window))
    AND (EXISTS (SELECT 1 FROM gris_release_payments p WHERE p.query = r.query)
        OR (r.written_at > 0 AND r.written_at <= s.ledger_time - :unpaid_kept))"""
REMOVE_RELEASES = f"DELETE FROM gris_releases WHERE query IN ({_REMOVABLE})"  # noqa: S608 - no value is spliced in
REMOVE_PAYMENTS = """DELETE FROM gris_release_payments
    WHERE NOT EXISTS (SELECT 1 FROM gris_releases r WHERE r.query = gris_release_payments.query)"""

COUNTS = """SELECT (SELECT COUNT(*) FROM gris_releases), (SELECT COUNT(*) FROM gris_releases r WHERE NOT EXISTS (
    SELECT 1 FROM gris_release_payments p WHERE p.query = r.query))"""

# Records of earlier keys, in batches, so that they can be written with the current one.
OTHER_RELEASES = "SELECT query, key_id, content FROM gris_releases WHERE key_id <> :key_id LIMIT :most"
OTHER_PAYMENTS = """SELECT query, account, key_id, content FROM gris_release_payments WHERE key_id <> :key_id
    LIMIT :most"""
OTHER_RECEIPTS = """SELECT id, account, query, key_id, content FROM gris_release_receipts WHERE key_id <> :key_id
    LIMIT :most"""
REWRITE_RELEASE = "UPDATE gris_releases SET key_id = :key_id, content = :content WHERE query = :query"
REWRITE_PAYMENT = """UPDATE gris_release_payments SET key_id = :key_id, content = :content
    WHERE query = :query AND account = :account"""
REWRITE_RECEIPT = "UPDATE gris_release_receipts SET key_id = :key_id, content = :content WHERE id = :id"

"""How long the service waits, how much it takes at a time, and how much it keeps: one frozen value.

`server.process` puts the program together with the defaults. Tests pass smaller values.
"""

from __future__ import annotations

from dataclasses import dataclass

from budget_service.ledger.state import MAX_EXPIRED_AT_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Time-outs, lengths of pages and bounds of the stores and of the server.

    Attributes:
        redis_answer_seconds: How long Redis may take for an answer.
        postgres_answer_seconds: How long PostgreSQL may take for an answer.
        postgres_statement_seconds: How long one statement of it may take. PostgreSQL gives up before the service does,
            so that most of what takes too long is known to have had no effect.
        postgres_lock_seconds: How long a statement of it waits for a lock, and how long a service that is held up
            within a transaction keeps its lock.
        installation_seconds: How long a start waits for another process that installs the ledger in PostgreSQL.
        start_check_seconds: How long a start looks for damage in a SQLite file. A gigabyte takes one to four seconds;
            a table that was begun is finished.
        slow_disk_seconds: A commit to a SQLite file that takes longer counts as a silent store.
        hanging_disk_seconds: After this the callers of such a commit get an error. It is less than the two seconds that
            a client gives one attempt.
        kept_balances: Of how many levels, roots or reservations the SQLite store remembers what it has read. They take
            about 8 MB and are dropped in a few milliseconds; SQLite's own cache has them still.
        expired_at_once: How many lapsed reservations one request ends.
        running_calls: How many calls may run before the service answers that it is overloaded. One root account may
            have as many of them as are still free.
        unfinished_seconds: How long a call may wait for the rest of its request.
        unfinished_bytes: How much requests of which something is missing may take together, at their greatest length.
        statement_readers: How many callers at a time may read policy statements, whose journal may be long.
        read_wait_seconds: How long a caller waits for its turn to read them.
        journal_page: How many journal entries or balances an audit reads at a time.
        statements_page: How many journal entries are read at a time for policy statements: a few milliseconds, then
            other callers have their turn.
        max_statements: How many different policy statements an answer may hold, over all levels; at their greatest
            length they take four megabytes.
        dropped_at_once: How many trimmed entries are dropped from a store at a time.
    """

    redis_answer_seconds: float = 2.0
    postgres_answer_seconds: float = 1.5
    postgres_statement_seconds: float = 1.2
    postgres_lock_seconds: float = 1.0
    installation_seconds: float = 300.0
    start_check_seconds: float = 20.0
    slow_disk_seconds: float = 1.0
    hanging_disk_seconds: float = 1.5
    kept_balances: int = 20_000
    expired_at_once: int = MAX_EXPIRED_AT_ONCE
    running_calls: int = 10_000
    unfinished_seconds: float = 10.0
    unfinished_bytes: int = 32 * 2**20
    statement_readers: int = 2
    read_wait_seconds: float = 5.0
    journal_page: int = 50
    statements_page: int = 200
    max_statements: int = 1000
    dropped_at_once: int = 1000


DEFAULTS = Tuning()

"""How the ledger is laid out in Redis: its keys.

All keys of one root account share one hash slot; the root is percent-encoded, so no brace of it can move the slot.
A script makes the keys of the payments for a reservation's question, which only it knows.

    gris:schema                string   the version of all this
    gris:ledger                hash     ledger_id, count
    gris:{ROOT}:root           hash     revision, unit_id, currency_since, next_unit_id, next_since, last_time,
                                        limits_version, ahead, entries, digest
    gris:{ROOT}:turn           string   the transaction that the root is kept for, for a moment
    gris:{ROOT}:limits         hash     level -> limits.limit_text
    gris:{ROOT}:closed         set      the accounts that are closed
    gris:{ROOT}:blocks:LEVEL   set      the blocks of a level, whose balances are those of LEVEL*BLOCK
    gris:{ROOT}:balances       hash     level -> JSON of its `Balance`, the fields in their order
    gris:{ROOT}:days:LEVEL     hash     START of a day that is over -> end; START:information; START:calls
    gris:{ROOT}:reservations   hash     reservation id -> JSON of its `Reservation`
    gris:{ROOT}:ends           sorted   reservation ids by when they lapse
    gris:{ROOT}:journal        stream   the charges
    gris:{ROOT}:base           hash     position, entries, base: what stands for dropped entries, as JSON
    gris:{ROOT}:paid:PAYER//release//ID   string   start of the span in which the release was paid for, release id
    gris:{ROOT}:paid:PAYER//query//ID     string   the same for a question
    gris:{ROOT}:request:ID     string   keep_until:fingerprint:outcome

The revision is one that no write has chosen before, so that it names what the root holds.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

from budget_service.ledger.values import Account

LEDGER_KEY = "gris:ledger"
ROOT_KEYS = "gris:{*}:root"


@lru_cache(maxsize=1000)
def prefix_of(root: str) -> str:
    """Return what the keys of a root begin with."""
    return f"gris:{{{quote(root, safe='')}}}:"


def key_of(root: str, name: str) -> str:
    """Return the key of a root with this name."""
    return f"{prefix_of(root)}{name}"


def keys_of(root: str, *names: str) -> list[str]:
    """Return the keys of a root with these names."""
    prefix = prefix_of(root)
    return [prefix + name for name in names]


def days_key(level: Account) -> str:
    """Return the key of a level's past days."""
    return key_of(level.root, f"days:{level.text}")


def blocks_key(level: Account) -> str:
    """Return the key of the blocks of a level."""
    return key_of(level.root, f"blocks:{level.text}")


def request_key(root: str, request_id: str) -> str:
    """Return the key of the outcome of a request."""
    return f"{prefix_of(root)}request:{request_id}"


def payment_key(root: str, payer: str, kind: str, id_: str) -> str:
    """Return the key of what was paid for, a release or a query."""
    return f"{prefix_of(root)}paid:{payer}//{kind}//{id_}"


def name_in_root(key: str) -> str:
    """Return what a key is called in its root.

    A pattern with a star finds more than it says: an id at the end of a key may look like any other key. But a root is
    percent-encoded, so that the first brace ends it.
    """
    return key.partition("}:")[2]


def root_of(key: str) -> str:
    """Return the root that a key belongs to."""
    return unquote(key.partition("}:")[0].removeprefix("gris:{"))

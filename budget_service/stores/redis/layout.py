"""How the ledger is laid out in Redis: its keys.

All keys of one root account share one hash slot; the root is percent-encoded, so no brace of it can move the slot.

    gris:schema            string   the version of all this
    gris:ledger            hash     ledger_id, count
    gris:{ROOT}:revision   string   names what the root holds: no write has chosen it before
    gris:{ROOT}:turn       string   the transaction that the root is kept for, for a moment
    gris:{ROOT}:row:KEY    string   the text of a row; see `stores.rows`. One that has an end expires
    gris:{ROOT}:names      sorted   the keys of rows without an end, by which ranges are found
    gris:{ROOT}:journal    stream   NUMBER-0 -> entry: its text
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

LEDGER_KEY = "gris:ledger"
ROOT_KEYS = "gris:{*}:row:roots"


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


def row_key(root: str, key: str) -> str:
    """Return the key of a row."""
    return f"{prefix_of(root)}row:{key}"


def name_in_root(key: str) -> str:
    """Return what a key is called in its root.

    A pattern with a star finds more than it says: an id at the end of a key may look like any other key. But a root is
    percent-encoded, so that the first brace ends it.
    """
    return key.partition("}:")[2]


def root_of(key: str) -> str:
    """Return the root that a key belongs to."""
    return unquote(key.partition("}:")[0].removeprefix("gris:{"))

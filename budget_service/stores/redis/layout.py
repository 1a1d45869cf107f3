"""How the ledger is laid out in Redis: its keys, and which of them each script is given.

All keys of one root account share one hash slot; the root is percent-encoded, so no brace of it can move the slot.
A script makes the keys of payments itself, since only it knows the question of a reservation; they share the slot too.

    gris:schema                string   the version of all this
    gris:ledger                hash     ledger_id, count
    gris:{ROOT}:root           hash     unit_id, currency_since, next_unit_id, next_since, last_time, limits_version,
                                        ahead
    gris:{ROOT}:limits         hash     level -> limits.limit_text
    gris:{ROOT}:accounts       hash     level -> account_states.state_text
    gris:{ROOT}:parents        set      levels with a balance below them
    gris:{ROOT}:balances       hash     level -> window start:window end:spent:spent:reserved:reserved:
                                        reserved since:leaves at:earlier days:rule:day start:day end:
                                        today:today
    gris:{ROOT}:days:LEVEL     hash     start of a day that is over -> end,information,calls
    gris:{ROOT}:reservations   hash     reservation id -> JSON
    gris:{ROOT}:ends           sorted   reservation ids by when they lapse
    gris:{ROOT}:journal        stream   the charges
    gris:{ROOT}:checkpoint     hash     position, entries, digest, currency (encode_root), states;
                                        level:LEVEL -> start,information,calls; each
    gris:{ROOT}:paid:PAYER//release//ID   string   start of the span in which the release was paid for
    gris:{ROOT}:paid:PAYER//query//ID     string   the same, a colon, and the id of the release
    gris:{ROOT}:request:ID     hash     keep_until, fingerprint, outcome
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote, unquote

from budget_service.ledger.limits import (
    AppliedLimits,
)
from budget_service.ledger.requests import (
    Request,
    RootRequest,
)
from budget_service.ledger.values import Account

LEDGER_KEY = "gris:ledger"
ROOT_KEYS = "gris:{*}:root"
_READ = ("root", "balances", "reservations", "ends")
_READ_WITH_DAYS = (*_READ, "days")


def reading_keys(root: str) -> list[str]:
    """Return the keys of `read.lua`, in its order."""
    return [_key(root, name) for name in _READ_WITH_DAYS]


def limits_keys(root: str) -> list[str]:
    """Return the keys of `stored_limits.lua` and `all_limits.lua`, in their order."""
    return [_key(root, name) for name in ("root", "limits", "accounts")]


def balances_keys(root: str) -> list[str]:
    """Return the keys of `balances.lua`, in its order."""
    return [_key(root, name) for name in ("root", "balances", "reservations", "journal", "days")]


def journal_key(root: str) -> str:
    """Return the key of a root's journal."""
    return _key(root, "journal")


def checkpoint_key(root: str) -> str:
    """Return the key of a root's checkpoint."""
    return _key(root, "checkpoint")


def root_key(root: str) -> str:
    """Return the key of what is kept once for a root."""
    return _key(root, "root")


def balances_key(root: str) -> str:
    """Return the key of a root's balances."""
    return _key(root, "balances")


def reservations_key(root: str) -> str:
    """Return the key of a root's reservations."""
    return _key(root, "reservations")


def parents_key(root: str) -> str:
    """Return the key of the levels with a balance below them."""
    return _key(root, "parents")


def days_key(level: Account) -> str:
    """Return the key of a level's past days."""
    return _key(level.root, f"days:{level.text}")


def new_checkpoint_key(root: str, name: str) -> str:
    """Return the key of a new checkpoint that is being written."""
    return _key(root, f"checkpoint:{name}")


def name_in_root(key: str) -> str:
    """Return what a key is called in its root.

    A pattern with a star finds more than it says: an id at the end of a key may look like any other key. But a root is
    percent-encoded, so that the first brace ends it.
    """
    return key.partition("}:")[2]


def root_of(key: str) -> str:
    """Return the root that a key belongs to."""
    return unquote(key.partition("}:")[0].removeprefix("gris:{"))


def request_keys(request: Request, limits: AppliedLimits) -> list[str]:
    """Return the keys of a changing script, in the order of `ledger.lua`; those of administrators have one more."""
    prefix = _prefix(request.account.root)
    is_administered = isinstance(request, RootRequest)
    payer = "" if is_administered else limits.payer(request.account)
    named = ("journal", f"paid:{payer}", f"request:{request.request_id}", "limits", "days")
    more = ("accounts",) if is_administered else ()
    return [prefix + name for name in (*_READ, *named, *more)]


def ends_key(root: str) -> str:
    """Return the key of a root's reservations by when they lapse."""
    return _key(root, "ends")


def _key(root: str, name: str) -> str:
    return f"{_prefix(root)}{name}"


@lru_cache(maxsize=1000)
def _prefix(root: str) -> str:
    return f"gris:{{{quote(root, safe='')}}}:"

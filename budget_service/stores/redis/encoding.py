"""How the ledger is written in Redis: the names of keys, the argument of the scripts, and the texts they keep.

All keys of one root account share one hash slot; the root is percent-encoded, so no brace of it can move the slot.
A script makes the keys of payments itself, since only it knows the question of a reservation; they share the slot too.

    gris:schema                string   the version of all this
    gris:ledger                hash     ledger_id, count
    gris:{ROOT}:root           hash     unit_id, currency_since, next_unit_id, next_since, last_time, limits_version,
                                        ahead
    gris:{ROOT}:limits         hash     level -> limits.limit_text
    gris:{ROOT}:accounts       hash     level -> account_states.state_text
    gris:{ROOT}:balances       hash     level -> window start:window end:spent:spent:reserved:reserved:
                                        reserved since:leaves at:earlier days:rule:day start:day end:
                                        today:today
    gris:{ROOT}:days:LEVEL     hash     start of a day that is over -> end,information,calls
    gris:{ROOT}:reservations   hash     reservation id -> JSON
    gris:{ROOT}:ends           sorted   reservation ids by when they lapse
    gris:{ROOT}:journal        stream   the charges
    gris:{ROOT}:checkpoint     hash     position, entries, digest, currency;
                                        level:LEVEL -> start,information,calls; each
    gris:{ROOT}:paid:PAYER//release//ID   string   start of the span in which the release was paid for
    gris:{ROOT}:paid:PAYER//query//ID     string   the same, a colon, and the id of the release
    gris:{ROOT}:request:ID     hash     keep_until, fingerprint, outcome
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

from msgspec.json import Encoder

from budget_service.ledger.account_states import MAX_FORMER_NAMES, parse_state
from budget_service.ledger.administration import CLOCK_TOLERANCE, REFUSAL_RETENTION, RETENTION
from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.closing import is_closed_to
from budget_service.ledger.currency import Currency, window_before
from budget_service.ledger.limits import (
    AppliedLimits,
    StoredLimits,
    limit_text,
    parse_limit,
)
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.requests import (
    AccountRequest,
    BudgetRequest,
    CancelReservation,
    ChangeCurrency,
    Charge,
    CloseAccount,
    MoveAccount,
    Refund,
    ReopenAccount,
    Request,
    Reserve,
    ResumeClock,
    RootRequest,
    SetLimits,
    WriteOff,
    counting_levels,
)
from budget_service.ledger.state import (
    EntryKind,
    JournalEntry,
    Reservation,
    RootRecord,
    Snapshot,
)
from budget_service.ledger.values import Account, Cost, Hold, LevelLimit
from budget_service.ledger.verification import Checkpoint
from budget_service.ledger.windows import DaySpan, Microseconds, Span, Window, day_around
from budget_service.stores.codec import (
    REUSED,
    decode_currency,
    decode_days,
    decode_end,
    decode_outcome,
    decode_rule,
    encode_currency,
    encode_days,
    encode_end,
    encode_rule,
)
from budget_service.stores.interface import BalancePage

LEDGER_KEY = "gris:ledger"
ROOT_KEYS = "gris:{*}:root"
_READ = ("root", "balances", "reservations", "ends")
_READ_WITH_DAYS = (*_READ, "days")
FIELDS_AT_ONCE = 1000
# About 10 MB.
_KEPT_LEVELS = 10_000
_ENCODER = Encoder()
# Of a request that uses no budget. Reservations lapse when one is used.
_WITHOUT_LEVELS: dict[str, Any] = {
    "limits_version": "",
    "levels": [],
    "path": [],
    "others": [],
    "expired_at_once": "0",
}


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


def days_key(level: Account) -> str:
    """Return the key of a level's past days."""
    return _key(level.root, f"days:{level.text}")


def new_checkpoint_key(root: str, name: str) -> str:
    """Return the key of a new checkpoint that is being written."""
    return _key(root, f"checkpoint:{name}")


def checkpoint_fields(checkpoint: Checkpoint) -> Iterator[list[str]]:
    """Give the fields of a checkpoint's hash and their values, in portions."""
    yield ["position", checkpoint.position, "entries", str(checkpoint.entries)]
    yield ["digest", checkpoint.digest, "currency", encode_currency(checkpoint.currency)]
    portion: list[str] = []
    for level, spans in checkpoint.spent.items():
        sums = (f"{start},{cost.information},{cost.calls};" for start, cost in spans.items())
        portion += [f"level:{level.text}", "".join(sums)]
        if len(portion) >= FIELDS_AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def parse_checkpoint(fields: list[str]) -> Checkpoint:
    """Return the checkpoint of a hash."""
    kept = dict(_pairs(fields))
    if not kept:
        return Checkpoint()
    spent = {
        parse_account(name.removeprefix("level:")): _sums(text)
        for name, text in kept.items()
        if name.startswith("level:")
    }
    currency = decode_currency(kept["currency"])
    return Checkpoint(kept["position"], int(kept["entries"]), kept["digest"], spent, currency)


def _sums(text: str) -> dict[Microseconds, Cost]:
    parts = (each.split(",") for each in text.split(";")[:-1])
    return {int(start): Cost(int(information), int(calls)) for start, information, calls in parts}


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


Leaving: TypeAlias = dict[str, dict[str, str]]


def argument(
    request: Request,
    limits: AppliedLimits,
    guess: Microseconds,
    clock: str,
    *,
    expired_at_once: int,
    leaving: Leaving,
) -> bytes:
    """Return the argument of a changing script; the windows are those around `guess`.

    `leaving` is empty, or what `leaving_days` returned.
    """
    header: dict[str, Any] = {
        "clock": clock,
        "account": request.account.text,
        "fingerprint": request.fingerprint(),
        "retention": str(RETENTION),
        "refusal_retention": str(REFUSAL_RETENTION),
        "request_id": request.request_id,
    }
    if leaving:
        header["leaving"] = leaving
    return _ENCODER.encode(header | _fields(request, limits, guess, expired_at_once))


def leaving_days(limits: AppliedLimits, unknown: str) -> Leaving:
    """Return when past days stop counting in sliding windows, by level and start, from what a script did not know."""
    rules = {each.level.text: each.limit.window for each in limits.levels}
    return {
        level: {start: str(rules[level].leaves_at(int(end))) for start, end in days.items()}
        for level, days in json.loads(unknown).items()
    }


def parse_answer(kind: str, text: str) -> Answer:
    """Return the answer of a changing script."""
    return REUSED if kind == "reused" else Answer(decode_outcome(text), replayed=kind == "replayed")


def parse_reading(
    reply: list[Any], levels: Iterable[LevelLimit], *, with_history: bool
) -> tuple[Snapshot, Microseconds]:
    """Return the snapshot that `read.lua` found, and its time."""
    now, unit_id, since, next_unit_id, next_since, ahead, last_time, limits_version, *rest = reply
    accounts = [each.level for each in levels]
    texts, lapsed = rest[: len(accounts)], rest[len(accounts) :]
    past: dict[Account, list[PastDay]] | None = None
    reservations: tuple[Reservation, ...] = ()
    if with_history:
        *days, held = lapsed[: len(accounts) + 1]
        lapsed = lapsed[len(accounts) + 1 :]
        past = {level: _past_days(each) for level, each in zip(accounts, days, strict=True)}
        reservations = tuple(parse_reservation(id_, text, unit_id) for id_, text in _pairs(held))
    snapshot = Snapshot(
        root=RootRecord(
            Currency(unit_id, int(since), next_unit_id, int(next_since)),
            int(last_time),
            int(limits_version),
            int(ahead),
        ),
        balances={level: _balance(text) for level, text in zip(accounts, texts, strict=True) if text},
        due=tuple(
            parse_reservation(id_, text, unit_id) for id_, text in zip(lapsed[::2], lapsed[1::2], strict=True)
        ),
        past=past,
        reservations=reservations,
    )
    return snapshot, int(now)


def parse_reservation(reservation_id: str, text: str, unit_id: str = "") -> Reservation:
    """Return a reservation from its JSON; one of schema 1 does not say its currency, which is the root's `unit_id`."""
    kept = json.loads(text)
    return Reservation(
        reservation_id=reservation_id,
        account=parse_account(kept["account"]),
        request_id=kept["request_id"],
        query_id=kept["query_id"],
        held=Cost(int(kept["information"]), int(kept["calls"])),
        unit_id=kept.get("unit_id", unit_id),
        expires_at=int(kept["expires_at"]),
        paid_release_id=kept["paid_release_id"],
        forfeits=kept["forfeits"] == "1",
        holds=_holds(kept["holds"]),
    )


def parse_balances(reply: list[Any]) -> BalancePage:
    """Return the page that `balances.lua` found; the reservations of schema 1 count in the root's currency."""
    position, cursor, unit_id, since, next_unit_id, next_since, balances, reservations, past = reply
    found = tuple((parse_account(level), _balance(text)) for level, text in _pairs(balances))
    return BalancePage(
        position=position,
        currency=Currency(unit_id, int(since), next_unit_id, int(next_since)),
        balances=found,
        past={level: _past_days(days) for (level, _), days in zip(found, past, strict=True)},
        reservations=tuple(parse_reservation(id_, text, unit_id) for id_, text in _pairs(reservations)),
        after="" if cursor == "0" else cursor,
    )


def parse_stored_limits(version: int, levels: Sequence[Account], texts: Sequence[str]) -> StoredLimits:
    """Return the limits and states of levels that `stored_limits.lua` found."""
    limits, states = texts[: len(levels)], texts[len(levels) :]
    return StoredLimits(
        version,
        {level: parse_limit(each) for level, each in zip(levels, limits, strict=True) if each},
        {level: parse_state(each) for level, each in zip(levels, states, strict=True) if each},
    )


def parse_all_limits(version: str, limits: list[str], states: list[str]) -> StoredLimits:
    """Return the limits and states of a root that `all_limits.lua` found."""
    return StoredLimits(
        int(version),
        {parse_account(level): parse_limit(each) for level, each in _pairs(limits)},
        {parse_account(level): parse_state(each) for level, each in _pairs(states)},
    )


def parse_entry(fields: list[str]) -> JournalEntry:
    """Return an entry from the fields of its stream."""
    kept = dict(_pairs(fields))
    return JournalEntry(
        kind=EntryKind(kept["kind"]),
        account=parse_account(kept["account"]),
        cost=Cost(int(kept["information"]), int(kept["calls"])),
        unit_id=kept["unit_id"],
        request_id=kept["request_id"],
        release_id=kept["release_id"],
        query_id=kept["query_id"],
        time=int(kept["time"]),
        holds=_holds(json.loads(kept["holds"])),
        # Only where there are any, and not in entries of earlier versions.
        policy_statement=kept.get("policy_statement", ""),
        shared_cost=_shared_cost(kept),
        reason=kept.get("reason", ""),
    )


def _shared_cost(kept: dict[str, str]) -> Cost | None:
    if "shared_information" not in kept:
        return None
    return Cost(int(kept["shared_information"]), int(kept["shared_calls"]))


def _pairs(flat: list[str]) -> Iterator[tuple[str, str]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _holds(kept: Any) -> tuple[Hold, ...]:
    # Lua writes an empty list as an empty object.
    return tuple(Hold(parse_account(level).depth, int(start)) for level, start in kept or ())


def ends_key(root: str) -> str:
    """Return the key of a root's reservations by when they lapse."""
    return _key(root, "ends")


def _key(root: str, name: str) -> str:
    return f"{_prefix(root)}{name}"


@lru_cache(maxsize=1000)
def _prefix(root: str) -> str:
    return f"gris:{{{quote(root, safe='')}}}:"


def _fields(
    request: Request, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    match request:
        case SetLimits():
            return _limit_fields(request, limits)
        case ChangeCurrency():
            return _currency_fields(request, limits, guess)
        case ResumeClock():
            return _clock_fields(request)
        case CloseAccount() | ReopenAccount() | MoveAccount():
            return _account_fields(request, limits)
        case _ if is_closed_to(request, limits):
            return _WITHOUT_LEVELS | {"closed": "1", "limits_version": str(limits.version)}
        case _:
            return _budget_fields(request, limits, guess, expired_at_once)


def _currency_fields(request: ChangeCurrency, limits: AppliedLimits, guess: Microseconds) -> dict[str, Any]:
    window = window_before(limits.rules, guess)
    return _WITHOUT_LEVELS | {
        "limits_version": str(limits.version),
        "unit_id": request.unit_id,
        "window": [str(window.start), encode_end(window.end)],
    }


def _clock_fields(request: ResumeClock) -> dict[str, Any]:
    return _WITHOUT_LEVELS | {
        "told_time": str(request.true_time),
        "clock_tolerance": str(CLOCK_TOLERANCE),
    }


def _limit_fields(request: SetLimits, limits: AppliedLimits) -> dict[str, Any]:
    changes = ((level.text, "" if limit is None else limit_text(limit)) for level, limit in request.changes)
    return _WITHOUT_LEVELS | {
        "changes": list(changes),
        "most_limits": str(limits.most_stored),
    }


def _account_fields(request: AccountRequest, limits: AppliedLimits) -> dict[str, Any]:
    if not isinstance(request, MoveAccount):
        act = EntryKind.CLOSE if isinstance(request, CloseAccount) else EntryKind.REOPEN
        own: dict[str, Any] = {"act": act.value, "reason": request.reason}
    else:
        account = request.account
        own = {
            "target": request.target.text,
            "name": account.path[-1],
            "above": [account.level(depth).text for depth in range(1, account.depth)],
            "most_names": str(MAX_FORMER_NAMES),
            "reason": request.noted_reason,
        }
    return _WITHOUT_LEVELS | {"most_limits": str(limits.most_stored)} | own


def _budget_fields(
    request: BudgetRequest, limits: AppliedLimits, guess: Microseconds, expired_at_once: int
) -> dict[str, Any]:
    path = counting_levels(request)
    return {
        "levels": [_level(each, each.limit.window.around(guess)) for each in limits.levels],
        "path": [level.text for level in path],
        "others": _others(path, limits.levels, guess) if len(path) > len(limits.levels) else [],
        "limits_version": str(limits.version),
        "expired_at_once": str(expired_at_once),
        "reservation_id": "" if isinstance(request, WriteOff | Refund) else request.reservation_id,
        **_own_fields(request),
    }


def _others(
    path: Iterable[Account], levels: tuple[LevelLimit, ...], guess: Microseconds
) -> list[tuple[str, str, str]]:
    limited = {each.level for each in levels}
    day = day_around(guess, levels[-1].limit.window.zone)
    return [(level.text, str(day.start), encode_end(day.end)) for level in path if level not in limited]


def _own_fields(request: BudgetRequest) -> dict[str, Any]:
    match request:
        case Reserve():
            own = {
                "ttl": str(request.ttl),
                "forfeits": "1" if request.forfeits else "0",
                "query_id": request.query_id,
            }
            return own | _cost_fields(request.max_cost, request.unit_id)
        case Charge():
            own = {"release_id": request.release_id, "query_id": request.query_id}
            own["policy_statement"] = request.policy_statement
            own["worst_case_above"] = "1" if request.worst_case_above else "0"
            return own | _cost_fields(request.cost, request.unit_id)
        case Refund():
            return _refund_fields(request)
        case CancelReservation() | WriteOff():
            return {}


def _refund_fields(request: Refund) -> dict[str, Any]:
    shared = request.shared_cost
    ids = {"release_id": request.release_id, "query_id": request.query_id, "reason": request.reason}
    amounts = ("", "") if shared is None else (str(shared.information), str(shared.calls))
    holds = [[request.account.level(each.depth).text, str(each.window_start)] for each in request.holds]
    fields = ids | dict(zip(("shared_information", "shared_calls"), amounts, strict=True))
    return fields | _cost_fields(request.cost, request.unit_id) | {"holds": holds}


def _cost_fields(cost: Cost, unit_id: str) -> dict[str, str]:
    return {"information": str(cost.information), "calls": str(cost.calls), "unit_id": unit_id}


@lru_cache(maxsize=_KEPT_LEVELS)
def _level(each: LevelLimit, span: Span) -> tuple[str, ...]:
    limit = each.limit
    maximum = (str(limit.maximum.information), str(limit.maximum.calls))
    bounds = (str(span.window.start), encode_end(span.window.end))
    days = (str(span.counts_from), encode_end(span.leaves_at))
    day = (encode_rule(limit.window), str(span.day.start), encode_end(span.day.end))
    return (each.level.text, str(each.level.depth), *maximum, limit.mode.value, *bounds, *days, *day)


def _balance(text: str) -> Balance:
    start, end, *rest = text.split(":")
    amounts, (since, leaves_at, earlier, rule, day_start, day_end), today = rest[:4], rest[4:10], rest[10:]
    return Balance(
        window=Window(int(start), decode_end(end)),
        day=DaySpan(int(day_start), int(day_end)),
        rule=decode_rule(rule),
        spent=Cost(int(amounts[0]), int(amounts[1])),
        reserved=Cost(int(amounts[2]), int(amounts[3])),
        reserved_since=int(since),
        leaves_at=decode_end(leaves_at),
        earlier=decode_days(earlier),
        today=Cost(int(today[0]), int(today[1])),
    )


def balance_text(balance: Balance) -> str:
    """Return the text of a balance."""
    window, day, spent, reserved = balance.window, balance.day, balance.spent, balance.reserved
    amounts = (spent.information, spent.calls, reserved.information, reserved.calls)
    days = (balance.reserved_since, encode_end(balance.leaves_at), encode_days(balance.earlier))
    present = (encode_rule(balance.rule), day.start, encode_end(day.end))
    today = (balance.today.information, balance.today.calls)
    fields = (window.start, encode_end(window.end), *amounts, *days, *present, *today)
    return ":".join(map(str, fields))


# Without a rule and a present day.
OLDER_COLONS = 8


def is_of_an_older_schema(balance: str) -> bool:
    """Return whether the text of a balance is one of schema 7 or older."""
    return balance.count(":") <= OLDER_COLONS


def parse_older_balance(text: str) -> Balance:
    """Return the windows of a balance of schema 7 or older."""
    start, end, *rest = text.split(":")
    # Up to schema 2 only calendar windows were known.
    earlier = decode_days(rest[6]) if len(rest) > 4 else ()
    window = Window(int(start), decode_end(end))
    return Balance(window, DaySpan(0, 0), earlier=earlier)


def past_day_text(day: PastDay) -> str:
    """Return the text of a past day."""
    return f"{day.end},{day.spent.information},{day.spent.calls}"


def _past_days(fields: list[str]) -> list[PastDay]:
    found = ((start, text.split(",")) for start, text in _pairs(fields))
    return [
        PastDay(int(start), int(end), Cost(int(information), int(calls)))
        for start, (end, information, calls) in found
    ]


def parse_account(text: str) -> Account:
    """Return an account from its path joined by slashes."""
    return Account(tuple(text.split("/")))

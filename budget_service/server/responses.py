"""Translates the ledger's values into protocol buffers.

Most of the answer to a charge is the same as in the last one, so one message is filled in again for each charge. Such a
builder belongs to one thread and returns copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.outcomes import Charged, LevelStatus, Shortfall
from budget_service.ledger.values import MAX_SEGMENTS, Account, Cost, Mode
from budget_service.ledger.windows import SECOND, Microseconds


class LevelMessageBuilder:
    """Fills in the message of a level.

    It keeps the ledger's values of those fields that rarely change: comparing them takes a fraction of the time of
    writing the fields.
    """

    def __init__(self, message: pb.Level) -> None:
        self._message = message
        # Getting a submessage takes as long as writing it.
        self._path = message.path
        self._spent, self._reserved, self._remaining = message.spent, message.reserved, message.remaining
        self._unit_id: str | None = None
        self._limit: tuple[object, ...] = ()

    def fill(self, status: LevelStatus, account: Account, unit_id: str) -> None:
        """Write the state of a level of an account, as far as the account may see it."""
        self._message.over_limit = status.is_over_limit
        status = status.seen_from(account.depth)
        if unit_id != self._unit_id:
            self._count_in(unit_id)
        limit = (status.maximum, status.mode, status.window)
        if limit != self._limit:
            self._limit = ()
            self._limit_to(status)
            self._limit = limit
        self._path[:] = account.path[: status.depth]
        _write(self._spent, status.spent)
        _write(self._reserved, status.reserved)
        _write(self._remaining, status.remaining)

    def _count_in(self, unit_id: str) -> None:
        # A value that was written only in part must not count as written.
        self._unit_id = None
        for amount in (self._message.limit, self._spent, self._reserved, self._remaining):
            amount.unit_id = unit_id
        self._unit_id = unit_id

    def _limit_to(self, status: LevelStatus) -> None:
        message, end = self._message, status.window.end
        _write(message.limit, status.maximum)
        message.mode = pb.MODE_TRACK if status.mode is Mode.TRACK else pb.MODE_ENFORCE
        message.window_start.CopyFrom(timestamp(status.window.start))
        if end is None:
            message.ClearField("window_end")
        else:
            message.window_end.CopyFrom(timestamp(end))


class ChargeResponseBuilder:
    """Fills in the answer to a charge of an account with a given number of limited levels."""

    def __init__(self, levels: int) -> None:
        self._message = pb.UpdateBudgetResponse()
        self._charged = self._message.charged
        self._levels = [LevelMessageBuilder(self._message.levels.add()) for _ in range(levels)]

    def filled(self, outcome: Charged, request: Charge, *, replayed: bool) -> pb.UpdateBudgetResponse:
        """Return a charge, and what is left after it, as a new message."""
        message, account, unit_id = self._message, request.account, request.unit_id
        message.already_paid, message.replayed = outcome.already_paid, replayed
        self._charged.unit_id = unit_id
        self._charged.blocks[:] = request.blocks
        _write(self._charged, outcome.charged)
        del message.charged_each[:]
        message.charged_each.extend([cost_message(each, unit_id, request.blocks) for each in outcome.each])
        for builder, status in zip(self._levels, outcome.levels, strict=True):
            builder.fill(status, account, unit_id)
        copy = pb.UpdateBudgetResponse()
        copy.CopyFrom(message)
        return copy


class ChargeResponseBuilders:
    """A builder for each number of levels that an account can have."""

    def __init__(self) -> None:
        self._builders = [ChargeResponseBuilder(levels) for levels in range(MAX_SEGMENTS + 1)]

    def filled(self, outcome: Charged, request: Charge, *, replayed: bool) -> pb.UpdateBudgetResponse:
        """Return a charge, and what is left after it, as a new message."""
        return self._builders[len(outcome.levels)].filled(outcome, request, replayed=replayed)


def cost_message(cost: Cost, unit_id: str, blocks: tuple[str, ...] = ()) -> cost_pb2.Cost:
    """Return a cost as a message, with the blocks that alone pay it."""
    return cost_pb2.Cost(information=cost.information, calls=cost.calls, unit_id=unit_id, blocks=blocks)


def budget_message(found: AccountStatement, account: Account) -> pb.GetBudgetResponse:
    """Return the state of an account as a message."""
    currency = found.currency
    closed = () if found.closed is None else found.closed.path
    message = pb.GetBudgetResponse(unit_id=currency.unit_id, closed_level=closed)
    for each, paid in zip(found.levels, found.blocks, strict=True):
        level = message.levels.add()
        level.remaining_of_blocks.extend(_remaining_of(paid, account, currency.unit_id))
        LevelMessageBuilder(level).fill(each, account, currency.unit_id)
        # What counts since before the present currency began is of the one before: see `Draft`.
        level.previous_currency = each.window.start < currency.since
    if found.ahead:
        message.clock_ahead.CopyFrom(duration(found.ahead))
    if currency.next_unit_id:
        message.next_unit_id = currency.next_unit_id
        message.next_unit_begins_at.CopyFrom(timestamp(currency.next_since))
    return message


def _remaining_of(paid: Mapping[str, LevelStatus], account: Account, unit_id: str) -> Iterator[cost_pb2.Cost]:
    """Give what is left for each block of a level that has paid alone, and last for every other one."""
    for block in sorted(paid, key=lambda each: (not each, each)):
        left = paid[block].seen_from(account.depth).remaining
        yield cost_message(left, unit_id, (block,) if block else ())


def shortfall_message(missing: Shortfall, account: Account) -> pb.Shortfall:
    """Return a shortfall as a message."""
    message = pb.Shortfall(
        path=account.level(missing.depth).path,
        unit=missing.unit.value,
        requested=missing.requested,
        remaining=missing.remaining,
    )
    if missing.refreshes_at is not None:
        message.refreshes_at.CopyFrom(timestamp(missing.refreshes_at))
    return message


def timestamp(time: Microseconds) -> Timestamp:
    """Return a time as a message, exactly."""
    return Timestamp(seconds=time // SECOND, nanos=time % SECOND * 1000)


def duration(span: Microseconds) -> Duration:
    """Return a span of time as a message, exactly."""
    return Duration(seconds=span // SECOND, nanos=span % SECOND * 1000)


def _write(message: cost_pb2.Cost, cost: Cost) -> None:
    message.information, message.calls = cost.information, cost.calls

"""The scripts that run in Redis, each put together from files in `lua/`."""

from __future__ import annotations

import hashlib
from pathlib import Path

from budget_service.ledger.requests import (
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
    SetLimits,
    WriteOff,
)

LUA = Path(__file__).parent / "lua"


class Script:
    """A script and the name Redis knows it by."""

    def __init__(self, *files: str) -> None:
        self.source = "\n".join((LUA / file).read_text(encoding="utf-8") for file in files)
        self.digest = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


READ = Script("read.lua")
BALANCES = Script("balances.lua")
WRITE_CHECKPOINT = Script("schema.lua", "write_checkpoint.lua")
COUNT = Script("count.lua")
DROP_CHECKPOINTED = Script("schema.lua", "drop_checkpointed.lua")
STORED_LIMITS = Script("stored_limits.lua")
ALL_LIMITS = Script("all_limits.lua")
CHANGES: dict[type[Request], Script] = {
    Reserve: Script("schema.lua", "ledger.lua", "reserve.lua"),
    Charge: Script("schema.lua", "ledger.lua", "charge.lua"),
    CancelReservation: Script("schema.lua", "ledger.lua", "cancel.lua"),
    WriteOff: Script("schema.lua", "ledger.lua", "write_off.lua"),
    Refund: Script("schema.lua", "ledger.lua", "refund.lua"),
    SetLimits: Script("schema.lua", "ledger.lua", "limits.lua"),
    ChangeCurrency: Script("schema.lua", "ledger.lua", "currency.lua"),
    CloseAccount: Script("schema.lua", "ledger.lua", "close.lua"),
    ReopenAccount: Script("schema.lua", "ledger.lua", "close.lua"),
    MoveAccount: Script("schema.lua", "ledger.lua", "move.lua"),
    ResumeClock: Script("schema.lua", "ledger.lua", "clock.lua"),
}

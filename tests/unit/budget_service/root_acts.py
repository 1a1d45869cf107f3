"""What an administrator asks about a root account or an account of it, which needs no limits of that account."""

from __future__ import annotations

from typing import TypeAlias

from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.set_limits import SetLimits

AccountAct: TypeAlias = CloseAccount | ReopenAccount
RootAct: TypeAlias = SetLimits | ChangeCurrency | ResumeClock | AccountAct

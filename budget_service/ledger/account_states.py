"""What an administrator has made of accounts: which are closed, and which had another name before."""

from __future__ import annotations

from msgspec import Struct

from budget_service.ledger.values import Account

# Everything that grows is bounded. Each former name is asked about where an account is audited.
MAX_FORMER_NAMES = 16

_OPEN, _CLOSED, _MOVED = "open", "closed", "moved"


class AccountState(Struct, frozen=True, gc=False):
    """The state of one account.

    Nothing begins under one that `is_closed`. One that `is_moved` has another name by now, and stays closed for good.
    `former_names` are the last segments of the names that the account had before, oldest first: it stays below the
    same level.
    """

    is_closed: bool = False
    is_moved: bool = False
    former_names: tuple[str, ...] = ()

    def closed(self) -> AccountState:
        """Return the state once the account is closed."""
        return AccountState(is_closed=True, former_names=self.former_names)

    def reopened(self) -> AccountState:
        """Return the state once the account is open again."""
        return AccountState(former_names=self.former_names)

    def after_move(self, source: Account) -> AccountState:
        """Return the state of the account that this one, called `source`, becomes."""
        return AccountState(former_names=(*self.former_names, source.path[-1]))

    def former(self, account: Account) -> tuple[Account, ...]:
        """Return what the account with this state was called before, oldest first."""
        return tuple(Account((*account.path[:-1], name)) for name in self.former_names)


UNTOUCHED = AccountState()
MOVED = AccountState(is_closed=True, is_moved=True)


def state_text(state: AccountState) -> str:
    """Return a state in one line: a word, and former names behind slashes, which no name holds."""
    word = _MOVED if state.is_moved else _CLOSED if state.is_closed else _OPEN
    return "/".join((word, *state.former_names))


def parse_state(text: str) -> AccountState:
    """Return the state of a text made by `state_text`."""
    word, *names = text.split("/")
    if word not in (_OPEN, _CLOSED, _MOVED):
        raise ValueError("not the state of an account")
    return AccountState(word != _OPEN, word == _MOVED, tuple(names))

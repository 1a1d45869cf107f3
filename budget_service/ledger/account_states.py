"""What is kept of accounts: which are closed, and which had another name before."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from budget_service.ledger.values import Account

# Everything that grows is bounded. Each former name is asked about where an account is audited.
MAX_FORMER_NAMES = 16

_OPEN, _CLOSED, _MOVED, _FORGOTTEN = "open", "closed", "moved", "forgotten"


class AccountState(Struct, frozen=True, gc=False):
    """The state of one account.

    Nothing begins under one that `is_closed`. One that `is_moved` has another name by now, and stays closed for good;
    so does one that `is_forgotten`, whose names are in no row any more. `former_names` are the last segments of the
    names that the account had before, oldest first: it stays below the same level.
    """

    is_closed: bool = False
    is_moved: bool = False
    former_names: tuple[str, ...] = ()
    is_forgotten: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nobody is called so any more."""
        return self.is_moved or self.is_forgotten

    def closed(self) -> AccountState:
        """Return the state once the account is closed."""
        return AccountState(is_closed=True, former_names=self.former_names)

    def reopened(self) -> AccountState:
        """Return the state once the account is open again."""
        return AccountState(former_names=self.former_names)

    def forgotten(self, account: Account) -> dict[Account, AccountState]:
        """Return the states of an account with this state, and of its former names, once it is forgotten."""
        # Its own keeps the former names: who is interrupted before their rows are gone has to find them again.
        own = AccountState(is_closed=True, is_forgotten=True, former_names=self.former_names)
        return {**dict.fromkeys(self.former(account), FORGOTTEN), account: own}

    def after_move(self, source: Account) -> AccountState:
        """Return the state of the account that this one, called `source`, becomes."""
        return AccountState(former_names=(*self.former_names, source.path[-1]))

    def former(self, account: Account) -> tuple[Account, ...]:
        """Return what the account with this state was called before, oldest first."""
        return tuple(Account((*account.path[:-1], name)) for name in self.former_names)


UNTOUCHED = AccountState()
MOVED = AccountState(is_closed=True, is_moved=True)
FORGOTTEN = AccountState(is_closed=True, is_forgotten=True)
_WORDS = {_OPEN: UNTOUCHED, _CLOSED: AccountState(is_closed=True), _MOVED: MOVED, _FORGOTTEN: FORGOTTEN}


def state_text(state: AccountState) -> str:
    """Return a state as a text: a word with former names behind slashes, which no name holds."""
    bare = replace(state, former_names=())
    word = next(each for each, found in _WORDS.items() if found == bare)
    return "/".join((word, *state.former_names))


def parse_state(text: str) -> AccountState:
    """Return the state of a text made by `state_text`."""
    word, *names = text.split("/")
    if word not in _WORDS:
        raise ValueError("not the state of an account")
    return replace(_WORDS[word], former_names=tuple(names))

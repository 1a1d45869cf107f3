"""The keys of a ledger in etcd.

    PREFIX/ledger                                  schema, name and count of the ledger
    PREFIX/root/ROOT                               the record of a root account, whose revision every change compares
    PREFIX/of/ROOT/balance/LEVEL
    PREFIX/of/ROOT/day/LEVEL NUL START             what was charged at a level on a past day
    PREFIX/of/ROOT/outcome/REQUEST                 answers that are remembered
    PREFIX/of/ROOT/payment/KIND/PAYER NUL ID       what was paid for
    PREFIX/of/ROOT/reservation/ID                  open reservations
    PREFIX/of/ROOT/due/END/ID                      the same, in the order in which they lapse
    PREFIX/of/ROOT/journal/LAST                    the entries of one change, by the number of the last
    PREFIX/of/ROOT/limit/LEVEL, .../state/LEVEL    what administrators have stored
    PREFIX/of/ROOT/pending                         a change larger than a transaction, which is being carried out
    PREFIX/of/ROOT/checkpoint                      the checkpoint of the journal; its sums are in PREFIX/of/ROOT/sums

Names of accounts hold no slash within a segment and no control character, and numbers have a fixed width, so that the
order of keys is that of what they name. Ids, which hold anything, stand last.
"""

from __future__ import annotations

from dataclasses import dataclass

from budget_service.ledger.values import Account
from budget_service.ledger.windows import Microseconds
from budget_service.stores.transactions import PaymentKey

# Of the largest number of 64 bits.
WIDTH = 19
AFTER_SLASH = b"0"


def end_of(prefix: bytes) -> bytes:
    """Return the end of the range of all keys that begin with a prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def numbered(number: int) -> bytes:
    """Return a number whose order as text is its own."""
    return f"{number:0{WIDTH}d}".encode()


@dataclass(frozen=True, slots=True)
class Layout:
    """The keys below one prefix."""

    prefix: str

    @property
    def ledger(self) -> bytes:
        """The key of what is kept once for the ledger."""
        return f"{self.prefix}/ledger".encode()

    @property
    def roots(self) -> bytes:
        """What the keys of all records of root accounts begin with."""
        return f"{self.prefix}/root/".encode()

    def root(self, root: str) -> bytes:
        """Return the key of the record of a root account."""
        return self.roots + root.encode()

    def of(self, root: str) -> Keys:
        """Return the other keys of a root account."""
        return Keys(f"{self.prefix}/of/{root}/".encode())


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one root account, all of which begin with `start`."""

    start: bytes

    @property
    def balances(self) -> bytes:
        """What the keys of balances begin with."""
        return self.start + b"balance/"

    @property
    def outcomes(self) -> bytes:
        """What the keys of answers begin with."""
        return self.start + b"outcome/"

    @property
    def payments(self) -> bytes:
        """What the keys of payments begin with."""
        return self.start + b"payment/"

    @property
    def reservations(self) -> bytes:
        """What the keys of reservations begin with."""
        return self.start + b"reservation/"

    @property
    def dues(self) -> bytes:
        """What the keys of reservations begin with, in the order in which they lapse."""
        return self.start + b"due/"

    @property
    def journal(self) -> bytes:
        """What the keys of journal entries begin with."""
        return self.start + b"journal/"

    @property
    def limits(self) -> bytes:
        """What the keys of stored limits begin with."""
        return self.start + b"limit/"

    @property
    def states(self) -> bytes:
        """What the keys of accounts' states begin with."""
        return self.start + b"state/"

    @property
    def pending(self) -> bytes:
        """The key of a change that is being carried out."""
        return self.start + b"pending"

    @property
    def checkpoint(self) -> bytes:
        """The key of the checkpoint."""
        return self.start + b"checkpoint"

    @property
    def sums(self) -> bytes:
        """What the keys of the sums of checkpoints begin with."""
        return self.start + b"sums/"

    def balance(self, level: Account) -> bytes:
        """Return the key of a balance."""
        return self.balances + level.text.encode()

    def days(self, level: Account) -> bytes:
        """Return what the keys of the past days of a level begin with."""
        return self.start + b"day/" + level.text.encode() + b"\0"

    def day(self, level: Account, start: Microseconds) -> bytes:
        """Return the key of a past day."""
        return self.days(level) + numbered(start)

    def outcome(self, request_id: str) -> bytes:
        """Return the key of an answer."""
        return self.outcomes + request_id.encode()

    def payment(self, key: PaymentKey) -> bytes:
        """Return the key of a payment."""
        payer, kind, id_ = key
        return self.payments + f"{kind}/{payer}\0{id_}".encode()

    def reservation(self, reservation_id: str) -> bytes:
        """Return the key of a reservation."""
        return self.reservations + reservation_id.encode()

    def due(self, expires_at: Microseconds, reservation_id: str = "") -> bytes:
        """Return the key of a reservation in the order in which they lapse, or where those of a time begin."""
        return self.dues + numbered(expires_at) + b"/" + reservation_id.encode()

    def entries(self, last: int) -> bytes:
        """Return the key of the entries up to a number."""
        return self.journal + numbered(last)

    def limit(self, level: Account) -> bytes:
        """Return the key of a stored limit."""
        return self.limits + level.text.encode()

    def state(self, level: Account) -> bytes:
        """Return the key of an account's state."""
        return self.states + level.text.encode()

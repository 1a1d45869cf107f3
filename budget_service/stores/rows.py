"""The rows of the ledger: which there are, and how they are written and read.

A key is the name of a kind, a tab and what the row is about; no name of an account has a tab. Texts are JSON.

    roots                            RootRow
    bases                            Base: what stands for dropped entries of the journal
    balances TAB LEVEL               Balance, the fields in their order; LEVEL*BLOCK is that of a block
    blocks TAB LEVEL                 BlocksRow: what is known of all blocks of a level
    days TAB LEVEL TAB START         PastDay: what was charged at a level, or by a block of it, on a day that is over
    limits TAB LEVEL                 Limit
    closed TAB ACCOUNT               true
    reservations TAB ID              Reservation
    ends TAB TIME TAB ID             the id of a reservation, by when it lapses
    outcomes TAB ID                  StoredOutcome of a request
    payments TAB PAYER TAB KIND TAB ID   PaidQuery
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.json import Decoder, Encoder

from budget_service.ledger.balances import Balance, PastDay
from budget_service.ledger.base import Base
from budget_service.ledger.block_sums import BlocksRow
from budget_service.ledger.currency import END_OF_TIME
from budget_service.ledger.journal import require_well_formed
from budget_service.ledger.state import JournalEntry, PaidQuery, Reservation, RootRecord, StoredOutcome
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.stores.interface import StoreDamagedError
from budget_service.stores.row_map import (
    Put,
    Range,
    RowKey,
)
from budget_service.stores.transactions import PaymentKey, RootKey

ROOTS, BASES = "roots", "bases"
# What comes right behind a tab, a star and a slash.
AFTER_TAB, AFTER_STAR = "\n", "+"
# How a value that no version has written makes itself felt; an unknown time zone is a LookupError.
UNREADABLE = (ValueError, TypeError, LookupError)

Value = TypeVar("Value")


class RootRow(Struct, frozen=True, gc=False):
    """The record of a root, and facts of its rows that nobody has to search for.

    No open reservation lapses before `lapses_from`, and `stored` is how many limits and closed accounts there are.
    """

    record: RootRecord = RootRecord()
    lapses_from: Microseconds = END_OF_TIME
    stored: int = 0


class Decoders:
    """What reads the text of each kind."""

    root = Decoder(RootRow)
    base = Decoder(Base)
    balance = Decoder(Balance)
    blocks = Decoder(BlocksRow)
    day = Decoder(PastDay)
    limit = Decoder(Limit)
    reservation = Decoder(Reservation)
    end = Decoder(str)
    outcome = Decoder(StoredOutcome)
    payment = Decoder(PaidQuery)
    entry = Decoder(JournalEntry)


_ENCODER = Encoder()


def text_of(value: Any) -> str:
    """Return the JSON of a value."""
    return _ENCODER.encode(value).decode()


def read_row(decoder: Decoder[Value], key: RowKey, text: str) -> Value:
    """Return the value of a row. Raises StoreDamagedError."""
    try:
        return decoder.decode(text)
    except UNREADABLE as error:
        kind, _, name = key[1].partition("\t")
        raise StoreDamagedError(kind, name or key[0]) from error


def value_of(decoder: Decoder[Value], key: RowKey, rows: Mapping[RowKey, str]) -> Value | None:
    """Return the value of a row, None if there is none. Raises StoreDamagedError."""
    text = rows.get(key)
    return None if text is None else read_row(decoder, key, text)


def read_entry(number: int, text: str) -> JournalEntry:
    """Return an entry of a journal. Raises StoreDamagedError."""
    try:
        entry = Decoders.entry.decode(text)
        require_well_formed(entry)
    except UNREADABLE as error:
        raise StoreDamagedError("journal", str(number)) from error
    return entry


def of_level(kind: str, level: Account) -> RowKey:
    """Return the key of a level's balance, of its limit, or of whether it is closed."""
    return level.root, f"{kind}\t{level.text}"


def of_id(kind: str, key: RootKey) -> RowKey:
    """Return the key of an outcome or of a reservation."""
    return key[0], f"{kind}\t{_safe(key[1])}"


def all_of(root: str, kind: str, at_most: int | None = None) -> Range:
    """Return the rows of a kind."""
    return Range(root, f"{kind}\t", f"{kind}{AFTER_TAB}", at_most)


def of_payment(key: PaymentKey) -> RowKey:
    """Return the key of what was paid for."""
    payer, kind, id_ = key
    return of_payer(payer), f"payments\t{payer}\t{kind}\t{_safe(id_)}"


def of_payer(payer: str) -> str:
    """Return the root that has the payments of a payer."""
    return payer.partition("/")[0]


def of_day(level: Account, start: Microseconds) -> RowKey:
    """Return the key of a day of a level that is over."""
    return level.root, f"days\t{level.text}\t{start}"


def of_end(root: str, reservation: Reservation) -> RowKey:
    """Return the key by which a reservation is found when it lapses."""
    return root, f"ends\t{reservation.expires_at:020d}\t{_safe(reservation.reservation_id)}"


def _safe(id_: str) -> str:
    """Return an id without the zero byte, which some stores do not keep; those of different ids differ."""
    return id_.replace("\\", "\\\\").replace("\0", "\\0")


class Known(Struct):
    """What is known of the rows; a store that nobody else writes into knows it from one batch to the next.

    The engine adds to the first three what it decides.
    """

    roots: dict[str, RootRecord] = field(default_factory=dict)
    balances: dict[Account, Balance] = field(default_factory=dict)
    rows: dict[Account, BlocksRow | None] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    lapses_from: dict[str, Microseconds] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How much that is."""
        return max(len(self.balances), len(self.rows), len(self.lapses_from))

    def take(self, key: RowKey, text: str) -> Account | None:
        """Take a row of a root, of a balance or of blocks, and return the block that a balance is of."""
        root, name = key
        if name == ROOTS:
            row = read_row(Decoders.root, key, text)
            self.roots[root] = row.record
            self.stored[root], self.lapses_from[root] = row.stored, row.lapses_from
        elif name.startswith("balances\t"):
            level = Account.of_text(name[9:])
            self.balances[level] = read_row(Decoders.balance, key, text)
            return level if level.block else None
        elif name.startswith("blocks\t"):
            self.rows[Account.of_text(name[7:])] = read_row(Decoders.blocks, key, text)
        return None

    def row_of(self, root: str, record: RootRecord) -> Put:
        """Return the row of a root."""
        row = RootRow(record, self.lapses_from[root], self.stored[root])
        return Put((root, ROOTS), text_of(row))

"""What the clients asked, what was reported to them, and the state of the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias

Path: TypeAlias = tuple[str, ...]


class Amount(NamedTuple):
    """Information and calls."""

    information: int
    calls: int

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.information + other.information, self.calls + other.calls)

    def within(self, bound: Amount) -> bool:
        """Tell whether neither unit is above `bound`."""
        return self.information <= bound.information and self.calls <= bound.calls


NOTHING = Amount(0, 0)


@dataclass
class Sum:
    """What was spent at a level: by everybody, under no name, and by each block alone."""

    paid: dict[str, Amount] = field(default_factory=dict)

    def add(self, cost: Amount, blocks: tuple[str, ...]) -> None:
        """Add a cost of some blocks, or of everybody."""
        for block in blocks or ("",):
            self.paid[block] = self.paid.get(block, NOTHING).plus(cost)

    @property
    def spent(self) -> Amount:
        """What everybody has spent with the most that a block has, in each unit."""
        own = [each for block, each in self.paid.items() if block]
        most = Amount(*(max(amounts) for amounts in zip(*own, strict=True))) if own else NOTHING
        return self.paid.get("", NOTHING).plus(most)


class Fate(Enum):
    """What a client knows of a request when it stops asking.

    UNTOUCHED: every attempt was answered "nothing was changed". UNKNOWN: an answer was lost, and none came later.
    """

    ACKNOWLEDGED = "acknowledged"
    REFUSED = "refused"
    UNTOUCHED = "untouched"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Reported:
    """One request and what became of it. A charge may be paid for by some `blocks` alone.

    `most` is what it may spend (nothing unless it is a charge), `spent` what the answer says it did, `held` what it may
    hold (nothing unless it reserves); `reservation_id` is the one that it makes or ends. `answer` is the answer or
    refusal in bytes, without the flag that tells a repeat; empty if there is none.
    """

    request_id: str
    account: Path
    fate: Fate
    most: Amount = NOTHING
    spent: Amount = NOTHING
    answer: bytes = b""
    held: Amount = NOTHING
    reservation_id: str = ""
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Replay:
    """A request that was repeated after it had been answered."""

    request_id: str
    first: bytes
    again: bytes


@dataclass(frozen=True)
class Level:
    """A level as GetBudget tells it."""

    limit: Amount
    spent: Amount
    reserved: Amount


@dataclass(frozen=True)
class Entry:
    """A line of the journal; `depths` are the levels that it counts on. One that is forfeited is a reservation's.

    Levels above the account count the `shared` cost; None: what the account counts. A line of the kind `limit` takes
    nothing, and sets the account's `limit`; None: it removes it.
    """

    request_id: str
    account: Path
    cost: Amount
    depths: tuple[int, ...]
    is_forfeited: bool = False
    shared: Amount | None = None
    kind: str = ""
    limit: Amount | None = None
    blocks: tuple[str, ...] = ()

    def cost_at(self, depth: int) -> Amount:
        """Return what counts at a level of the account."""
        return self.cost if self.shared is None or depth == len(self.account) else self.shared


@dataclass
class History:
    """What happened on the clients' side; `seen` has each level in the order in which it was looked at.

    `connectors` are the costs that the connector may have held, by the names of its releases.
    """

    reported: list[Reported] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    seen: list[tuple[Path, Level]] = field(default_factory=list)
    connectors: dict[str, Amount] = field(default_factory=dict)


@dataclass(frozen=True)
class Truth:
    """What the ledger says when all is over: GetBudget of every level, and the journal from the store itself.

    `differences` is how often the service itself found a balance that is not what its journal says, and `above` the
    charges that were made above a limit that was set before them.
    """

    levels: Mapping[Path, Level]
    journal: tuple[Entry, ...]
    differences: int = 0
    above: tuple[str, ...] = ()

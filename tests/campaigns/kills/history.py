"""What callers were shown, what was shown to them again afterwards, and what the ledger says."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.campaigns.chaos.history import NOTHING, Amount, Path
from tests.campaigns.kills.questions import Asked

__all__ = ("NOTHING", "Amount", "Path")


@dataclass(frozen=True)
class Shown:
    """An answer as it arrived; `content` is all of it except what was charged and what was left then."""

    account: Path
    asked: Asked
    request_id: str
    query_id: str
    release_id: str
    content: bytes
    price: Amount
    charged: Amount
    replayed: bool = False


@dataclass(frozen=True)
class Line:
    """A charge in the journal."""

    account: Path
    query_id: str
    release_id: str
    cost: Amount
    kind: str = "settled"

    @property
    def is_answered(self) -> bool:
        """Whether it is for a release: a question that ends after its first noise is charged without one."""
        return self.release_id != ""


@dataclass(frozen=True)
class Level:
    """A level as GetBudget tells it."""

    limit: Amount
    spent: Amount
    reserved: Amount


@dataclass
class Heard:
    """What callers heard while things broke."""

    shown: list[Shown] = field(default_factory=list)
    asked: set[tuple[Path, Asked]] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    left: int = 0
    seen: list[tuple[Path, Level]] = field(default_factory=list)


@dataclass(frozen=True)
class FinalState:
    """What everything says once all is at rest.

    Attributes:
        journal: Every charge, before anything was asked again.
        grown: How many lines the journal has more after everything was asked again by those who had paid.
        anew: Answers to an account that had asked nothing before.
        again: Answers to those who had paid, asked as before.
        repeated: Pairs of an answer and the one to the same request id, sent again.
        levels: All levels of all accounts.
        refused: What was refused although nothing is broken any more.
        differences: How many balances differ from the journal by the service's own account.
    """

    journal: tuple[Line, ...]
    grown: int
    anew: tuple[Shown, ...]
    again: tuple[Shown, ...]
    repeated: tuple[tuple[Shown, Shown], ...]
    levels: dict[Path, Level]
    refused: tuple[str, ...]
    differences: int

"""The tree of accounts that a campaign spends on: some with room, some that share little, some with one unit left."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.campaigns.chaos.history import Amount, Path

ROOMY = 10**12
COMPANY = Amount(60, 12)
ANALYST = Amount(40, 5)
ONE_UNIT = Amount(3, 1)

_CONFIGURATION = """
expired_reservations: forfeit
shared_levels: {shared_levels}
accounts:
  - {{path: [roomy], limit: {{information: {roomy}, calls: {roomy}}}, window: sliding, days: 400}}
  - {{path: [roomy, "*"], limit: {{information: {roomy}, calls: {roomy}}}, window: sliding, days: 30}}
  - {{path: [roomy, "*", "*"], limit: {{information: {roomy}, calls: {roomy}}}, window: never}}
  - {{path: [shared], limit: {{information: {roomy}, calls: {roomy}}}, window: never}}
  - {{path: [shared, "*"], limit: {{information: {company[0]}, calls: {company[1]}}}, window: never}}
  - {{path: [shared, "*", "*"], limit: {{information: {analyst[0]}, calls: {analyst[1]}}}, window: sliding, days: 7}}
  - {{path: [late], limit: {{information: {roomy}, calls: {roomy}}}, window: never}}
  - {{path: [late, "*", "*"], limit: {{information: {roomy}, calls: {roomy}}}, window: never}}
  - {{path: [last], limit: {{information: {roomy}, calls: {roomy}}}, window: never}}
  - {{path: [last, "*"], limit: {{information: {one[0]}, calls: {one[1]}}}, window: never}}
"""


def configuration(shared_levels: str) -> str:
    """Return a budget.yaml; nothing leaves a window within a campaign, so that spending only ever grows."""
    limits = {"roomy": ROOMY, "company": COMPANY, "analyst": ANALYST, "one": ONE_UNIT}
    return _CONFIGURATION.format(shared_levels=shared_levels, **limits)


ROOTS = ("roomy", "shared", "late", "last")
# Companies of this root have no limit until an administrator sets one, while they are charged.
LATE = "late"
# Levels whose limits may be lowered for a while: what is asked of them then is refused, and nothing else happens.
LOWERED = tuple(("roomy", f"c{number}") for number in range(4))


# Roots some of whose charges are paid for by blocks of members alone.
DIVIDED = ("shared", "last")
Blocks: TypeAlias = tuple[str, ...]
PAYING: tuple[Blocks, ...] = ((), (), ("0" * 16,), ("f" * 16,), ("0" * 16, "f" * 16))


@dataclass
class Accounts:
    """Chooses accounts so that many callers meet at the edge of a limit; the edge moves on when somebody is refused."""

    rng: random.Random
    _company: int = 0
    _last: int = 0
    _late: int = 0
    used: set[Path] = field(default_factory=set)

    def choose(self) -> tuple[Path, Amount]:
        """Return an account and the most that one question on it costs."""
        kind = self.rng.random()
        if kind < 0.4:
            path: Path = ("roomy", f"c{self.rng.randrange(4)}", f"a{self.rng.randrange(25)}")
            most = Amount(self.rng.randint(1, 50), self.rng.randint(1, 3))
        elif kind < 0.55:
            path = (LATE, f"c{self._late}", f"a{self.rng.randrange(4)}")
            most = Amount(self.rng.randint(1, 9), 1)
        elif kind < 0.8:
            path = ("shared", f"c{self._company}", f"a{self.rng.randrange(4)}")
            most = Amount(self.rng.randint(1, 9), 1)
        else:
            path, most = ("last", f"a{self._last}"), ONE_UNIT
        self.used.add(path)
        return path, most

    def choose_blocks(self, path: Path) -> Blocks:
        """Return which blocks alone pay for a charge of an account, none: everybody."""
        return self.rng.choice(PAYING) if path[0] in DIVIDED else ()

    @property
    def late_company(self) -> Path:
        """The level without a limit, or with a late one, that is charged now."""
        return (LATE, f"c{self._late}")

    def late_companies(self) -> set[Path]:
        """Return all levels of that kind that were charged."""
        return {path[:2] for path in self.used if path[0] == LATE}

    def refused(self, account: Path) -> None:
        """Move on from an edge that has been reached."""
        if account == ("last", f"a{self._last}"):
            self._last += 1
        if account[:2] == self.late_company and self.rng.random() < 0.1:
            self._late += 1
        if account[:2] == ("shared", f"c{self._company}") and self.rng.random() < 0.2:
            self._company += 1

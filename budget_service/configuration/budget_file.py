"""The configuration of the ledger, `budget.yaml`.

    expired_reservations: return        # or forfeit
    shared_levels: actual               # or worst_case: levels above an account count what was reserved for a charge
    allow_volatile: false               # true: accept a store that forgets charges when it dies, for tests
    charge_tickets: {key_file: /run/secrets/gris-ticket-key}    # previous_key_files: [...] during a rotation
    leases: {share_percent: 10, outstanding_percent: 50, seconds: 600}      # only if regions borrow from this ledger
    administration:
      requires_reason: true                     # every change by an administrator says why; default false
    accounts:
      - path: [acme]
        limit: {information: 9000, calls: 900}
      - path: [acme, "*"]
        limit: {information: 3000, calls: 300}
        mode: enforce                   # or track
        window: month                   # day, week, month, never, or sliding with `days`
        zone: Europe/Berlin             # an IANA name; default UTC

Each entry limits one level: a `path` matches paths of its own length, `*` stands for any one segment, and the first
entry that matches counts. An account exists if an entry matches its full path. An entry with a `*` needs a limit above
it: see `endless_patterns`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from enum import Enum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from budget_service.configuration.endless_patterns import EndlessPatterns, enforces
from budget_service.configuration.path_tree import PathTree
from budget_service.configuration.sections import Administration, ChargeTickets, Leases
from budget_service.ledger.ignorable import first_ignorable
from budget_service.ledger.values import (
    ANY,
    MAX_AMOUNT,
    Account,
    Cost,
    InvalidFieldError,
    LevelLimit,
    Limit,
    Mode,
)
from budget_service.ledger.windows import MAX_SLIDING_DAYS, MIN_SLIDING_DAYS, Period, WindowRule, zones
from gris_serving.documents import Strict, problems_of
from gris_serving.garbage_collection import paused_collector
from gris_serving.yaml_texts import KeyPath, TextError, read_text

# One mistake may stand in each of many entries.
MOST_FAULTS = 20
# Levels above accounts; a few megabytes.
KEPT_LEVELS = 10_000
BOUNDED = (
    'a level above the first "*" that has a limit of its own with mode: enforce, since every '
    "new name is a new budget"
)


class ConfigurationError(Exception):
    """The configuration cannot be used. The message is one line that names the file and the field, and may quote it."""


class AccountUnknownError(Exception):
    """No account of this path exists."""


class InvisibleNameError(AccountUnknownError):
    """No account of this path exists, and none is made: segment `index` has a character that nobody sees."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index


class Expired(Enum):
    """What happens to the budget of a reservation that lapsed."""

    RETURN = "return"
    FORFEIT = "forfeit"


class _Maximum(Strict):
    information: int = Field(ge=0, le=MAX_AMOUNT)
    calls: int = Field(ge=0, le=MAX_AMOUNT)

    @property
    def cost(self) -> Cost:
        """The same as the rules know it."""
        return Cost(self.information, self.calls)


class AccountEntry(Strict):
    """One level of some accounts, and its limit."""

    path: list[str]
    limit: _Maximum
    mode: Literal["enforce", "track"] = "enforce"
    window: Literal["day", "week", "month", "never", "sliding"] = "month"
    days: int | None = Field(None, ge=MIN_SLIDING_DAYS, le=MAX_SLIDING_DAYS)
    zone: str = "UTC"

    @field_validator("path")
    @classmethod
    def _path_is_an_account(cls, path: list[str]) -> list[str]:
        try:
            Account.parse_pattern(path, "path")
        except InvalidFieldError as error:
            raise ValueError(str(error)) from None
        return path

    @field_validator("zone")
    @classmethod
    def _zone_is_known(cls, zone: str) -> str:
        if zone not in zones():
            raise ValueError(f"{zone!r} is not the name of an IANA time zone")
        return zone

    @model_validator(mode="after")
    def _only_a_sliding_window_has_days(self) -> AccountEntry:
        if (self.window == "sliding") != (self.days is not None):
            raise ValueError("a sliding window, and no other, has days")
        return self

    @property
    def has_wildcard(self) -> bool:
        """Return whether the entry matches more than one path."""
        return ANY in self.path

    def names_in(self, level: Account) -> list[str]:
        """Return the segments of a level as its maker chose them: empty where they are written out here."""
        return [
            chosen if written == ANY else "" for written, chosen in zip(self.path, level.path, strict=True)
        ]

    @cached_property
    def made_limit(self) -> Limit:
        """The limit as the rules know it."""
        rule = WindowRule(Period(self.window), self.zone, self.days or 0)
        return Limit(self.limit.cost, Mode(self.mode), rule)


class Configuration(Strict):
    """A valid `budget.yaml`."""

    accounts: list[AccountEntry] = Field(min_length=1)
    expired_reservations: Literal["return", "forfeit"] = "return"
    shared_levels: Literal["actual", "worst_case"] = "actual"
    allow_volatile: bool = False
    charge_tickets: ChargeTickets | None = None
    leases: Leases | None = None
    administration: Administration = Field(default_factory=Administration)

    @field_validator("charge_tickets", "leases", "administration", mode="before")
    @classmethod
    def _a_section_has_keys(cls, value: object) -> object:
        # Where all its keys are commented out, tickets would be required no more.
        if value is None:
            raise PydanticCustomError("dict_type", "expected keys and their values")
        return value

    @model_validator(mode="after")
    def _paths_differ(self) -> Configuration:
        if (repeated := self._tree.repeated) is not None:
            raise ValueError(f"accounts.{repeated}.path: {self.accounts[repeated].path} stands there twice")
        return self

    @model_validator(mode="after")
    def _accounts_have_an_end(self) -> Configuration:
        if (number := self._endless.first_unbounded(self.limit_of)) is not None:
            raise ValueError(f"accounts.{number}.path: expected {BOUNDED}")
        return self

    @property
    def counts_worst_cases(self) -> bool:
        """Return whether levels above an account count what was reserved for a charge, not its cost."""
        return self.shared_levels == "worst_case"

    @property
    def expired(self) -> Expired:
        """What happens to the budget of a reservation that lapsed."""
        return Expired(self.expired_reservations)

    def may_open(self, changes: Mapping[Account, Limit | None]) -> bool:
        """Return whether changes of limits take away one that bounds a pattern; if so, see `pattern_opened_by`."""
        return any(
            self._endless.needs(level) and not enforces(limit or self.limit_of(level))
            for level, limit in changes.items()
        )

    def pattern_opened_by(
        self, changes: Mapping[Account, Limit | None], stored: Mapping[Account, Limit]
    ) -> str | None:
        """Return a pattern that allows any number of accounts once limits are changed, and does not before.

        Limits that are `stored` in the ledger come before those of this file.
        """

        def limit_of(level: Account) -> Limit | None:
            return changes.get(level, stored.get(level)) or self.limit_of(level)

        opened = [
            level
            for level in changes
            if enforces(stored.get(level) or self.limit_of(level)) and not enforces(limit_of(level))
        ]
        number = self._endless.first_opened(opened, limit_of)
        return None if number is None else "/".join(self.accounts[number].path)

    def limits_of(self, account: Account, stored: Mapping[Account, Limit]) -> tuple[LevelLimit, ...]:
        """Return the levels of an account that have a limit, from the widest; the last one is the account itself.

        A limit that is `stored` in the ledger comes before those of this file, and creates its account.

        Raises:
            AccountUnknownError: There is no such account.
            InvisibleNameError: Only a wildcard matches it, and its name would look like another.
        """
        if account not in stored:
            self._require_made(account)
        if not stored:
            return self._limits_down_to(account)
        levels = [account.level(depth) for depth in range(1, account.depth + 1)]
        found = [(level, stored.get(level) or self.limit_of(level)) for level in levels]
        return tuple([LevelLimit(level, limit) for level, limit in found if limit is not None])

    def limit_of(self, level: Account) -> Limit | None:
        """Return the limit of one level by this file; None if it has none."""
        found = self._matching(level)
        return found[0].made_limit if found else None

    def rules_of(self, root: str, stored: Mapping[Account, Limit]) -> tuple[WindowRule, ...]:
        """Return the windows of all limits that a root has in this file or `stored` in the ledger."""
        rules = self._rules.get(root, Counter()) + self._rules.get(ANY, Counter())
        hidden = filter(None, map(self._written_out, stored))
        rules.subtract(each.made_limit.window for each in hidden)
        rules.update(each.window for each in stored.values())
        return tuple(+rules)

    def named_levels(self) -> list[Account]:
        """Return the levels whose paths are written out in full."""
        return [Account(tuple(entry.path)) for entry in self.accounts if not entry.has_wildcard]

    def _limits_down_to(self, level: Account) -> tuple[LevelLimit, ...]:
        above = self._limits_above(level.level(level.depth - 1)) if level.depth > 1 else ()
        limit = self.limit_of(level)
        return above if limit is None else (*above, LevelLimit(level, limit))

    def _limits_above(self, level: Account) -> tuple[LevelLimit, ...]:
        """Return the limits of a shared level, of which all accounts below have the same values."""
        found = self._kept.get(level)
        if found is None:
            if len(self._kept) >= KEPT_LEVELS:
                self._kept.clear()
            found = self._kept[level] = self._limits_down_to(level)
        return found

    @cached_property
    def _kept(self) -> dict[Account, tuple[LevelLimit, ...]]:
        return {}

    def is_written_out(self, account: Account) -> bool:
        """Return whether an entry has exactly this path."""
        return self._written_out(account) is not None

    def is_about(self, level: Account) -> bool:
        """Return whether an entry limits this level, or levels below it."""
        return self._tree.leads_to(level.path)

    def _require_made(self, account: Account) -> None:
        if self.is_written_out(account):
            return
        makers = self._matching(account)
        if not makers:
            raise AccountUnknownError
        unseen = [first_ignorable(each.names_in(account)) for each in makers]
        if None not in unseen:
            raise InvisibleNameError(unseen[0] or 0)

    def _written_out(self, level: Account) -> AccountEntry | None:
        return next((entry for entry in self._matching(level) if not entry.has_wildcard), None)

    def _matching(self, level: Account) -> list[AccountEntry]:
        return [self.accounts[number] for number in self._tree.matching(level.path)]

    @cached_property
    def _rules(self) -> dict[str, Counter[WindowRule]]:
        """How many limits have each window, by the first segment of their paths."""
        found: defaultdict[str, Counter[WindowRule]] = defaultdict(Counter)
        for entry in self.accounts:
            found[entry.path[0]][entry.made_limit.window] += 1
        return found

    @cached_property
    def _tree(self) -> PathTree:
        return PathTree(entry.path for entry in self.accounts)

    @cached_property
    def _endless(self) -> EndlessPatterns:
        return EndlessPatterns(self.accounts)


def load_configuration(path: Path) -> Configuration:
    """Read and check a configuration file.

    Raises:
        ConfigurationError: The file cannot be read, or is not a valid configuration.
    """
    lines: dict[KeyPath, int] = {}
    try:
        with paused_collector():
            text = read_text(path.read_bytes().decode())
            lines = text.lines
            return Configuration.model_validate(text.content)
    except (OSError, UnicodeDecodeError, TextError) as error:
        raise ConfigurationError(f"{path}: {_unread(error)}") from None
    except ValidationError as error:
        problems = list(islice(problems_of(error, lines), MOST_FAULTS))
        if (rest := error.error_count() - len(problems)) > 0:
            problems.append(f"and {rest} more")
        raise ConfigurationError(f"{path}: {'; '.join(problems)}") from None


def _unread(error: OSError | UnicodeDecodeError | TextError) -> str:
    """Return why there is no document, without the words of Python and its libraries."""
    if isinstance(error, OSError):
        return error.strerror or "cannot be read"
    if isinstance(error, UnicodeDecodeError):
        return "expected UTF-8"
    return str(error)

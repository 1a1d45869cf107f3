"""The judgement: what the clients were told, held against what the ledger says.

For every level and unit `acknowledged <= spent <= acknowledged + unknown` and `spent <= limit`; and exactly, request by
request: the journal has every acknowledged charge once, nothing that was refused, and nothing that nobody asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.chaos.history import NOTHING, Amount, Entry, Fate, History, Level, Path, Told, Truth


class Fault(Enum):
    """A way to break a promise."""

    LOST = "acknowledged charges lost"
    TWICE = "charges counted twice"
    UNASKED = "journal lines that nobody was told of or asked for"
    BELOW = "levels below what was acknowledged"
    ABOVE = "levels above acknowledged + unknown"
    OVERSPENT = "levels overspent"
    DIFFERING = "replays that differed"
    UNEQUAL = "levels that differ from the journal"
    BACKWARDS = "levels whose spending went back"
    HELD = "levels that still hold what has lapsed"


@dataclass(frozen=True)
class Finding:
    """One broken promise; `where` names the request or the level."""

    fault: Fault
    where: str


@dataclass(frozen=True)
class Report:
    """How many charges met which fate, and every broken promise.

    `acknowledged` charges took something; those of a release that was paid for before are counted as `free`.
    """

    acknowledged: int
    free: int
    unknown: int
    refused: int
    untouched: int
    replays: int
    acknowledged_information: int
    spent_information: int
    journal_lines: int
    findings: tuple[Finding, ...]

    def count(self, fault: Fault) -> int:
        """Return how often a promise was broken in this way."""
        return sum(finding.fault is fault for finding in self.findings)


def check(history: History, truth: Truth) -> Report:
    """Judge a history; the ledger must be at rest and every reservation over."""
    charges = [told for told in history.told if told.most != NOTHING]
    fates = Counter(told.fate for told in charges)
    free = sum(told.fate is Fate.ACKNOWLEDGED and told.spent == NOTHING for told in charges)
    told_spent = sum(told.spent.information for told in charges)
    return Report(
        acknowledged=fates[Fate.ACKNOWLEDGED] - free,
        free=free,
        unknown=fates[Fate.UNKNOWN],
        refused=fates[Fate.REFUSED],
        untouched=fates[Fate.UNTOUCHED],
        replays=len(history.replays),
        acknowledged_information=told_spent,
        spent_information=sum(entry.cost.information for entry in truth.journal),
        journal_lines=len(truth.journal),
        findings=tuple(_findings(history, charges, truth)),
    )


def _findings(history: History, charges: list[Told], truth: Truth) -> Iterator[Finding]:
    yield from _journal_findings(charges, truth.journal)
    yield from _balance_findings(charges, truth)
    yield from _level_findings(truth)
    yield from _seen_findings(history.seen)
    for replay in history.replays:
        if replay.first != replay.again:
            yield Finding(Fault.DIFFERING, replay.request_id)


def _journal_findings(charges: Iterable[Told], journal: Iterable[Entry]) -> Iterator[Finding]:
    lines: dict[str, list[Entry]] = defaultdict(list)
    for entry in journal:
        lines[entry.request_id].append(entry)
    asked = {told.request_id: told for told in charges}
    for told in charges:
        found = lines.get(told.request_id, [])
        if told.spent != NOTHING and not any(_is_of(entry, told, told.spent) for entry in found):
            yield Finding(Fault.LOST, told.request_id)
    for request_id, found in lines.items():
        if len(found) > 1:
            yield Finding(Fault.TWICE, request_id)
        if not all(_is_allowed(entry, asked.get(request_id)) for entry in found):
            yield Finding(Fault.UNASKED, request_id)


def _is_of(entry: Entry, told: Told, cost: Amount) -> bool:
    return (entry.account, entry.cost) == (told.account, cost)


def _is_allowed(entry: Entry, told: Told | None) -> bool:
    if told is None:
        return False
    match told.fate:
        case Fate.ACKNOWLEDGED:
            return told.spent != NOTHING
        case Fate.UNKNOWN:
            return _is_of(entry, told, told.most)
        case _:
            return False


def _balance_findings(charges: Iterable[Told], truth: Truth) -> Iterator[Finding]:
    least: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    most: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    for told in charges:
        unknown = told.most if told.fate is Fate.UNKNOWN else NOTHING
        for depth in range(1, len(told.account) + 1):
            path = told.account[:depth]
            least[path] = least[path].plus(told.spent)
            most[path] = most[path].plus(told.spent).plus(unknown)
    for path, level in truth.levels.items():
        if not least[path].within(level.spent):
            yield Finding(Fault.BELOW, "/".join(path))
        if not level.spent.within(most[path]):
            yield Finding(Fault.ABOVE, "/".join(path))


def _level_findings(truth: Truth) -> Iterator[Finding]:
    rebuilt = _rebuilt(truth.journal)
    for path, level in truth.levels.items():
        where = "/".join(path)
        if not level.spent.within(level.limit):
            yield Finding(Fault.OVERSPENT, where)
        if level.spent != rebuilt.get(path, NOTHING):
            yield Finding(Fault.UNEQUAL, where)
        if level.reserved != NOTHING:
            yield Finding(Fault.HELD, where)
    for path in rebuilt.keys() - truth.levels.keys():
        yield Finding(Fault.UNEQUAL, "/".join(path))


def _rebuilt(journal: Iterable[Entry]) -> Mapping[Path, Amount]:
    sums: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    for entry in journal:
        for depth in entry.depths:
            path = entry.account[:depth]
            sums[path] = sums[path].plus(entry.cost)
    return sums


def _seen_findings(seen: Iterable[tuple[Path, Level]]) -> Iterator[Finding]:
    last: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    for path, level in seen:
        where = f"{'/'.join(path)}, under load"
        if not level.spent.plus(level.reserved).within(level.limit):
            yield Finding(Fault.OVERSPENT, where)
        if not last[path].within(level.spent):
            yield Finding(Fault.BACKWARDS, where)
        last[path] = level.spent

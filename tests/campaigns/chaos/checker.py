"""Compares what was reported to the clients with the ledger.

For every level and unit `acknowledged <= spent <= acknowledged + unknown` and `spent <= limit`; and exactly, request by
request: the journal has every acknowledged charge once, nothing that was refused, and nothing that nobody asked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.campaigns.chaos.accounts import LATE, LOWERED
from tests.campaigns.chaos.history import (
    NOTHING,
    Amount,
    Entry,
    Fate,
    History,
    Level,
    Path,
    Reported,
    Sum,
    Truth,
)


class Fault(Enum):
    """A way to break a promise."""

    LOST = "acknowledged charges lost"
    TWICE = "charges counted twice"
    UNASKED = "journal entries that were not asked for or not reported"
    BELOW = "levels below what was acknowledged"
    ABOVE = "levels above acknowledged + unknown"
    OVERSPENT = "levels overspent"
    DIFFERING = "replays that differed"
    UNEQUAL = "levels that differ from the journal"
    BACKWARDS = "levels whose spending went back"
    HELD = "levels that still hold what has lapsed"
    RETURNED = "reservations that lapsed and were not forfeited"
    GROWN = "levels that were charged while their limit was below what is spent"
    UNVERIFIED = "differences that the service found itself"
    LATE = "direct charges above a limit that was set before"
    SHARED = "journal lines whose shared levels count another cost than was held"


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
    forfeited: int
    journal_lines: int
    findings: tuple[Finding, ...]

    def count(self, fault: Fault) -> int:
        """Return how often a promise was broken in this way."""
        return sum(finding.fault is fault for finding in self.findings)


def check(history: History, truth: Truth) -> Report:
    """Judge a history; the ledger must be at rest and every reservation over."""
    charges = [reported for reported in history.reported if reported.most != NOTHING]
    fates = Counter(reported.fate for reported in charges)
    free = sum(reported.fate is Fate.ACKNOWLEDGED and reported.spent == NOTHING for reported in charges)
    reported_spent = sum(reported.spent.information for reported in charges)
    return Report(
        acknowledged=fates[Fate.ACKNOWLEDGED] - free,
        free=free,
        unknown=fates[Fate.UNKNOWN],
        refused=fates[Fate.REFUSED],
        untouched=fates[Fate.UNTOUCHED],
        replays=len(history.replays),
        acknowledged_information=reported_spent,
        spent_information=sum(entry.cost.information for entry in truth.journal),
        forfeited=sum(entry.is_forfeited for entry in truth.journal),
        journal_lines=len(truth.journal),
        findings=tuple(_findings(history, charges, truth)),
    )


def _findings(history: History, charges: list[Reported], truth: Truth) -> Iterator[Finding]:
    spent = [entry for entry in truth.journal if not entry.is_forfeited]
    forfeited = [entry for entry in truth.journal if entry.is_forfeited]
    yield from _journal_findings(charges, spent)
    yield from _forfeit_findings(history, forfeited)
    held = {
        reported.reservation_id: reported.held
        for reported in history.reported
        if reported.reservation_id and reported.held != NOTHING
    }
    yield from _shared_findings(charges, truth.journal, held)
    yield from _balance_findings(charges, forfeited, truth, held)
    yield from (Finding(Fault.LATE, each) for each in truth.above)
    yield from (Finding(Fault.UNVERIFIED, "VerifyLedger") for _ in range(truth.differences))
    yield from _level_findings(truth)
    yield from _seen_findings(history.seen)
    for replay in history.replays:
        if replay.first != replay.again:
            yield Finding(Fault.DIFFERING, replay.request_id)


def _journal_findings(charges: Iterable[Reported], journal: Iterable[Entry]) -> Iterator[Finding]:
    lines: dict[str, list[Entry]] = defaultdict(list)
    for entry in journal:
        lines[entry.request_id].append(entry)
    asked = {reported.request_id: reported for reported in charges}
    for reported in charges:
        found = lines.get(reported.request_id, [])
        if reported.spent != NOTHING and not any(_is_of(entry, reported, reported.spent) for entry in found):
            yield Finding(Fault.LOST, reported.request_id)
    for request_id, found in lines.items():
        if len(found) > 1:
            yield Finding(Fault.TWICE, request_id)
        if not all(_is_allowed(entry, asked.get(request_id)) for entry in found):
            yield Finding(Fault.UNASKED, request_id)


def _is_of(entry: Entry, reported: Reported, cost: Amount) -> bool:
    return (entry.account, entry.cost, entry.blocks) == (reported.account, cost, reported.blocks)


def _is_allowed(entry: Entry, reported: Reported | None) -> bool:
    if reported is None:
        return False
    match reported.fate:
        case Fate.ACKNOWLEDGED:
            return reported.spent != NOTHING
        case Fate.UNKNOWN:
            return _is_of(entry, reported, reported.most)
        case _:
            return False


def _forfeit_findings(history: History, forfeited: Iterable[Entry]) -> Iterator[Finding]:
    """Each reservation ends once: settled, released, or forfeited in full; where an answer was lost, in one of them."""
    lines: dict[str, list[Entry]] = defaultdict(list)
    for entry in forfeited:
        lines[entry.request_id].append(entry)
    ends = {
        reported.reservation_id: reported.fate
        for reported in history.reported
        if reported.held == NOTHING and _may_end(reported)
    }
    for reported in history.reported:
        if reported.held == NOTHING:
            continue
        found = lines.pop(reported.request_id, [])
        end = ends.get(reported.reservation_id)
        if len(found) > 1:
            yield Finding(Fault.TWICE, reported.request_id)
        if found and (
            reported.fate in _WITHOUT_HOLD or end is Fate.ACKNOWLEDGED or found[0].cost != reported.held
        ):
            yield Finding(Fault.UNASKED, reported.request_id)
        if not found and reported.fate is Fate.ACKNOWLEDGED and end is None:
            yield Finding(Fault.RETURNED, reported.request_id)
    for name, found in lines.items():
        # The connector makes a reservation anew if it has lapsed.
        if not all(entry.cost == history.connectors.get(name) for entry in found):
            yield Finding(Fault.UNASKED, name)


_WITHOUT_HOLD = (Fate.REFUSED, Fate.UNTOUCHED)


def _may_end(reported: Reported) -> bool:
    return reported.reservation_id != "" and reported.fate in (Fate.ACKNOWLEDGED, Fate.UNKNOWN)


def _shared_findings(
    charges: Iterable[Reported], journal: Iterable[Entry], held: Mapping[str, Amount]
) -> Iterator[Finding]:
    """Levels above count what was held, or what a release cost if the replica says so; a direct charge has one cost."""
    most = {reported.request_id: held.get(reported.reservation_id, reported.most) for reported in charges}
    for entry in journal:
        may_differ = not entry.is_forfeited and entry.request_id in most
        if entry.shared is not None and (not may_differ or entry.shared != most[entry.request_id]):
            yield Finding(Fault.SHARED, entry.request_id)


def _balance_findings(
    charges: Iterable[Reported], forfeited: Iterable[Entry], truth: Truth, held: Mapping[str, Amount]
) -> Iterator[Finding]:
    least: dict[Path, Sum] = defaultdict(Sum)
    most: dict[Path, Sum] = defaultdict(Sum)
    for reported in charges:
        cost = reported.most if reported.fate is Fate.UNKNOWN else reported.spent
        for depth in range(1, len(reported.account) + 1):
            is_shared = depth < len(reported.account) and cost != NOTHING
            above = held.get(reported.reservation_id, cost) if is_shared else cost
            path = reported.account[:depth]
            least[path].add(reported.spent, reported.blocks)
            most[path].add(above, reported.blocks)
    for entry in forfeited:
        for depth in entry.depths:
            path = entry.account[:depth]
            least[path].add(entry.cost, entry.blocks)
            most[path].add(entry.cost, entry.blocks)
    for path, level in truth.levels.items():
        if not least[path].spent.within(level.spent):
            yield Finding(Fault.BELOW, "/".join(path))
        if not level.spent.within(most[path].spent):
            yield Finding(Fault.ABOVE, "/".join(path))


def _level_findings(truth: Truth) -> Iterator[Finding]:
    rebuilt = _rebuilt(truth.journal)
    for path, level in truth.levels.items():
        where = "/".join(path)
        # Its limit may have been set below what was spent.
        if not level.spent.within(level.limit) and not _may_be_above(path):
            yield Finding(Fault.OVERSPENT, where)
        if level.spent != rebuilt.get(path, NOTHING):
            yield Finding(Fault.UNEQUAL, where)
        if level.reserved != NOTHING:
            yield Finding(Fault.HELD, where)
    for path in rebuilt.keys() - truth.levels.keys():
        yield Finding(Fault.UNEQUAL, "/".join(path))


def _may_be_above(path: Path) -> bool:
    return path in LOWERED or (path[0] == LATE and len(path) == 2)


def _rebuilt(journal: Iterable[Entry]) -> Mapping[Path, Amount]:
    sums: dict[Path, Sum] = defaultdict(Sum)
    for entry in journal:
        for depth in entry.depths:
            sums[entry.account[:depth]].add(entry.cost_at(depth), entry.blocks)
    return {path: each.spent for path, each in sums.items()}


def _seen_findings(seen: Iterable[tuple[Path, Level]]) -> Iterator[Finding]:
    last: dict[Path, Level] = {}
    for path, level in seen:
        where = f"{'/'.join(path)}, under load"
        before = last.get(path, level)
        used = level.spent.plus(level.reserved)
        if _may_be_above(path) and not used.within(level.limit):
            # Its limit was set or lowered below what is used: that may only shrink, or turn from held to spent.
            if before.limit == level.limit and not used.within(before.spent.plus(before.reserved)):
                yield Finding(Fault.GROWN, where)
        elif not used.within(level.limit):
            yield Finding(Fault.OVERSPENT, where)
        if not before.spent.within(level.spent):
            yield Finding(Fault.BACKWARDS, where)
        last[path] = level

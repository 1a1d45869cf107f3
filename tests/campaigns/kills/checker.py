"""Holds what callers were shown against the journal; does no I/O."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain

from tests.campaigns.kills.history import NOTHING, Amount, FinalState, Heard, Level, Line, Path, Shown

# What an asker may hear while processes die, by the reason of the gateway or, without one, by gRPC's code.
EXPECTED_REFUSALS = frozenset(
    (
        "UNAVAILABLE",
        "OUTCOME_UNKNOWN",
        "BUDGET_EXHAUSTED",
        "BUDGET_HELD",
        "OVERLOADED",
        "code CANCELLED",
        "code DEADLINE_EXCEEDED",
        "code UNAVAILABLE",
    )
)


class Fault(Enum):
    """A way to break a promise."""

    DIFFERING = "answers to one question on one version that differ"
    TWO_RELEASES = "questions on one version with two releases"
    TWICE = "releases that an account was charged for twice"
    UNPAID = "answers without a charge"
    LOST = "charges that callers know of and the journal has not"
    PRICE = "charges that are not what the release costs"
    NOT_GIVEN = "charges whose answer is not given again"
    PAID_AGAIN = "answers that were charged when they were asked for again"
    FORGOTTEN = "request ids whose answer is another one when they are sent again"
    UNEQUAL = "levels that differ from the journal"
    OVER = "levels above their limit"
    HELD = "levels that hold something when all is over"
    UNVERIFIED = "differences that the service found itself"
    UNEXPECTED = "refusals that no kill explains"


@dataclass(frozen=True)
class Finding:
    """One broken promise, and where."""

    fault: Fault
    where: str


def findings_of(heard: Heard, after: FinalState) -> tuple[Finding, ...]:
    """Return every promise that was broken."""
    parts = (
        _answer_findings((*heard.shown, *after.anew, *after.again)),
        _journal_findings(after.journal),
        _payment_findings(heard.shown, after),
        _again_findings(after),
        _level_findings(heard, after),
        (Finding(Fault.UNVERIFIED, "VerifyLedger") for _ in range(after.differences)),
        (Finding(Fault.UNEXPECTED, each) for each in heard.refused if each not in EXPECTED_REFUSALS),
        (Finding(Fault.UNEXPECTED, each) for each in after.refused),
    )
    return tuple(chain.from_iterable(parts))


def _answer_findings(answers: tuple[Shown, ...]) -> Iterator[Finding]:
    contents, releases = defaultdict(set), defaultdict(set)
    for each in answers:
        contents[each.query_id, each.asked].add(each.content)
        releases[each.query_id].add(each.release_id)
    yield from (Finding(Fault.DIFFERING, str(key)) for key, found in contents.items() if len(found) > 1)
    yield from (Finding(Fault.TWO_RELEASES, key) for key, found in releases.items() if len(found) > 1)


def _journal_findings(journal: tuple[Line, ...]) -> Iterator[Finding]:
    paid = Counter((line.account, line.query_id) for line in journal if line.is_answered)
    yield from (Finding(Fault.TWICE, str(key)) for key, times in paid.items() if times > 1)


def _payment_findings(shown: list[Shown], after: FinalState) -> Iterator[Finding]:
    answered = [line for line in after.journal if line.is_answered]
    lines = {(line.account, line.query_id): line for line in answered}
    prices = {each.query_id: each for each in (*shown, *after.anew)}
    for each in shown:
        line = lines.get((each.account, each.query_id))
        if line is None or line.release_id != each.release_id:
            yield Finding(Fault.UNPAID, f"{each.account} {each.asked}")
        elif each.charged not in (NOTHING, line.cost):
            yield Finding(Fault.LOST, f"{each.account} {each.asked}")
    for line in answered:
        sold = prices.get(line.query_id)
        if sold is not None and (sold.price, sold.release_id) != (line.cost, line.release_id):
            yield Finding(Fault.PRICE, f"{line.account} {sold.asked}")


def _again_findings(after: FinalState) -> Iterator[Finding]:
    given = {(each.account, each.query_id) for each in after.again}
    for line in after.journal:
        if line.is_answered and (line.account, line.query_id) not in given:
            yield Finding(Fault.NOT_GIVEN, f"{line.account} {line.query_id}")
    for each in after.again:
        if each.charged != NOTHING:
            yield Finding(Fault.PAID_AGAIN, f"{each.account} {each.asked}")
    yield from (Finding(Fault.PAID_AGAIN, "the journal has grown") for _ in range(after.grown))
    for first, second in after.repeated:
        if (first.query_id, first.content) != (second.query_id, second.content):
            yield Finding(Fault.FORGOTTEN, f"{first.account} {first.request_id}")


def _level_findings(heard: Heard, after: FinalState) -> Iterator[Finding]:
    spent: dict[Path, Amount] = defaultdict(lambda: NOTHING)
    for line in after.journal:
        for depth in range(1, len(line.account) + 1):
            path = line.account[:depth]
            spent[path] = spent[path].plus(line.cost)
    for path, level in after.levels.items():
        if level.spent != spent[path]:
            yield Finding(Fault.UNEQUAL, str(path))
        if level.reserved != NOTHING:
            yield Finding(Fault.HELD, str(path))
    for path, level in (*heard.seen, *after.levels.items()):
        if not _is_within(level):
            yield Finding(Fault.OVER, str(path))


def _is_within(level: Level) -> bool:
    return level.spent.plus(level.reserved).within(level.limit)

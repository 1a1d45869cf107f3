"""Figure 5 of the paper from entries of a journal: by whose end of a day a limit would have been exhausted."""

from __future__ import annotations

from gris_api.budget.v1 import admin_pb2

from gris_cli.budget.exhaustion import DAY, Exhaustion

START = 1_790_000_000_000_000
# ann: 3, 7 (third day), 9 (fourth); bob: 5 on the second day.
CHARGES = (("ann", 3), ("bob", 5), ("ann", 4), ("ann", 2))


def entries() -> list[admin_pb2.JournalEntry]:
    """Return a charge a day, and something that is no charge."""
    found = []
    for day, (name, amount) in enumerate(CHARGES):
        entry = admin_pb2.JournalEntry(
            account={"path": ["acme", name]}, cost={"information": amount, "calls": 1}
        )
        entry.kind = admin_pb2.CHARGE_KIND_DIRECT
        entry.time.FromMicroseconds(START + day * DAY)
        found.append(entry)
    refund = admin_pb2.JournalEntry(account={"path": ["acme", "eve"]}, cost={"information": 99})
    refund.kind = admin_pb2.CHARGE_KIND_REFUNDED
    refund.time.FromMicroseconds(START)
    return [*found, refund]


def of(start: int, days: int, depth: int) -> Exhaustion:
    """Return what these entries have exhausted."""
    found = Exhaustion(start, days, depth)
    for each in entries():
        found.add(each)
    return found


def test_it_tells_who_would_have_exhausted_what_by_when() -> None:
    """For both units; a limit that nobody reaches is exhausted by none."""
    found = of(START, 4, 2)
    assert 2 == len(found.spent)
    expected = {3: [1, 2, 2, 2], 5: [0, 1, 2, 2], 9: [0, 0, 0, 1], 10: [0, 0, 0, 0]}
    assert expected == {limit: found.exhausted("information", limit) for limit in expected}
    assert [[1, 2, 2, 2], [0, 0, 1, 1]] == [found.exhausted("calls", limit) for limit in (1, 2)]


def test_it_adds_up_what_is_below_and_leaves_out_what_was_before() -> None:
    """At depth 1 the company is one account."""
    found = of(START + DAY, 3, 1)
    assert (1, [0, 1, 1]) == (len(found.spent), found.exhausted("information", 6))

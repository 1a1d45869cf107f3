"""The judge is judged: every way to break a promise is found, and an honest history is not accused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.campaigns.chaos.checker import Fault, check
from tests.campaigns.chaos.history import (
    NOTHING,
    Amount,
    Entry,
    Fate,
    History,
    Level,
    Path,
    Replay,
    Reported,
    Truth,
)
from tests.campaigns.chaos.late_limits import charges_above

ANN: Path = ("acme", "ann")
LIMIT = Amount(10, 3)
COST = Amount(4, 1)


def reported(id_: str, fate: Fate = Fate.ACKNOWLEDGED, spent: Amount = NOTHING) -> Reported:
    """Return a charge of COST."""
    return Reported(id_, ANN, fate, most=COST, spent=spent, answer=b"answer")


def entry(id_: str, cost: Amount = COST) -> Entry:
    """Return a line of the journal that counts for the company and the analyst."""
    return Entry(id_, ANN, cost, (1, 2))


def truth(*journal: Entry, spent: Amount | None = None, reserved: Amount = NOTHING) -> Truth:
    """Return a ledger with this journal, whose balances say `spent` if they are to differ from it."""
    total = NOTHING
    for each in journal:
        total = total.plus(each.cost)
    level = Level(LIMIT, total if spent is None else spent, reserved)
    return Truth({ANN[:1]: level, ANN: level}, journal)


def faults(history: History, found: Truth) -> set[Fault]:
    """Return every kind of fault that is found."""
    return {finding.fault for finding in check(history, found).findings}


PAID = reported("paid", spent=COST)
LOST = reported("lost", Fate.UNKNOWN)


@pytest.mark.parametrize("reached", [True, False])
def test_an_honest_history_is_not_accused(reached: bool) -> None:
    """An unknown charge may be there or not; a refused and an untouched one are not; a free one needs no line."""
    nothing = (reported("no", Fate.REFUSED), reported("down", Fate.UNTOUCHED), reported("free"))
    history = History([PAID, LOST, *nothing], [Replay("paid", b"answer", b"answer")])
    journal = (entry("paid"), entry("lost")) if reached else (entry("paid"),)
    report = check(history, truth(*journal))
    assert report.findings == ()
    assert (report.acknowledged, report.free, report.unknown) == (1, 1, 1)
    assert (report.refused, report.untouched, report.journal_lines) == (1, 1, len(journal))


def test_a_charge_of_another_amount_is_reported_as_lost() -> None:
    """What was acknowledged is the amount, not only that there was one."""
    assert Fault.LOST in faults(History([PAID]), truth(entry("paid", Amount(3, 1))))


WORST = Amount(7, 2)
WORST_HELD = Reported("hold", ANN, Fate.ACKNOWLEDGED, held=WORST, reservation_id="r", answer=b"answer")
SETTLED = replace(PAID, reservation_id="r")


@pytest.mark.parametrize("shared", [None, WORST])
def test_a_level_above_may_count_what_was_held(shared: Amount | None) -> None:
    """As the line says, whichever replica wrote it."""
    line = replace(entry("paid"), shared=shared)
    found = truth(line)
    above = replace(found.levels[ANN[:1]], spent=shared or COST)
    assert not faults(History([WORST_HELD, SETTLED]), replace(found, levels={**found.levels, ANN[:1]: above}))


@pytest.mark.parametrize("shared", [Amount(8, 2), Amount(1, 1)])
def test_a_level_above_that_counts_neither_is_reported(shared: Amount) -> None:
    """More or less than was held; and a direct charge has one cost."""
    line = replace(entry("paid"), shared=shared)
    assert Fault.SHARED in faults(History([WORST_HELD, SETTLED]), truth(line))
    assert Fault.SHARED in faults(History([PAID]), truth(replace(line, shared=WORST)))
    assert Fault.UNEQUAL in faults(History([WORST_HELD, SETTLED]), truth(replace(line, shared=WORST)))


def test_a_charge_on_another_account_is_reported_as_lost() -> None:
    """The journal line has to be the payer's."""
    elsewhere = replace(entry("paid"), account=("acme", "bob"))
    assert Fault.LOST in faults(History([PAID]), truth(elsewhere))


def test_a_charge_that_nobody_asked_for_is_reported() -> None:
    """So is one that was said to be free."""
    assert Fault.UNASKED in faults(History(), truth(entry("whose")))
    assert Fault.UNASKED in faults(History([reported("free")]), truth(entry("free")))


def test_a_replay_that_differs_is_reported() -> None:
    """By a single byte."""
    history = History([PAID], [Replay("paid", b"answer", b"answeR")])
    report = check(history, truth(entry("paid")))
    assert report.count(Fault.DIFFERING) == len(report.findings) == 1


HELD = Reported("hold", ANN, Fate.ACKNOWLEDGED, answer=b"answer", held=COST, reservation_id="r")


THREE = [reported(f"c{number}", spent=COST) for number in range(3)]


@pytest.mark.parametrize(
    ("history", "ledger", "found"),
    [
        # Acknowledged, and neither in the journal nor in the balance.
        (History([PAID]), truth(), {Fault.LOST, Fault.BELOW}),
        # Two lines of one request, as a retry without a remembered outcome leaves.
        (History([PAID]), truth(entry("paid"), entry("paid")), {Fault.TWICE, Fault.ABOVE}),
        # "Nothing was changed" is a promise too.
        (History([reported("no", Fate.REFUSED)]), truth(entry("no")), {Fault.UNASKED, Fault.ABOVE}),
        (History([reported("no", Fate.UNTOUCHED)]), truth(entry("no")), {Fault.UNASKED, Fault.ABOVE}),
        # Three charges of four on a limit of ten; what is held counts at once, even if it is given back in the end.
        (History(THREE), truth(*(entry(each.request_id) for each in THREE)), {Fault.OVERSPENT}),
        (
            History([PAID], seen=[(ANN, Level(LIMIT, COST, Amount(7, 1)))]),
            truth(entry("paid")),
            {Fault.OVERSPENT},
        ),
        # A ledger that forgot a charge and got it again would look right in the end.
        (
            History([PAID], seen=[(ANN, Level(LIMIT, each, NOTHING)) for each in (COST, NOTHING)]),
            truth(entry("paid")),
            {Fault.BACKWARDS},
        ),
        (History([PAID]), truth(entry("paid"), spent=Amount(5, 1)), {Fault.UNEQUAL, Fault.ABOVE}),
        (History([PAID]), Truth({}, (entry("paid"),)), {Fault.UNEQUAL}),
        # Every reservation has lapsed when the ledger is judged, and was settled, released or forfeited.
        (History([PAID]), truth(entry("paid"), reserved=Amount(0, 1)), {Fault.HELD}),
        (History([HELD]), truth(), {Fault.RETURNED}),
        # VerifyLedger, or a journal that is not trimmed because it differs; the journal is read before.
        (History(), replace(truth(), differences=1), {Fault.UNVERIFIED}),
        (History([PAID]), replace(truth(entry("paid")), above=("c",)), {Fault.LATE}),
    ],
)
def test_every_broken_promise_is_reported(history: History, ledger: Truth, found: set[Fault]) -> None:
    """By its kind, and by nothing else."""
    assert faults(history, ledger) == found


def end_of_hold(fate: Fate = Fate.ACKNOWLEDGED) -> Reported:
    """Return a settlement of HELD that took nothing."""
    return Reported("end", ANN, fate, reservation_id="r")


def forfeit(id_: str = "hold", cost: Amount = COST) -> Entry:
    """Return the line of a reservation that lapsed."""
    return Entry(id_, ANN, cost, (1, 2), is_forfeited=True)


def test_an_honest_forfeit_is_not_accused() -> None:
    """One that nobody ended; one whose end was lost may be there or not; one that was ended is not."""
    assert faults(History([HELD]), truth(forfeit())) == set()
    for journal in ((), (forfeit(),)):
        assert faults(History([HELD, end_of_hold(Fate.UNKNOWN)]), truth(*journal)) == set()
    assert faults(History([HELD, end_of_hold()]), truth()) == set()
    of_connector = History(connectors={"connector-1": COST})
    assert faults(of_connector, truth(forfeit("connector-1"), forfeit("connector-1"))) == set()


@pytest.mark.parametrize(
    ("reported", "journal"),
    [
        ([HELD, end_of_hold()], [forfeit()]),
        ([HELD], [forfeit(cost=Amount(1, 1))]),
        ([replace(HELD, fate=Fate.REFUSED)], [forfeit()]),
        ([], [forfeit("nobody")]),
    ],
)
def test_a_forfeit_that_must_not_be_is_reported(reported: list[Reported], journal: list[Entry]) -> None:
    """Of a reservation that was ended, of another amount, that was refused, that nobody made."""
    assert Fault.UNASKED in faults(History(reported), truth(*journal))


def test_a_reservation_that_is_forfeited_twice_is_reported() -> None:
    """It ends once."""
    assert Fault.TWICE in faults(History([HELD]), truth(forfeit(), forfeit()))


def test_growth_above_a_lowered_limit_is_reported() -> None:
    """What is held may turn to spent there, and shrink."""
    low = Amount(1, 1)
    path: Path = ("roomy", "c1")
    before = (path, Level(low, Amount(4, 2), Amount(4, 2)))
    honest = (path, Level(low, Amount(6, 3), Amount(1, 0)))
    grown = (path, Level(low, Amount(8, 4), Amount(4, 2)))
    assert faults(History(seen=[before, honest]), truth()) == set()
    assert faults(History(seen=[before, grown]), truth()) == {Fault.GROWN}


def limited(most: Amount | None, level: Path = ANN[:1]) -> Entry:
    """Return a line that sets a limit."""
    return replace(entry("limit", NOTHING), account=level, depths=(), kind="limit", limit=most)


def direct(id_: str, cost: Amount = COST) -> Entry:
    """Return a direct charge."""
    return replace(entry(id_, cost), kind="direct")


def test_a_direct_charge_above_a_limit_that_was_set_before_is_found() -> None:
    """From its line on, by what was charged before it too; without a limit anything goes."""
    settled = replace(entry("settled"), kind="settled")
    room = limited(Amount(9, 3))
    for journal, found in (
        ((direct("a"), direct("b"), direct("c")), []),
        ((direct("a"), room, direct("b"), direct("c")), ["c"]),
        ((direct("a"), direct("b"), limited(Amount(4, 1)), direct("c")), ["c"]),
        ((direct("a"), direct("b"), limited(Amount(4, 1)), settled, direct("free", NOTHING)), []),
        ((direct("a"), limited(Amount(4, 3)), direct("calls", Amount(0, 1)), direct("b")), ["b"]),
        ((limited(Amount(4, 1)), direct("a"), limited(None), direct("b")), []),
        ((limited(Amount(4, 1), ("other",)), direct("a"), direct("b")), []),
    ):
        assert found == list(charges_above(journal))


def test_a_level_whose_limit_came_late_may_be_above_it_but_not_grow() -> None:
    """Others may never be above; what is held becomes spent."""
    late: Path = ("late", "c0")
    before, after = Level(LIMIT, Amount(12, 3), COST), Level(LIMIT, Amount(16, 4), NOTHING)
    grown = Level(LIMIT, Amount(17, 4), NOTHING)
    assert set() == faults(History(seen=[(late, before), (late, after)]), Truth({}, ()))
    assert {Fault.GROWN} == faults(History(seen=[(late, before), (late, grown)]), Truth({}, ()))
    assert {Fault.OVERSPENT} == faults(History(seen=[(ANN, before)]), Truth({}, ()))

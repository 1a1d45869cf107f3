"""Breadth-first over all interleavings of a world's acts; each state is made by the real rules, and checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import NamedTuple, TypeVar

from budget_service.ledger.act import Act
from budget_service.ledger.acts.cancel import CancelReservation
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.reserve import Reserve
from tests.support.budget_samples import COMPANY
from tests.unit.budget_service.ledger.exploration.checks import broken, broken_by
from tests.unit.budget_service.ledger.exploration.leases import LEASED, Leases
from tests.unit.budget_service.ledger.exploration.states import GRANTED, State
from tests.unit.budget_service.ledger.exploration.worlds import START, TICK, World

_State = TypeVar("_State", State, Leases)


class Explored(NamedTuple):
    """How much was explored; every answer of an edge and every state was checked."""

    states: int
    edges: int
    depth: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.states:,} states, {self.edges:,} edges, depth {self.depth}, {self.seconds:.0f} s"


class BrokenError(AssertionError):
    """A promise is broken, after a history of acts."""

    def __init__(self, problem: str, state: State | Leases) -> None:
        acts: list[str] = []
        trail = state.trail
        while trail:
            act, trail = trail
            acts.append(act)
        super().__init__(f"{problem}, after: {', '.join(reversed(acts))}")


def explored(world: World, depth: int | None = None) -> Iterator[Explored]:
    """Explore a world, to its end or to a depth; say after each act more how much there was. Raises BrokenError."""
    if world is LEASED:
        return _search(Leases(), Leases.following, Leases.problems, depth)
    return _search(State(world), _following, broken, depth)


def _search(
    first: _State,
    following_of: Callable[[_State], Iterator[_State]],
    problems_of: Callable[[_State], Iterator[str]],
    depth: int | None,
) -> Iterator[Explored]:
    began = process_time()
    seen, frontier, edges, reached = {first.key()}, [first], 0, 0
    while frontier and reached != depth:
        following = []
        for state in frontier:
            for after in following_of(state):
                edges += 1
                key = after.key()
                if key not in seen:
                    seen.add(key)
                    _refuse(after, problems_of(after))
                    following.append(after)
        frontier, reached = following, reached + bool(following)
        yield Explored(len(seen), edges, reached, process_time() - began)


def _following(state: State) -> Iterator[State]:
    """Return every state that one act leads to."""
    if state.now < START + TICK * state.world.ticks:
        yield state.copied("tick", TICK)
    granted = [request for request, _, _ in state.answers.values()]
    held = {each.reservation_id for each in granted if isinstance(each, Reserve)}
    charged = {each.release_id for each in granted if isinstance(each, Charge)}
    for request in state.world.requests:
        if request.request_id in state.answers or not _is_possible(request, held, charged):
            continue
        try:
            after, answered = state.following(request)
        except ValueError as error:
            raise BrokenError(f"{type(error).__name__}: {error}", state.copied(request.request_id)) from error
        _refuse(after, broken_by(state, answered, after))
        if not isinstance(answered.outcome, GRANTED):
            # It may be sent again under another id, so that nothing of the refusal matters any more.
            after.store.remembered.pop((COMPANY.root, request.request_id), None)
        yield after


def _is_possible(request: Act, held: set[str], charged: set[str]) -> bool:
    """Return whether a request may be granted; before, it is refused whatever the state is."""
    match request:
        case Refund():
            return request.release_id in charged
        case Charge() | CancelReservation():
            return not request.reservation_id or request.reservation_id in held
    return True


def _refuse(state: State | Leases, problems: Iterator[str]) -> None:
    for problem in problems:
        raise BrokenError(problem, state)

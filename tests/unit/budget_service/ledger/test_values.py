"""What a cost and an account may be."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest
from gris_api.budget.v1 import budget_pb2
from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.clock import ResumeClock
from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.acts.refund import Refund
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.acts.write_off import WriteOff
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, InvalidFieldError
from budget_service.server.messages import parse_account
from tests.support.budget_samples import ANALYST, COMPANY, UNIT, Asked, charge, limit, reserve
from tests.unit.budget_service.root_acts import RootAct

ACTS: list[Any] = [
    WriteOff(account=ANALYST, request_id="id", actor="ops", reason="r"),
    Refund(
        account=ANALYST,
        request_id="id",
        release_id="rel",
        actor="ops",
        reason="wrong rows",
        query_id="q",
        cost=Cost(4, 1),
        shared_cost=Cost(6, 2),
        unit_id=UNIT,
        holds=(),
    ),
    SetLimits(
        actor="ops",
        account=COMPANY,
        request_id="id",
        changes=((ANALYST, limit(10, 5, days=7, zone="Asia/Kolkata")), (COMPANY, None)),
    ),
    ChangeCurrency(actor="ops", account=COMPANY, request_id="id", unit_id=UNIT),
    ResumeClock(actor="ops", account=COMPANY, request_id="id", true_time=5),
    *(
        kind(account=ANALYST, request_id="id", actor="ops", reason="left")
        for kind in (CloseAccount, ReopenAccount)
    ),
]


@pytest.mark.parametrize(
    "path",
    [("a",), ("a", "b", "c", "d"), ("x" * 128,), ("\u00e9" * 64,), ("{a}:+",), (" ",), ("\U0001f600",)],
)
def test_a_well_formed_path_is_an_account(path: tuple[str, ...]) -> None:
    """Any NFC text of 1 to 128 bytes without slashes, control and invisible characters is a segment."""
    assert path == Account.parse(path, "account.path").path


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ((), "account.path"),
        (("a", "b", "c", "d", "e"), "account.path"),
        (("a", ""), "account.path[1]"),
        (("x" * 129,), "account.path[0]"),
        (("\u00e9" * 65,), "account.path[0]"),
        (("a/b",), "account.path[0]"),
        (("a", "b\x00"), "account.path[1]"),
        (("a\x7f",), "account.path[0]"),
        (("a\u0085",), "account.path[0]"),
        (("a\u200b",), "account.path[0]"),
        (("acme", "\u202eann"), "account.path[1]"),
        (("\ufeffacme",), "account.path[0]"),
        (("a\u2028",), "account.path[0]"),
        (("e\u0301",), "account.path[0]"),
        (("\ud800",), "account.path[0]"),
        (("acme", "*"), "account.path[1]"),
        (("acme", "team-*"), "account.path[1]"),
        (("**",), "account.path[0]"),
    ],
)
def test_a_malformed_path_is_refused_by_field(path: tuple[str, ...], field: str) -> None:
    """The error names the segment that is wrong."""
    with pytest.raises(InvalidFieldError) as error:
        Account.parse(path, "account.path")
    assert field == error.value.field


class UnreadPath(Sequence[str]):
    """The path of a message with very many segments, none of which may be looked at."""

    def __len__(self) -> int:
        """Return as many as fit into the largest request."""
        return 32_000

    def __getitem__(self, index: Any) -> Any:
        """Fail."""
        raise AssertionError("a segment was read")


@pytest.mark.parametrize(
    "parse",
    [
        lambda path: Account.parse(path, "account.path"),
        lambda path: Account.parse_pattern(path, "account.path"),
        lambda path: parse_account(cast(budget_pb2.Account, SimpleNamespace(path=path))),
    ],
)
def test_a_path_of_too_many_segments_is_refused_without_reading_one(
    parse: Callable[[Sequence[str]], Account],
) -> None:
    """A request of 64 KiB would otherwise take thousands of times as long as others before it is refused."""
    with pytest.raises(InvalidFieldError, match=r"account\.path must have 1 to 4 segments"):
        parse(UnreadPath())


@pytest.mark.parametrize(
    ("information", "calls"), [(-1, 0), (0, -1), (MAX_AMOUNT + 1, 0), (0, MAX_AMOUNT + 1)]
)
def test_a_cost_outside_64_bits_is_an_error(information: int, calls: int) -> None:
    """Amounts are non-negative int64."""
    with pytest.raises(InvalidFieldError):
        Cost(information, calls)


def test_a_sum_outside_64_bits_is_an_error() -> None:
    """Nothing wraps around."""
    with pytest.raises(InvalidFieldError):
        Cost(MAX_AMOUNT, 0) + Cost(1, 0)


@pytest.mark.parametrize(
    ("other", "left"), [(Cost(1, 1), Cost(4, 1)), (Cost(9, 1), Cost(0, 1)), (Cost(1, 9), Cost(4, 0))]
)
def test_what_is_left_of_a_cost_is_0_in_a_unit_that_is_used_up(other: Cost, left: Cost) -> None:
    """Whatever is left in the other one."""
    assert left == Cost(5, 2).less(other)


def test_different_content_has_different_fingerprints() -> None:
    """Moving a character from one field to the next, or one field of a request, changes its fingerprint."""
    requests: list[Asked[Act]] = [
        charge("r", release_id="ab", query_id="c"),
        charge("r", release_id="a", query_id="bc"),
        charge("r", Cost(41, 1)),
        charge("r", Cost(4, 11)),
        charge("r", settles="x"),
        charge("r", account=Account(("acme", "ann", "x"))),
        reserve("r"),
        reserve("r", ttl_seconds=61),
    ]
    assert len(requests) == len({asked.request.fingerprint() for asked in requests})


@pytest.mark.parametrize("act", ACTS, ids=lambda each: type(each).__name__)
def test_what_another_administrator_sends_is_another_request(act: Any) -> None:
    """Its answer would otherwise be given to somebody whose act the journal does not have."""
    other, reasoned = replace(act, actor="ops sub:ann"), replace(act, actor="//actor")
    assert len({each.fingerprint() for each in (act, other, reasoned)}) == 3
    assert act.fingerprint() == replace(act).fingerprint()


def test_every_act_of_an_administrator_is_tried() -> None:
    """A new one too."""
    assert {type(each) for each in ACTS} == {*get_args(RootAct), Refund, WriteOff}

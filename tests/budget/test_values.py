"""What a cost and an account may be."""

import pytest

from budget_service.ledger.requests import Request
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost, InvalidFieldError
from tests.support.budget_samples import charge, reserve


@pytest.mark.parametrize(
    "path",
    [("a",), ("a", "b", "c", "d"), ("x" * 128,), ("\u00e9" * 64,), ("{a}:*",), (" ",), ("\U0001f600",)],
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
    ],
)
def test_a_malformed_path_is_refused_by_field(path: tuple[str, ...], field: str) -> None:
    """The error names the segment that is wrong."""
    with pytest.raises(InvalidFieldError) as error:
        Account.parse(path, "account.path")
    assert field == error.value.field


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


def test_different_content_has_different_fingerprints() -> None:
    """Moving a character from one field to the next, or one field of a request, changes its fingerprint."""
    requests: list[Request] = [
        charge("r", release_id="ab", query_id="c"),
        charge("r", release_id="a", query_id="bc"),
        charge("r", Cost(41, 1)),
        charge("r", Cost(4, 11)),
        charge("r", settles="x"),
        charge("r", account=Account(("acme", "ann", "x"))),
        reserve("r"),
        reserve("r", ttl_seconds=61),
    ]
    assert len(requests) == len({request.fingerprint() for request in requests})

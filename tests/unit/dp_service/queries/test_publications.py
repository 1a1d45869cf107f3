"""Policy statements: one text for what a policy has published, and nothing else is taken for one."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dp_service.queries.publications import (
    Publication,
    policy_statement,
    publication_of,
    publications_in,
)

ONE = Publication("0123456789abcdef", Fraction(1, 10), Fraction(1, 10**9))
OTHER = Publication("00ff" * 4, Fraction(5), Fraction(1, 2))
TEXT = "00ff00ff00ff00ff:5:1/2,0123456789abcdef:1/10:1/1000000000"


def test_a_statement_lists_each_publication_once_in_one_order() -> None:
    """Whatever order tables and columns have; nothing published is an empty text."""
    assert TEXT == policy_statement([ONE, OTHER]) == policy_statement([OTHER, ONE, OTHER])
    assert "" == policy_statement([])


def test_a_statement_says_what_was_stated() -> None:
    """Nothing is lost on the way to the ledger and back."""
    assert {ONE, OTHER} == publications_in(TEXT)
    assert frozenset() == publications_in("")


def test_a_publication_is_named_by_the_hash_of_its_file() -> None:
    """By its first 64 bits."""
    found = publication_of("sha256:" + "0123456789abcdef" * 4, Fraction(1, 10), Fraction(1, 10**9))
    assert found == ONE


@pytest.mark.parametrize(
    "text",
    [
        TEXT + ",",
        "," + TEXT,
        ",",
        " " + TEXT,
        TEXT + "\n",
        ",".join(reversed(TEXT.split(","))),
        TEXT.replace("00ff00ff00ff00ff", "00ff00ff00ff00f"),
        TEXT.replace("00ff00ff00ff00ff", "00FF00ff00ff00ff"),
        TEXT.replace(":5:", ":10/2:"),
        TEXT.replace(":5:", ":05:"),
        TEXT.replace(":5:", ":0:"),
        TEXT.replace(":5:", ":-5:"),
        TEXT.replace(":5:", ":5e0:"),
        TEXT.replace(":5:", ":\u0665:"),
        TEXT.replace(":5:", ":1" + "0" * 25 + ":"),
        TEXT.replace("1/2,", "2/4,"),
        TEXT.replace("1/2,", "1,"),
        TEXT.replace("1/2,", "3/2,"),
        f"{ONE},{ONE}",
        f"{ONE}:",
        "x",
        ",".join(f"{number:016x}:1/10:1/1000000000" for number in range(150)),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_what_dp_service_does_not_write_is_no_statement(text: str) -> None:
    """One set of publications has exactly one text, of at most 4096 bytes."""
    with pytest.raises(ValueError, match="expected"):
        publications_in(text)

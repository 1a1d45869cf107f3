"""What the services answer under fixed keys, data and time."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from .cases import KEPT, answers, cases

KINDS = (
    *("laplace, known domain", "laplace, unknown domain", "gumbel, known domain", "gumbel, unknown domain"),
    *("having", "empty", "bounded counts", "lookup", "series", "shift", "bounded moments"),
    *(
        "in the order of a sum",
        "two looks",
        "quantiles",
        "refused invalid_question",
        "refused refused_by_policy",
    ),
)
HOW = "\nIf this is meant: python -m tests.referee accept, and state in the commit what differs and why."


@pytest.mark.usefixtures("starts_processes")
def test_questions_are_answered_as_before() -> None:
    """The SQL for each engine, prices, released numbers with their ids, and refusals."""
    changes = list(unified_diff(KEPT.read_text().splitlines(), answers(), "kept", "now", n=0, lineterm=""))
    assert not changes, "\n".join(changes[:60]) + HOW


def test_every_kind_of_answer_has_a_case() -> None:
    """A kind without a case could change unseen."""
    names = [case.name for case in cases()]
    assert [] == [kind for kind in KINDS if not any(kind in name for name in names)]

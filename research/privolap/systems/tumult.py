"""Tumult Analytics on a Spark of its own, which runs in an interpreter of its own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from research.privolap.questions import Budget, Data, Kind, Question
from research.privolap.systems.frames import added_up, keyed_rows, keys_of_a_member, known_keys
from research.privolap.systems.opendp import rho_of
from research.privolap.systems.worker import LibraryElsewhere, command_of

PYTHON = Path("build/privolap-tumult/bin/python")
COMMAND = command_of(PYTHON, "tumult_worker.py")
MEASURES = {Kind.ROWS: "rows", Kind.SUM: "sum"}
SHARE_OF_NAMES = 2 / 3
"""Which part of a list's rho its names get, tuned, for which a member has one: best of 18 settings with Cofacts."""


class Tumult(LibraryElsewhere):
    """As the documentation has it: a session for each question, with its part of epsilon and delta.

    Keys are given where they are known; those of a list are found for half of the session's epsilon, by `get_groups`.

    Tuned, numbers are paid with zero-concentrated privacy, by the rho that OpenDP converts to the promise. Names of
    lists, which the library finds for epsilon and delta alone, have a session of their own, whose epsilon is worth its
    part of rho; numbers are then of members who are bounded in these names, in half as many as documented; only lists
    take a part of delta. A member's rows or amounts are added up before they are given to the library.
    """

    title = "Tumult Analytics"
    package = "tmlt.analytics"
    command = COMMAND

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by the worker."""
        made = _tuned if self.tuned else _documented
        keys = known_keys(question)
        asked = {"keys": [] if keys == ["0"] else keys, **made(question, data, budget, share)}
        said = self._worker.say(asked)
        if "error" in said:
            raise RuntimeError(said["error"])
        unit = asked.get("unit", 1)
        return {key: unit * value for key, value in said["found"].items()}


def _documented(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    epsilon, delta = budget.epsilon * share, budget.delta * share
    groups = keys_of_a_member(question, data)
    names = {"epsilon": epsilon / 2, "delta": delta}
    columns = ("member", "key", "amount") if question.kind is Kind.SUM else ("member", "key")
    return {
        "rows": keyed_rows(question, data).select(columns).to_dict(as_series=False),
        "measure": MEASURES.get(question.kind, "members"),
        "most": data.rows,
        "bounds": (-data.row, data.row),
        "groups": groups,
        "names": {"apart": False, "budget": names, "groups": groups},
        "budget": {"epsilon": epsilon, "delta": delta},
    }


def _tuned(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    rho = rho_of(budget.epsilon, budget.delta / 2) * share
    rows, groups = keyed_rows(question, data), keys_of_a_member(question, data)
    of_names = SHARE_OF_NAMES * rho if question.kind is Kind.TOP else 0
    # Half of delta is for names, half for what rho promises.
    names = {"epsilon": math.sqrt(2 * of_names), "delta": budget.delta / 2 * budget.share_of_a_list}
    by_member = question.kind in MEASURES
    return {
        "rows": added_up(rows, question, data)
        if by_member
        else rows.select("member", "key").to_dict(as_series=False),
        "unit": {Kind.ROWS: data.rows, Kind.SUM: data.total}.get(question.kind, 1),
        "measure": "sum" if by_member else "members",
        "most": 1,
        "bounds": (0, 1),
        "groups": max(1, groups // 2) if question.kind is Kind.TOP else groups,
        "names": {"apart": True, "budget": names, "groups": 1},
        "budget": {"rho": rho - of_names},
    }

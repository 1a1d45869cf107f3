"""DPSQL+ over DuckDB, which runs in an interpreter that has it: the library is in no package registry."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from research.privolap.questions import MEMBERS, ROWS, SUM, Budget, Data, Kind, Question
from research.privolap.systems.frames import (
    added_up,
    keyed_rows,
    keys_of_a_member,
    known_keys,
    with_nobody,
)
from research.privolap.systems.opendp import rho_of
from research.privolap.systems.worker import LibraryElsewhere, command_of

VARIABLE = "GRIS_PRIVOLAP_DPSQLPLUS"
PYTHON = Path(os.environ.get(VARIABLE, f"${VARIABLE}"))
COMMAND = command_of(PYTHON, "dpsqlplus_worker.py")
MEASURES = {Kind.ROWS: ROWS, Kind.SUM: SUM}
SHARE_OF_NAMES = 0.5
INFINITE = (1.0, 1.0)
"""An account of the library that refuses nothing, by its documentation."""

OF_NOBODY, NEXT_TO_NO_NOISE = 2, 1e-3
"""Members that every known group has, and how far what they are compared with is from 1: noise may not be 0."""


class DPSQLPlus(LibraryElsewhere):
    """As the documentation has it: a part of epsilon and delta for each question.

    Each answer pays for a threshold as well, one without groups too. Groups of few members are dropped, known ones too.

    Tuned, noise is given by its scale, and questions pay with zero-concentrated privacy by the rho that OpenDP converts
    to the promise, for the library takes groups of one member for rows of one group, whose noise is larger. Only lists
    pay for a threshold, and take a part of delta. A member's rows or amounts are added up before they are given to the
    library, and groups that are known have two rows of nobody each, so that a threshold of 1 drops none of them.
    """

    title = "DPSQL+"
    package = "dpsql"
    command = COMMAND

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by the worker."""
        made = _tuned if self.tuned else _documented
        asked = {"by_key": known_keys(question) != ["0"], **made(question, data, budget, share)}
        said = self._worker.say(asked)
        if "error" in said:
            raise RuntimeError(said["error"])
        nobody, unit = asked.get("of_nobody", 0), asked.get("unit", 1)
        return {key: unit * value - nobody for key, value in said["found"].items()}


def _documented(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    promise = {"epsilon": budget.epsilon * share, "delta": budget.delta * share}
    of_rows = question.kind in MEASURES
    columns = ("member", "key", "amount") if question.kind is Kind.SUM else ("member", "key")
    return {
        "rows": keyed_rows(question, data).select(columns).to_dict(as_series=False),
        "measure": MEASURES.get(question.kind, MEMBERS),
        "bounds": (-data.row, data.row),
        "account": (promise["epsilon"], promise["delta"]),
        "params": {
            "contribution_bound": data.rows if of_rows else keys_of_a_member(question, data),
            **promise,
        },
    }


def _tuned(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    rows, keys = keyed_rows(question, data), known_keys(question)
    rho, groups = rho_of(budget.epsilon, budget.delta / 2) * share, keys_of_a_member(question, data)
    by_group, by_member = keys not in (None, ["0"]), question.kind in MEASURES
    threshold = {"tau": 1.0, "sigma_for_thresholding": NEXT_TO_NO_NOISE}
    if keys is None:
        # Half of delta is for names, half for what rho promises.
        threshold = _threshold(groups, SHARE_OF_NAMES * rho, budget.delta / 2 * budget.share_of_a_list)
        rho *= 1 - SHARE_OF_NAMES
    counted = (
        (with_nobody(rows, keys, OF_NOBODY) if by_group else rows)
        .select("member", "key")
        .to_dict(as_series=False)
    )
    return {
        "rows": added_up(rows, question, data) if by_member else counted,
        "of_nobody": OF_NOBODY if by_group else 0,
        "unit": {Kind.ROWS: data.rows, Kind.SUM: data.total}.get(question.kind, 1),
        "measure": SUM if by_member else MEMBERS,
        "bounds": (0, 1),
        "account": INFINITE,
        "params": {"contribution_bound": groups, "sigmas": [math.sqrt(groups / (2 * rho))], **threshold},
    }


def _threshold(groups: int, rho: float, delta: float) -> dict[str, float]:
    """Return noise of counts of so many groups, and what a group of one member exceeds with a chance of delta."""
    from scipy.stats import norm  # noqa: PLC0415 - an extra

    sigma = math.sqrt(groups / (2 * rho))
    return {"tau": 1 + sigma * float(norm.isf(delta / groups)), "sigma_for_thresholding": sigma}

"""SmartNoise SQL over a frame of pandas, which runs in an interpreter of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from research.privolap.questions import MEMBERS, ROWS, SUM, Budget, CannotAnswerError, Data, Kind, Question
from research.privolap.systems.frames import (
    added_up,
    keyed_rows,
    keys_of_a_member,
    known_keys,
    with_nobody,
)
from research.privolap.systems.opendp import epsilon_of, rho_of
from research.privolap.systems.worker import LibraryElsewhere, command_of

PYTHON = Path("build/privolap-smartnoise/bin/python")
COMMAND = command_of(PYTHON, "smartnoise_worker.py")
MEASURES = {Kind.ROWS: ROWS, Kind.SUM: SUM}


class SmartNoise(LibraryElsewhere):
    """As the documentation has it: a part of epsilon and delta for each question, by Laplace noise.

    Groups of few members are dropped, known ones too, for none can be given to it. A number alone has no groups: its
    count of members, which would be one more column that costs, is left out.

    Tuned, noise is Gaussian, and questions pay with zero-concentrated privacy by the rho that OpenDP converts to the
    promise: the library's odometer adds up epsilons, and its bound is hardly less than their sum. Only lists take a
    part of delta, and members count in twice as many names. A member's rows or amounts are added up before they are
    given to the library, and groups that are known have a row of nobody each, so that none has to be dropped.
    """

    title = "SmartNoise SQL"
    package = "smartnoise-sql"
    command = COMMAND

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by the worker."""
        made = _tuned if self.tuned else _documented
        asked = {"by_key": known_keys(question) != ["0"], **made(question, data, budget, share)}
        said = self._worker.say(asked)
        if "error" in said:
            # Depends on bounds and epsilon alone.
            refused = CannotAnswerError if "Noise scale is too large" in said["error"] else RuntimeError
            raise refused(said["error"])
        nobody, unit = asked.get("of_nobody", 0), asked.get("unit", 1)
        return {key: unit * value - nobody for key, value in said["found"].items()}


def _documented(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    rows = keyed_rows(question, data)
    of_rows = question.kind in MEASURES
    return {
        "rows": rows.to_dict(as_series=False) if question.kind is Kind.SUM else _keys(rows),
        "measure": MEASURES.get(question.kind, MEMBERS),
        "bounds": (-data.row, data.row),
        "max_ids": data.rows if of_rows else keys_of_a_member(question, data),
        "censor_dims": known_keys(question) != ["0"],
        "gaussian": False,
        "epsilon": budget.epsilon * share,
        "delta": budget.delta * share,
    }


def _tuned(question: Question, data: Data, budget: Budget, share: float) -> dict[str, Any]:
    rows, keys = keyed_rows(question, data), known_keys(question)
    groups = keys_of_a_member(question, data) * (2 if keys is None else 1)
    # A member changes so many groups by 1 each: the library adds noise for one that changes by their number.
    rho = groups * rho_of(budget.epsilon, budget.delta / 2) * share
    # Half of it is for names, half for what rho promises.
    delta = budget.delta * budget.share_of_a_list
    by_group = keys not in (None, ["0"])
    return {
        "rows": added_up(rows, question, data)
        if question.kind in MEASURES
        else _keys(with_nobody(rows, keys) if by_group else rows),
        "of_nobody": 1 if by_group else 0,
        "unit": {Kind.ROWS: data.rows, Kind.SUM: data.total}.get(question.kind, 1),
        "measure": SUM if question.kind in MEASURES else MEMBERS,
        "bounds": (0, 1),
        "max_ids": groups,
        "censor_dims": keys is None,
        "gaussian": True,
        "epsilon": epsilon_of((2 * rho) ** -0.5, delta),
        "delta": delta,
    }


def _keys(rows: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = rows.select("member", "key").to_dict(as_series=False)
    return found

"""PipelineDP on its local backend, of which each question is a pipeline of its own."""

from __future__ import annotations

import math
from typing import Any

from research.privolap.questions import Budget, Data, Kind, Question, version_of
from research.privolap.systems.frames import (
    Library,
    added_up,
    keyed_rows,
    keys_of_a_member,
    known_keys,
    looks_of,
)
from research.privolap.systems.opendp import rho_of

DELTA = 1e-6
"""By which a scale of Gaussian noise is said to the library; what is paid is the rho of that scale."""


class PipelineDP(Library):
    """As the documentation has it: Laplace noise, and a naive accountant for the question's part of the budget.

    Tuned, noise is Gaussian, and questions pay with zero-concentrated privacy, by the rho that OpenDP converts to the
    promise: the library's accountants compose within one pipeline only, so that the program gives each pipeline the
    epsilon and delta for which the library draws noise of the wanted scale, and adds up rho by itself. Only lists take
    a part of delta, and are found by two looks. A member's rows or amounts are added up before they are given to it.
    """

    def __init__(self, *, tuned: bool = False) -> None:
        super().__init__("PipelineDP", tuned=tuned)

    def version(self) -> str:
        """Return that of the package."""
        return version_of("pipeline-dp")

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by a pipeline, or a list by two."""
        made = _tuned if self.tuned else _documented
        return made(question, data, budget, share)


def _documented(question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
    import pipeline_dp as dp  # noqa: PLC0415 - not needed by anything else

    metric = {Kind.ROWS: dp.Metrics.COUNT, Kind.SUM: dp.Metrics.SUM}.get(
        question.kind, dp.Metrics.PRIVACY_ID_COUNT
    )
    summed = question.kind is Kind.SUM
    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.LAPLACE,
        metrics=[metric],
        max_partitions_contributed=keys_of_a_member(question, data),
        max_contributions_per_partition=data.rows if question.kind in (Kind.ROWS, Kind.SUM) else 1,
        min_sum_per_partition=0 if summed else None,
        max_sum_per_partition=data.total if summed else None,
        partition_selection_strategy=dp.PartitionSelectionStrategy.TRUNCATED_GEOMETRIC,
    )
    if summed:
        params.max_contributions_per_partition = None
    promise = budget.epsilon * share, budget.delta * share
    rows = list(keyed_rows(question, data).iter_rows())
    return {key: value[0] for key, value in _released(rows, params, promise, known_keys(question)).items()}


def _tuned(question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
    rho, rows = rho_of(budget.epsilon, budget.delta / 2) * share, keyed_rows(question, data)
    keys = known_keys(question)
    if question.kind in (Kind.ROWS, Kind.SUM):
        unit = data.rows if question.kind is Kind.ROWS else data.total
        of_each = added_up(rows, question, data)
        summed = [(member, "0", part) for member, part in zip(*of_each.values(), strict=True)]
        return {key: unit * value for key, value in _numbers(summed, ["0"], 1, rho, summed=True).items()}
    of_all = list(rows.iter_rows())
    if keys is not None:
        return _numbers(of_all, keys, keys_of_a_member(question, data), rho)
    looks = looks_of(question, data)
    # Half of delta is for names, half for what rho promises.
    delta = budget.delta / 2 * budget.share_of_a_list
    names = looks.names(_names(of_all, looks.narrow, looks.share * rho, delta))
    return _numbers(of_all, names, looks.wide, (1 - looks.share) * rho) if names else {}


def _numbers(
    rows: list[Any], keys: list[str], groups: int, rho: float, *, summed: bool = False
) -> dict[str, float]:
    """Return numbers of known keys by Gaussian noise, of which the library says the scale; sums are of 0 to 1."""
    import pipeline_dp as dp  # noqa: PLC0415 - not needed by anything else

    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.GAUSSIAN,
        metrics=[dp.Metrics.SUM if summed else dp.Metrics.PRIVACY_ID_COUNT],
        max_partitions_contributed=groups,
        max_contributions_per_partition=1,
        min_sum_per_partition=0 if summed else None,
        max_sum_per_partition=1 if summed else None,
        output_noise_stddev=True,
    )
    found = _released(rows, params, (_epsilon_of(rho, DELTA), DELTA), keys)
    wanted = math.sqrt(groups / (2 * rho))
    for _, scale in found.values():
        if scale < 0.999 * wanted:
            raise RuntimeError(f"noise of {scale} instead of {wanted}")
    return {key: value for key, (value, _) in found.items()}


def _names(rows: list[Any], groups: int, rho: float, delta: float) -> dict[str, float]:
    """Return members of the keys above a threshold, of which the library gives half of its delta to the noise."""
    import pipeline_dp as dp  # noqa: PLC0415 - not needed by anything else

    params = dp.AggregateParams(
        noise_kind=dp.NoiseKind.GAUSSIAN,
        metrics=[dp.Metrics.PRIVACY_ID_COUNT],
        max_partitions_contributed=groups,
        max_contributions_per_partition=1,
        partition_selection_strategy=dp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING,
        post_aggregation_thresholding=True,
    )
    found = _released(rows, params, (_epsilon_of(rho, delta), 2 * delta), None)
    return {key: value[0] for key, value in found.items()}


def _epsilon_of(rho: float, delta: float) -> float:
    """Return for which epsilon the library draws Gaussian noise that costs so much rho."""
    from pipeline_dp.dp_computations import gaussian_epsilon  # noqa: PLC0415 - not needed by anything else

    return float(gaussian_epsilon(1 / math.sqrt(2 * rho), delta))


def _released(
    rows: list[Any], params: Any, promise: tuple[float, float], keys: list[str] | None
) -> dict[str, list[float]]:
    import pipeline_dp as dp  # noqa: PLC0415 - not needed by anything else

    epsilon, delta = promise
    accountant = dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=delta)
    extractors = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    found = dp.DPEngine(accountant, dp.LocalBackend()).aggregate(
        rows, params, extractors, public_partitions=keys
    )
    accountant.compute_budgets()
    return {key: [float(each) for each in value] for key, value in found}

"""PipelineDP on its local backend, of which each question is a pipeline of its own."""

from __future__ import annotations

from bench.privolap.questions import Budget, Data, Kind, Question
from bench.privolap.systems.frames import Library, keyed_rows, keys_of_a_member, known_keys

LEAST_GAUSSIAN = 32
"""In how many keys a member counts at least where Gaussian noise is less than Laplace's."""


class PipelineDP(Library):
    """As the documentation has it: Laplace noise, and a naive accountant for the question's part of the budget.

    Tuned, names are found by the counts themselves, only lists take a part of delta, and noise of many keys is
    Gaussian. Its accountants compose within one pipeline only: a program that answers one question after the other adds
    up epsilons.
    """

    def __init__(self, *, tuned: bool = False) -> None:
        super().__init__("PipelineDP", tuned=tuned)

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by a pipeline."""
        import pipeline_dp as dp  # noqa: PLC0415 - not needed by anything else

        metric = {Kind.ROWS: dp.Metrics.COUNT, Kind.SUM: dp.Metrics.SUM}.get(
            question.kind, dp.Metrics.PRIVACY_ID_COUNT
        )
        summed = question.kind is Kind.SUM
        thresholded = self.tuned and question.kind is Kind.TOP
        keys = keys_of_a_member(question, data)
        gaussian = self.tuned and keys >= LEAST_GAUSSIAN
        strategies = dp.PartitionSelectionStrategy
        threshold = strategies.GAUSSIAN_THRESHOLDING if gaussian else strategies.LAPLACE_THRESHOLDING
        params = dp.AggregateParams(
            noise_kind=dp.NoiseKind.GAUSSIAN if gaussian else dp.NoiseKind.LAPLACE,
            metrics=[metric],
            max_partitions_contributed=keys,
            max_contributions_per_partition=data.rows if question.kind in (Kind.ROWS, Kind.SUM) else 1,
            min_sum_per_partition=0 if summed else None,
            max_sum_per_partition=data.total if summed else None,
            partition_selection_strategy=threshold if thresholded else strategies.TRUNCATED_GEOMETRIC,
            post_aggregation_thresholding=thresholded,
        )
        if summed:
            params.max_contributions_per_partition = None
        # Laplace noise of known keys needs no delta.
        needed = thresholded or gaussian
        delta = (needed * budget.share_of_a_list if self.tuned else share) * budget.delta
        accountant = dp.NaiveBudgetAccountant(total_epsilon=budget.epsilon * share, total_delta=delta)
        extractors = dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        rows = list(keyed_rows(question, data).iter_rows())
        found = dp.DPEngine(accountant, dp.LocalBackend()).aggregate(
            rows, params, extractors, public_partitions=known_keys(question)
        )
        accountant.compute_budgets()
        return {key: float(value[0]) for key, value in found}

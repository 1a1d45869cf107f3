"""Sums, averages and quantiles of bounded contributions.

Neighbours are member-level data sets with and without one member. As in `mechanisms.bounded`, what comes in was
computed from bounded members, which the mechanisms cannot see: if they were not, nothing is promised.

* `bound_moments`: counts, sums and averages in one release; `released` has what follows from it, `intervals`
  its intervals, by the laws of `noise_pairs`; `moments_of_names` does it in two looks;
* `quantile_gumb`: quantiles, largest and smallest values over a public grid, by the scores of `rank_scores`;
  `rank_errors` says how far they may be from the rank that was wanted, and `ranked_values` is all that one question
  asks for.

Sums are accounted as all Gaussian noise is; quantiles in bounded range, as every choice is.

Papers, as the modules name them: Berger and Boos 1994; Bun and Steinke 2016 (arXiv:1605.02065); Dong, Durfee and Rogers
2020 (arXiv:1909.13830); Durfee and Rogers 2019 (arXiv:1905.04273); Fieller 1954; Kaplan, Schnapp and Stemmer 2022
(arXiv:2110.05429); Korolova et al. 2009; McSherry and Talwar 2007; Swanberg et al. 2023; Wilson et al. 2020
(arXiv:1909.01917).
"""

from dp_service.mechanisms.aggregates.bound_moments import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.aggregates.moments_of_names import MomentsOfNames
from dp_service.mechanisms.aggregates.quantile_gumb import CellsOfGroups, ExtremeGumb, QuantileGumb
from dp_service.mechanisms.aggregates.rank_errors import RankError, rank_error, rank_errors, spare_values
from dp_service.mechanisms.aggregates.rank_scores import Largest, Quantile, Smallest
from dp_service.mechanisms.aggregates.ranked_values import RankedValues
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments

__all__ = [
    "BoundMoments",
    "CellsOfGroups",
    "ColumnSums",
    "ExtremeGumb",
    "Largest",
    "MomentsOfNames",
    "Quantile",
    "QuantileGumb",
    "RankError",
    "RankedValues",
    "ReleasedColumn",
    "ReleasedMoments",
    "Smallest",
    "SumShare",
    "rank_error",
    "rank_errors",
    "spare_values",
]

"""The kinds of answers: `kind_of` returns that of a release's parameters, with all that is true of it alone.

`kind` has what every kind says of itself. `laplace` and `gumbel` need no bound of contributions. `bounded` are counts
of bounded ones, in one look or two; `relative` counts relative to their total, `moments` sums and averages.
`quantiles` are cells of a grid.
"""

from dp_service.releases.kinds.kind import AnyKind, Kind
from dp_service.releases.kinds.making import UnusableParametersError, kind_of, require_usable, versions
from dp_service.releases.kinds.parts import IncompleteParametersError

__all__ = [
    "AnyKind",
    "IncompleteParametersError",
    "Kind",
    "UnusableParametersError",
    "kind_of",
    "require_usable",
    "versions",
]

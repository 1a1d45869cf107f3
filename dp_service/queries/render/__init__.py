"""Writes the query for an engine from a resolved question.

Identifiers come from the policy, which allows only ASCII names; literals are quoted here and nowhere else.
"""

from dp_service.queries.canonical_query import QueryDistinct
from dp_service.queries.render.dialects import DIALECTS, Dialect, Feature, UnknownDialectError
from dp_service.queries.render.member_bounds import counts_firsts, sees_members_again
from dp_service.queries.render.of_members import is_of_members
from dp_service.queries.render.statement import statement
from dp_service.queries.resolution import Resolution
from dp_service.terms import Bounding

__all__ = [
    "Feature",
    "UnknownDialectError",
    "render",
    "required_features",
]


def render(resolution: Resolution, dialect: str) -> str:
    """Return the complete text of the query.

    Args:
        resolution: The question as the policy resolves it.
        dialect: "duckdb", "pinot" or "spark".

    Returns:
        A query whose answer has the dimensions' columns in the question's order and then `gris_count`, with
        `Feature.FIRST_COUNTS` also `gris_first_count`, and for each column that is summed `gris_sum_1` and so on, then
        for each of these with a count of its own `gris_own_count_1` and so on; rows come by count descending, then by
        element, at most `resolution.row_limit` of them. Without dimensions there is one row, whether or not any row of
        the table counts. For quantiles the column `gris_cell` is behind those of the dimensions, and there is a row for
        each cell that anybody is in.

    Raises:
        UnknownDialectError: There is no such dialect.
    """
    return statement(resolution, _dialect(dialect))


def required_features(resolution: Resolution, dialect: str) -> tuple[Feature, ...]:
    """Return what the engine must have, beyond the dialect, to run the query.

    Raises:
        UnknownDialectError: There is no such dialect.
    """
    engine = _dialect(dialect)
    query, relative = resolution.query, counts_firsts(resolution)
    is_distinct = isinstance(query.measure, QueryDistinct)
    is_nested = is_distinct or query.clip is not None or bool(query.used_values)
    is_nested = is_nested or is_of_members(query) or relative or _bounds_members(resolution)
    nested = engine.nested_feature if is_nested else None
    copy = Feature.BOUNDED_COPY if resolution.copy is not None and engine.tells_copies else None
    firsts = Feature.FIRST_COUNTS if relative else None
    stream = Feature.CLOSED_STREAM if resolution.stream is not None and engine.takes_in_streams else None
    return tuple(each for each in (nested, copy, firsts, stream) if each is not None)


def _bounds_members(resolution: Resolution) -> bool:
    if resolution.copy is not None:
        return sees_members_again(resolution)
    bounded = resolution.parameters.contributions
    return bounded is not None and bounded.bounding is not Bounding.NOTHING


def _dialect(name: str) -> Dialect:
    if name not in DIALECTS:
        raise UnknownDialectError(name)
    return DIALECTS[name]

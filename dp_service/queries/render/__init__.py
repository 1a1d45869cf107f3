"""Writes the query for an engine from a resolved question.

Identifiers come from the policy, which allows only ASCII names; literals are quoted here and nowhere else.
"""

from dp_service.queries.render.dialects import DIALECTS, Dialect, Feature, UnknownDialectError
from dp_service.queries.render.statement import statement
from dp_service.queries.resolution import Resolution

__all__ = ["Feature", "UnknownDialectError", "render", "required_feature"]


def render(resolution: Resolution, dialect: str) -> str:
    """Return the complete text of the query.

    Args:
        resolution: The question as the policy resolves it.
        dialect: "duckdb", "pinot" or "spark".

    Returns:
        A query whose answer has the dimensions' columns in the question's order and then `gris_count`; rows come by
        count descending, then by element, at most `resolution.row_limit` of them.

    Raises:
        UnknownDialectError: There is no such dialect.
    """
    return statement(resolution, _dialect(dialect))


def required_feature(resolution: Resolution, dialect: str) -> Feature | None:
    """Return what the engine must have, beyond the dialect, to run the query.

    Raises:
        UnknownDialectError: There is no such dialect.
    """
    return None if resolution.query.clip is None else _dialect(dialect).nested_feature


def _dialect(name: str) -> Dialect:
    if name not in DIALECTS:
        raise UnknownDialectError(name)
    return DIALECTS[name]

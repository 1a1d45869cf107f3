"""Writes the query for an engine afresh from a resolved question.

Identifiers come from the policy, which allows ASCII names only; literals are quoted here and nowhere else.
"""

from dp_service.queries.render.dialects import DIALECTS, UnknownDialectError
from dp_service.queries.render.statement import statement
from dp_service.queries.resolution import Resolution

__all__ = ["UnknownDialectError", "render"]


def render(resolution: Resolution, dialect: str) -> str:
    """Return the complete text of the query for the engine `dialect`, "duckdb" or "pinot".

    The answer has the dimensions' columns in the question's order and then `gris_count`; rows come by count
    descending, then by element, at most `resolution.row_limit` of them. Raises UnknownDialectError.
    """
    if dialect not in DIALECTS:
        raise UnknownDialectError(dialect)
    return statement(resolution, DIALECTS[dialect])

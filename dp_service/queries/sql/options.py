"""What stands behind a statement: OPTION(max_error=16), as Pinot writes options; a part may be in single quotes."""

from __future__ import annotations

from dp_service.queries.errors import QuestionError
from dp_service.queries.max_error import MAX_ERROR, MaxError
from dp_service.queries.sql.expressions import ExpressionReader
from dp_service.queries.sql.places import refuse


def max_error_of(reader: ExpressionReader) -> str:
    """Read what stands behind the word OPTION, and return the error that it states."""
    option = reader.last
    if not reader.takes("(", MAX_ERROR.upper(), "="):
        refuse(
            option,
            f"OPTION is accepted with {MAX_ERROR} alone, OPTION({MAX_ERROR}=16): leave it out: the service decides the "
            "rest",
        )
    value = reader.take()
    text = value.text.strip("'") if value.kind == "text" else value.text
    if reader.takes("%"):
        text += "%"
    try:
        MaxError.of(text or "0")
    except QuestionError as error:
        refuse(value, str(error))
    reader.expect(")")
    return text

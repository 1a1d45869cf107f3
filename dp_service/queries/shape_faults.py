"""What pydantic finds wrong with a file, in the words of who writes the file."""

from __future__ import annotations

import re

_NUMBER = re.compile("^Input should be (?=greater|less|a multiple)")
_SIZE = re.compile(r"^[A-Z][a-z]+ should have (at (?:least|most) \d+ (?:character|item)s?).*")
# These messages of pydantic are about this program and not about the file.
_SHAPES = {
    "extra_forbidden": "there is no such key",
    "missing": "expected this key",
    "model_type": "expected keys and their values",
    "dict_type": "expected keys and their values",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "string_pattern_mismatch": "expected a text of another form",
}


def shape_fault(kind: str, message: str) -> str:
    """Return what is wrong with a key.

    Args:
        kind: The type of pydantic's error.
        message: Its text.
    """
    own = message.removeprefix("Value error, ")
    if (size := _SIZE.fullmatch(own)) is not None:
        return f"expected {size[1]}"
    return _SHAPES.get(kind, _NUMBER.sub("expected a number ", own).replace("Input should be ", "expected "))

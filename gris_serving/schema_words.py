"""What pydantic finds wrong with a file, in the words of who writes the file."""

from __future__ import annotations

import re

_NUMBER = re.compile("^Input should be (?=greater|less|a multiple)")
_SIZE = re.compile(r"^[A-Z][a-z]+ should have (at (?:least|most) \d+ (?:character|item)s?).*")
# What pydantic says of these is about this program and not about the document.
_EXPECTED = {
    "missing": "expected this key",
    "extra_forbidden": "there is no such key",
    "model_type": "expected keys and their values",
    "model_attributes_type": "expected keys and their values",
    "dataclass_type": "expected keys and their values",
    "dict_type": "expected keys and their values",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "invalid_key": "expected a text as the key",
    "tuple_type": "expected a list",
    "string_pattern_mismatch": "expected a text of another form",
}


def expected(kind: str, message: str) -> str:
    """Return what is wrong with a field in the words of who writes the document.

    Args:
        kind: The type of pydantic's error.
        message: Its text.
    """
    own = message.removeprefix("Value error, ")
    if (size := _SIZE.fullmatch(own)) is not None:
        return f"expected {size[1]}"
    return _EXPECTED.get(
        kind, _NUMBER.sub("expected a number ", own).replace("Input should be ", "expected ")
    )

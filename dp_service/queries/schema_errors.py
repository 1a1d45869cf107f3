"""What pydantic and PyYAML find wrong with a file, in the words of who writes the file."""

from __future__ import annotations

import re

_NUMBER = re.compile("^Input should be (?=greater|less|a multiple)")
_SIZE = re.compile(r"^[A-Z][a-z]+ should have (at (?:least|most) \d+ (?:character|item)s?).*")
# These messages of pydantic are about this program and not about the file.
_SCHEMA = {
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


def schema_error(kind: str, message: str) -> str:
    """Return what is wrong with a key.

    Args:
        kind: The type of pydantic's error.
        message: Its text.
    """
    own = message.removeprefix("Value error, ")
    if kind == "string_pattern_mismatch" and "sha256" in own:
        return "expected sha256: and 64 hexadecimal digits (0-9, a-f)"
    if (size := _SIZE.fullmatch(own)) is not None:
        return f"expected {size[1]}"
    return _SCHEMA.get(kind, _NUMBER.sub("expected a number ", own).replace("Input should be ", "expected "))


# Parts of PyYAML's messages, which name characters and tokens as Python does; the first that fits counts.
_YAML = {
    r"'\t'": "a tab is not allowed here: indent with spaces",
    "cannot start any token": "no text begins with this character: put it into quotes",
    "mapping values are not allowed": "this colon follows no key: a colon is missing above, a key does not begin in "
    "the column of the others, or a text with a colon needs quotes",
    "sequence entries are not allowed": "no list can begin here: put it on a line of its own",
    "could not find expected ':'": "expected a key, a colon and its value",
    "unexpected end of stream": "quotes that are opened here or above are not closed",
    "expected ',' or ']'": "a list in brackets needs a comma between its values, and a ] at its end",
    "expected ',' or '}'": "a mapping in braces needs a comma between its keys, and a } at its end",
    "<block end>": "this line does not continue what is above it: begin all keys of one mapping in the same column",
    "escape": "a backslash in double quotes means something else: put this text into single quotes",
    "the node content": "expected a value",
    "another document": "expected one document, without a second one behind ---",
}


def yaml_error(problem: str) -> str:
    """Return what is wrong with the form of a YAML text.

    Args:
        problem: What PyYAML says.
    """
    return next((own for part, own in _YAML.items() if part in problem), "expected YAML")

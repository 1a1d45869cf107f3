"""What pydantic finds wrong with a policy, or with a file that it names."""

from __future__ import annotations

from gris_serving.schema_words import expected


def schema_error(kind: str, message: str) -> str:
    """Return what is wrong with a key.

    Args:
        kind: The type of pydantic's error.
        message: Its text.
    """
    if kind == "string_pattern_mismatch" and "sha256" in message:
        return "expected sha256: and 64 hexadecimal digits (0-9, a-f)"
    return expected(kind, message)

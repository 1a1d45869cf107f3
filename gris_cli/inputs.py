"""The flag by which an owner's input was named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gris_data.errors import InputError


@contextmanager
def named_by(flag: str) -> Iterator[None]:
    """Let what is wrong with an input name the flag that gave it, unless it names another one."""
    try:
        yield
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith("--") else f"{flag}: {text}") from None

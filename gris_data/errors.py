"""The one error of this room."""

from __future__ import annotations


class InputError(ValueError):
    """What an owner gave cannot be used: a file, a table, an address, a number.

    The text says what and where, what was expected, and repeats nothing that the data hold. The command line shows it
    as it stands.
    """

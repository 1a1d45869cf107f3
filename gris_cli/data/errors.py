"""The one error of this room."""

from __future__ import annotations


class InputError(ValueError):
    """What an owner gave cannot be used: a file, a table, an address, a number.

    The text says what and where, what was expected, and repeats nothing that the data hold. The command line shows it
    behind the flags of what it is about, and names the flag of what would help.

    Attributes:
        of: What was given and is at fault, by the names of arguments or fields; empty: the file or table to be read.
        remedy: The name of what was not given and would help.
    """

    def __init__(self, problem: str, *of: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.of = of
        self.remedy = remedy

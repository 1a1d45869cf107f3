"""What dp_service says of a question or of an answer."""

from __future__ import annotations

from dataclasses import dataclass

METHOD = "method"
_HOW = frozenset((METHOD, "counts", "sums", "order"))


@dataclass(frozen=True)
class Statement:
    """A sentence that is true of what it stands beside.

    `code` says what it is of, such as `counts.bounded`; `column` is the policy's column that it is of, empty where it
    is of no single one; `values` are the numbers in it. It holds no element, no value that a condition compares with,
    no alias, no account.
    """

    code: str
    text: str
    column: str = ""
    values: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """What it is of, the first part of its code: `counts`, `intervals`, `order`, `list`, .., or `method`."""
        return self.code.partition(".")[0]

    @property
    def is_method(self) -> bool:
        """Whether it says how numbers are made; all others say what they mean."""
        return self.subject == METHOD

    @property
    def says_how(self) -> bool:
        """Whether it says how numbers are made; all others say what they mean, or what is left out."""
        return self.subject in _HOW

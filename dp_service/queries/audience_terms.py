"""What a policy says of its audiences, as values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.filters import In, Value


@dataclass(frozen=True)
class Named:
    """A value that what serves callers gives, by its name in the policy."""

    name: str


@dataclass(frozen=True)
class OfferedTable:
    """What an audience is offered of a table.

    Attributes:
        columns: The columns that it may name, beside those of members, of time and of `rows`; None: all.
        rows: The columns of which only rows with certain values count, with these values.
    """

    columns: frozenset[str] | None = None
    rows: tuple[tuple[str, tuple[Value | Named, ...]], ...] = ()


@dataclass(frozen=True)
class Audience:
    """The tables that an audience is offered; None: all of them, as they are."""

    tables: Mapping[str, OfferedTable] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names of the values that have to be given."""
        rows = (row for table in (self.tables or {}).values() for _, row in table.rows)
        return frozenset(each.name for row in rows for each in row if isinstance(each, Named))


@dataclass(frozen=True)
class AskedAs:
    """As which audience a question is asked, and the values of the names in it."""

    audience: str
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ForcedRows:
    """To which rows of a table an audience is restricted.

    Attributes:
        columns: The columns of which only rows with certain values count; none: all rows do.
        name: A name of these columns and values, 64 hexadecimal characters; empty: all rows count.
    """

    columns: tuple[str, ...] = ()
    name: str = ""

    @classmethod
    def of(cls, forced: tuple[In, ...]) -> ForcedRows:
        """Return it for what must hold of rows, by column."""
        if not forced:
            return cls()
        rows = [
            length_prefixed(each.column.encode(), *(f"{type(v).__name__}:{v}".encode() for v in each.values))
            for each in forced
        ]
        name = hashlib.sha256(length_prefixed(b"gris/audience-rows/v1", *rows)).hexdigest()
        return cls(tuple(each.column for each in forced), name)


ALL_ROWS = ForcedRows()
"""Of a policy without audiences, or one that is restricted to no rows."""

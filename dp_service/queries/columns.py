"""The columns of a table that a policy lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dp_service.queries.filters import Value
from dp_service.queries.lookups import Entries
from dp_service.queries.policy_types import MAXIMUM_DOMAIN_SIZE, Stated
from dp_service.queries.publications import Publication
from dp_service.queries.times import Timestamps
from dp_service.queries.typical import Values
from dp_service.terms import ColumnType


class Operator(StrEnum):
    """A kind of filter; `=` is IN with one value and `<>` is NOT_IN with one."""

    IN = "in"
    NOT_IN = "not_in"
    RANGE = "range"


class Nulls(StrEnum):
    """What happens to a row whose value is NULL: it is left out, or it counts with the column's null value."""

    DROP = "drop"
    KEEP = "keep"


@dataclass(frozen=True)
class Lookup:
    """A public function from the values of another column to texts.

    Attributes:
        key: The column whose values are looked up.
        entries: Each key with its text, ascending by key.
        hash: Names the file that says so, by its content.
    """

    key: Column
    entries: Entries = field(compare=False, repr=False)
    hash: str

    @property
    def values(self) -> frozenset[str]:
        """The texts that some key has."""
        return frozenset(value for _, value in self.entries)


class ColumnKeys(Stated):
    """What holds of a column as the policy states it.

    Attributes:
        type: The type of its values.
        group_by: Whether questions may group by it.
        operators: Which conditions questions may set on it.
        delta: With how many of the column's values one member can appear, including those outside the domain and a kept
            NULL; None: any number.
        typical: How many of the column's values a member typically has, where the query bounds members: one with so
            many counts in full.
    """

    type: Annotated[ColumnType, Field(strict=False)]
    group_by: bool = False
    operators: Annotated[list[Annotated[Operator, Field(strict=False)]], Field(alias="filter")] = Field(
        default_factory=list
    )
    delta: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    typical: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None


class Column(ColumnKeys):
    """A column that the policy lists, with what its keys lead to; that of a lookup bounds `delta` and `typical`.

    Attributes:
        name: The name of the column.
        domain: The values that may be shown, in element order; None: unknown.
        nulls: What happens to rows whose value is NULL.
        null_value: What stands for NULL; None only for a DATE column whose NULLs are dropped. For timestamps that are
            stored as integers it is such an integer.
        publication: What the domain cost everyone who may see it; None: it was not published from the data.
        timestamps: What a column of timestamps holds; None: it is of another type.
        lookup: How its values follow from those of another column; a key without a text then stands for NULL. None: the
            table has the column.
    """

    name: str
    domain: tuple[Value, ...] | None
    nulls: Nulls
    null_value: Value | None
    publication: Publication | None
    timestamps: Timestamps | None
    lookup: Lookup | None

    @property
    def value_for_null(self) -> Value | None:
        """What stands for NULL in answers; None: rows with NULL are left out."""
        return self.null_value if self.nulls is Nulls.KEEP else None

    @property
    def of_member(self) -> int | None:
        """How many of its values a member typically has, or at most; None: any number."""
        return self.delta if self.typical is None else self.typical

    @property
    def of_member_within(self) -> int | None:
        """The same among the values of its domain."""
        return Values(self.of_member, None if self.domain is None else len(self.domain)).least

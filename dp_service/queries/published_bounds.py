"""The file of a published bound: a quantile of members' totals, bought once, and the price of publishing it.

It is made by `gris value publish` and named by a policy as the upper bound of a value column
(`upper: {published: FILE, integrity: HASH}`). Its publication counts for everyone as that of a published domain.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.publications import Publication
from dp_service.queries.published_files import (
    Fields,
    PublishedFileError,
    fields_of,
    file_of,
    named_content,
    publication_of_file,
)

FORMAT = "gris/bound/v1"
LARGEST_FILE_BYTES = 2**16
NO_DELTA = Fraction(1, 10**30)
"""What the publication's delta is stated as. A choice has none, but statements in a ledger name one above 0."""

_Number = Annotated[str, Field(pattern=r"^-?[0-9]{1,60}(/[1-9][0-9]{0,59})?$")]
_NUMBERS = ("q", "lower", "upper", "rho", "delta")


@dataclass(frozen=True)
class BoundFile:
    """The cell of a public grid in which a quantile of members' totals is, about, and the guarantee of its publication.

    Attributes:
        table: The policy's name of the table.
        column: The column whose totals they are.
        data_version: The name of the data that it was found in.
        q: The quantile that was wanted.
        lower: The first value of the cell.
        upper: Its last value: the bound.
        rho: It is rho-zCDP for adding or removing one member.
        delta: What is stated beside it, above 0.
        published_at: When, in UTC.
        nonce: Random text: two publications that choose the same cell are two files, and count twice.
    """

    table: str
    column: str
    data_version: str
    q: Fraction
    lower: Fraction
    upper: Fraction
    rho: Fraction
    delta: Fraction
    published_at: str
    nonce: str


@dataclass(frozen=True)
class PublishedBound:
    """The upper bound that a policy takes from a file, and what its publication cost."""

    upper: Fraction
    publication: Publication


class _Schema(Fields):
    format: Literal["gris/bound/v1"]
    q: _Number
    lower: _Number
    upper: _Number
    rho: _Number
    delta: _Number
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


def written(bound: BoundFile) -> bytes:
    """Return the file's content."""
    numbers = {name: str(getattr(bound, name)) for name in _NUMBERS}
    return file_of({"format": FORMAT, **asdict(bound), **numbers})


def read_bound(content: bytes) -> BoundFile:
    """Read the file's content.

    Raises:
        PublishedFileError: The content is malformed, truncated or edited.
    """
    schema = fields_of(content, _Schema, most_bytes=LARGEST_FILE_BYTES)
    fields = schema.model_dump(exclude={"format", "integrity"})
    return BoundFile(**fields | {name: Fraction(fields[name]) for name in _NUMBERS})


def published_bound(
    named: PublishedSchema, directory: Path | None, *, table: str, column: str
) -> PublishedBound:
    """Return the bound that a file holds; its name is relative to `directory`, None: no file may be read.

    Raises:
        PublishedFileError: The file cannot be read, is not the one that the policy names, is about another column, or
            states an impossible price.
    """
    bound = read_bound(named_content(named, directory, most_bytes=LARGEST_FILE_BYTES))
    if (bound.table, bound.column) != (table, column):
        raise PublishedFileError(
            f"expected the bound of {table}.{column}, and the file is of {bound.table}.{bound.column}"
        )
    return PublishedBound(bound.upper, publication_of_file(named, bound.rho, bound.delta))

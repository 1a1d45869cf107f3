"""The file of a published bound: a quantile of members' totals, bought once, and the price of publishing it.

It is made by `gris value publish` and named by a policy as the upper bound of a value column
(`upper: {published: FILE, integrity: HASH}`). Its publication counts for everyone as that of a published domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import Field

from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.publications import Publication
from dp_service.queries.published_files import (
    Exact,
    PublishedFile,
    PublishedFileError,
    named_content,
    publication_of_file,
)

NO_DELTA = Fraction(1, 10**30)
"""What the publication's delta is stated as. A choice has none, but statements in a ledger name one above 0."""


class BoundFile(PublishedFile):
    """The cell of a public grid in which a quantile of members' totals is, about, and the guarantee of its publication.

    Attributes:
        q: The quantile that was wanted.
        lower: The first value of the cell.
        upper: Its last value: the bound.
        nonce: Random text: two publications that choose the same cell are two files, and count twice.
    """

    FORMAT = "gris/bound/v1"
    MOST_BYTES = 2**16

    q: Exact
    lower: Exact
    upper: Exact
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


@dataclass(frozen=True)
class PublishedBound:
    """The upper bound that a policy takes from a file, and what its publication cost."""

    upper: Fraction
    publication: Publication


def published_bound(
    named: PublishedSchema, directory: Path | None, *, table: str, column: str
) -> PublishedBound:
    """Return the bound that a file holds; its name is relative to `directory`, None: no file may be read.

    Raises:
        PublishedFileError: The file cannot be read, is not the one that the policy names, is about another column, or
            states an impossible price.
    """
    bound = BoundFile.read(named_content(named, directory, most_bytes=BoundFile.MOST_BYTES))
    if (bound.table, bound.column) != (table, column):
        raise PublishedFileError(
            f"expected the bound of {table}.{column}, and the file is of {bound.table}.{bound.column}"
        )
    return PublishedBound(bound.upper, publication_of_file(named, bound.rho, bound.delta))

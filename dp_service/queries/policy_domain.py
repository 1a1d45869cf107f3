"""The domain of a column that a policy takes from a file, and what its publication cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dp_service.queries.filters import Value
from dp_service.queries.policy_types import MAXIMUM_DOMAIN_SIZE, PublishedSchema
from dp_service.queries.publications import Publication
from dp_service.queries.published import DomainFile
from dp_service.queries.published_files import PublishedFileError, named_content, publication_of_file
from dp_service.terms import ColumnType


@dataclass(frozen=True)
class PublishedDomain:
    """The elements of a published domain, in element order, and its publication."""

    values: tuple[Value, ...]
    publication: Publication


def published_domain(
    named: PublishedSchema, directory: Path, *, table: str, column: str, kind: ColumnType
) -> PublishedDomain:
    """Return the domain that a file holds; its name is relative to `directory`.

    Raises:
        PublishedFileError: The file cannot be read, is not the one that the policy names, is about another column, has
            no elements or more than a policy may list, or states an impossible price.
    """
    domain = DomainFile.read(named_content(named, directory, most_bytes=DomainFile.MOST_BYTES))
    if (domain.table, domain.column, domain.type) != (table, column, kind):
        raise PublishedFileError(f"expected the domain of {table}.{column} with values of type {kind}")
    if not domain.elements:
        raise PublishedFileError(
            "expected at least one element: the publication found none that is safe to name; without `domain` the "
            "column's domain is unknown"
        )
    if len(domain.elements) > MAXIMUM_DOMAIN_SIZE:
        raise PublishedFileError(
            f"expected at most {MAXIMUM_DOMAIN_SIZE} elements, got {len(domain.elements)}"
        )
    return PublishedDomain(domain.elements, publication_of_file(named, domain.rho, domain.delta))

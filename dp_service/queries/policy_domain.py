"""The domain of a column that a policy takes from a file, and what its publication cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dp_service.queries.filters import Value
from dp_service.queries.policy_types import MAXIMUM_DOMAIN_SIZE, PublishedSchema
from dp_service.queries.publications import Publication, publication_of
from dp_service.queries.published import LARGEST_FILE_BYTES, DomainFileError, integrity_of, read_published
from dp_service.terms import ColumnType

NOT_READ = "names a file, which a check of the text alone does not read: `gris policy check` reads it beside the policy"


@dataclass(frozen=True)
class PublishedDomain:
    """The elements of a published domain, in element order, and its publication."""

    values: tuple[Value, ...]
    publication: Publication


def published_domain(
    named: PublishedSchema, directory: Path | None, *, table: str, column: str, kind: ColumnType
) -> PublishedDomain:
    """Return the domain that a file holds; its name is relative to `directory`, None: no file may be read.

    Raises:
        DomainFileError: The file cannot be read, is not the one that the policy names, is about another column, has no
            elements or more than a policy may list, or states an impossible price.
    """
    if directory is None:
        raise DomainFileError(NOT_READ)
    content = _content(directory / named.published)
    if integrity_of(content) != named.integrity:
        raise DomainFileError(f"expected {named.published} with the integrity that the policy states")
    domain = read_published(content)
    if (domain.table, domain.column, domain.type) != (table, column, kind):
        raise DomainFileError(f"expected the domain of {table}.{column} with values of type {kind}")
    if not domain.elements:
        raise DomainFileError(
            "expected at least one element: the publication found none that is safe to name; without `domain` the "
            "column's domain is unknown"
        )
    if len(domain.elements) > MAXIMUM_DOMAIN_SIZE:
        raise DomainFileError(f"expected at most {MAXIMUM_DOMAIN_SIZE} elements, got {len(domain.elements)}")
    try:
        publication = publication_of(named.integrity, domain.rho, domain.delta)
    except ValueError as error:
        raise DomainFileError(str(error)) from None
    return PublishedDomain(domain.elements, publication)


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise DomainFileError(f"{path}: {error.strerror}") from None

"""The domain of a column that a policy takes from a file."""

from __future__ import annotations

from pathlib import Path

from dp_service.queries.policy_schema import MAXIMUM_DOMAIN_SIZE, PublishedSchema
from dp_service.queries.published import LARGEST_FILE_BYTES, DomainFileError, integrity_of, read_published
from dp_service.queries.structured import ColumnType, Value


def published_values(
    named: PublishedSchema, directory: Path, *, table: str, column: str, kind: ColumnType
) -> tuple[Value, ...]:
    """Return the elements of a published domain, in element order.

    Raises DomainFileError if the file, sought from `directory`, cannot be read, is not the one that the policy names,
    speaks of another column, or has no elements or more than a policy may list.
    """
    content = _content(directory / named.published)
    if integrity_of(content) != named.integrity:
        raise DomainFileError(f"expected {named.published} with the integrity that the policy states")
    domain = read_published(content)
    if (domain.table, domain.column, domain.type) != (table, column, kind):
        raise DomainFileError(f"expected the domain of {table}.{column} with values of type {kind}")
    if not 0 < len(domain.elements) <= MAXIMUM_DOMAIN_SIZE:
        raise DomainFileError(
            f"expected from 1 to {MAXIMUM_DOMAIN_SIZE} elements, got {len(domain.elements)}"
        )
    return domain.elements


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise DomainFileError(f"{path}: {error.strerror}") from None

"""The file of a published bound: a quantile of members' totals, bought once, and the price of publishing it.

It is JSON with sorted keys, made by `gris value publish` and named by a policy as the upper bound of a value column
(`upper: {published: FILE, integrity: HASH}`). Its last field is a hash of all the others, as that of a published domain
(`published`), and its publication counts for everyone as one of those.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.publications import Publication, publication_of
from dp_service.queries.published import integrity_of
from dp_service.queries.schema_errors import schema_error

FORMAT = "gris/bound/v1"
LARGEST_FILE_BYTES = 2**16
NO_DELTA = Fraction(1, 10**30)
"""What the publication's delta is stated as. A choice has none, but statements in a ledger name one above 0."""

_Text = Annotated[str, Field(min_length=1, max_length=256)]
_Number = Annotated[str, Field(pattern=r"^-?[0-9]{1,60}(/[1-9][0-9]{0,59})?$")]
_NUMBERS = ("q", "lower", "upper", "rho", "delta")


class BoundFileError(ValueError):
    """The content is not that of a published bound; the message names the field and what was expected."""


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


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["gris/bound/v1"]
    table: _Text
    column: _Text
    data_version: _Text
    q: _Number
    lower: _Number
    upper: _Number
    rho: _Number
    delta: _Number
    published_at: _Text
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    integrity: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


def written(bound: BoundFile) -> bytes:
    """Return the file's content."""
    numbers = {name: str(getattr(bound, name)) for name in _NUMBERS}
    body = {"format": FORMAT, **asdict(bound), **numbers}
    return _json({**body, "integrity": _integrity(body)}) + b"\n"


def read_bound(content: bytes) -> BoundFile:
    """Read the file's content.

    Raises:
        BoundFileError: The content is malformed, truncated or edited.
    """
    try:
        body = json.loads(content[: LARGEST_FILE_BYTES + 1])
    except (ValueError, RecursionError):
        raise BoundFileError("expected a whole JSON text, as gris value publish writes it") from None
    try:
        schema = _Schema.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise BoundFileError(f"{field}: {schema_error(first['type'], first['msg'])}") from None
    if body.pop("integrity") != _integrity(body):
        raise BoundFileError("integrity: expected the hash of the rest of the file")
    numbers = {name: Fraction(getattr(schema, name)) for name in _NUMBERS}
    return BoundFile(
        schema.table,
        schema.column,
        schema.data_version,
        published_at=schema.published_at,
        nonce=schema.nonce,
        **numbers,
    )


def published_bound(named: PublishedSchema, directory: Path, *, table: str, column: str) -> PublishedBound:
    """Return the bound that a file holds; its name is relative to `directory`.

    Raises:
        BoundFileError: The file cannot be read, is not the one that the policy names, is about another column, or
            states an impossible price.
    """
    path = directory / named.published
    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise BoundFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if integrity_of(content) != named.integrity:
        raise BoundFileError(f"expected {named.published} with the integrity that the policy states")
    bound = read_bound(content)
    if (bound.table, bound.column) != (table, column):
        raise BoundFileError(
            f"expected the bound of {table}.{column}, and the file is of {bound.table}.{bound.column}"
        )
    try:
        publication = publication_of(named.integrity, bound.rho, bound.delta)
    except ValueError as error:
        raise BoundFileError(str(error)) from None
    return PublishedBound(bound.upper, publication)


def _integrity(body: dict[str, Any]) -> str:
    return f"sha256:{hashlib.sha256(_json(body)).hexdigest()}"


def _json(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")

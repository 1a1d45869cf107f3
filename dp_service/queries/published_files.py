"""The files that publications write: JSON with sorted keys, whose last field is a hash of all the others.

So a truncated or edited file is refused. The hash is neither a secret nor a signature: anyone who may write the policy
may write such a file.
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.publications import Publication, publication_of
from dp_service.queries.schema_errors import schema_error

NOT_READ = "names a file, which a check of the text alone does not read: `gris policy check` reads it beside the policy"

Text = Annotated[str, Field(min_length=1, max_length=256)]


class PublishedFileError(ValueError):
    """A file is not what a publication wrote, or not the one that is named; the message says what was expected."""


class Fields(BaseModel):
    """What every such file has."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    table: Text
    column: Text
    data_version: Text
    published_at: Text
    integrity: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


_Fields = TypeVar("_Fields", bound=Fields)


def file_of(body: dict[str, Any]) -> bytes:
    """Return a file's content."""
    return _json({**body, "integrity": _integrity(body)}) + b"\n"


def fields_of(content: bytes, form: type[_Fields], *, most_bytes: int) -> _Fields:
    """Return the fields of a file.

    Raises:
        PublishedFileError: The content is malformed, truncated or edited.
    """
    if len(content) > most_bytes:
        raise PublishedFileError(f"expected at most {most_bytes} bytes")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise PublishedFileError("expected a whole JSON text") from None
    try:
        found = form.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise PublishedFileError(f"{field}: {schema_error(first['type'], first['msg'])}") from None
    if body.pop("integrity") != _integrity(body):
        raise PublishedFileError("integrity: expected the hash of the rest of the file")
    return found


def integrity_of(content: bytes) -> str:
    """Return the integrity that a file states, empty if it states none; `fields_of` checks it."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    found = body.get("integrity") if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""


def named_content(named: PublishedSchema, directory: Path | None, *, most_bytes: int) -> bytes:
    """Return the content of the file that a policy names, relative to `directory`; None: no file may be read.

    Raises:
        PublishedFileError: The file cannot be read, or is not the one that the policy names.
    """
    if directory is None:
        raise PublishedFileError(NOT_READ)
    path = directory / named.published
    try:
        with path.open("rb") as stream:
            content = stream.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        # A name with NUL is a ValueError.
        raise PublishedFileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if integrity_of(content) != named.integrity:
        raise PublishedFileError(f"expected {named.published} with the integrity that the policy states")
    return content


def publication_of_file(named: PublishedSchema, rho: Fraction, delta: Fraction) -> Publication:
    """Return what the publication of a file that a policy names cost.

    Raises:
        PublishedFileError: The file states an impossible price.
    """
    try:
        return publication_of(named.integrity, rho, delta)
    except ValueError as error:
        raise PublishedFileError(str(error)) from None


def _integrity(body: dict[str, Any]) -> str:
    return f"sha256:{hashlib.sha256(_json(body)).hexdigest()}"


def _json(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # JSON can hold lone surrogates; they are hashed too, and refused when the fields are checked.
    return text.encode(errors="surrogatepass")

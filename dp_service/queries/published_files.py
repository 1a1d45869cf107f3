"""The files that publications write: JSON with sorted keys, whose last field is a hash of all the others.

So a truncated or edited file is refused. The hash is neither a secret nor a signature: anyone who may write the policy
may write such a file.
"""

from __future__ import annotations

import hashlib
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from dp_service.queries.policy_types import PublishedSchema
from dp_service.queries.publications import Publication, publication_of
from dp_service.queries.schema_errors import schema_error

_EXACT = re.compile(r"-?[0-9]{1,60}(/[1-9][0-9]{0,60})?")
Text = Annotated[str, Field(min_length=1, max_length=256)]


class PublishedFileError(ValueError):
    """A file is not what a publication wrote, or not the one that is named; the message says what was expected."""


def _exact(value: object) -> Fraction:
    text = str(value) if isinstance(value, Fraction) else value
    if not isinstance(text, str) or not _EXACT.fullmatch(text):
        raise ValueError("expected a text such as 19/20, of at most 60 decimal places")
    return Fraction(text)


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str)]


class PublishedFile(BaseModel):
    """What every such file has.

    The publication is `delta`-approximate `rho`-zCDP for adding or removing one member.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    FORMAT: ClassVar[str]
    MOST_BYTES: ClassVar[int]

    table: Text
    column: Text
    data_version: Text
    rho: Exact
    delta: Exact
    published_at: Text

    @classmethod
    def of(cls, fields: object) -> Self:
        """Return a file with these fields.

        Raises:
            PublishedFileError: They are not as expected.
        """
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "the file"
            raise PublishedFileError(f"{field}: {schema_error(first['type'], first['msg'])}") from None

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Read a file's content.

        Raises:
            PublishedFileError: The content is malformed, truncated or edited.
        """
        if len(content) > cls.MOST_BYTES:
            raise PublishedFileError(f"expected at most {cls.MOST_BYTES} bytes")
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise PublishedFileError("expected a whole JSON text") from None
        if not isinstance(body, dict) or body.pop("format", None) != cls.FORMAT:
            raise PublishedFileError(f"the file: expected the format {cls.FORMAT}")
        integrity = body.pop("integrity", None)
        found = cls.of(body)
        if integrity != _integrity({**body, "format": cls.FORMAT}):
            raise PublishedFileError("integrity: expected the hash of the rest of the file")
        return found


def written(file: PublishedFile) -> bytes:
    """Return a file's content."""
    body = {"format": file.FORMAT, **file.model_dump()}
    return _json({**body, "integrity": _integrity(body)}) + b"\n"


def integrity_of(content: bytes) -> str:
    """Return the integrity that a file states, empty if it states none; `PublishedFile.read` checks it."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    found = body.get("integrity") if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""


def named_content(named: PublishedSchema, directory: Path, *, most_bytes: int) -> bytes:
    """Return the content of the file that a policy names, relative to `directory`.

    Raises:
        PublishedFileError: The file cannot be read, or is not the one that the policy names.
    """
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

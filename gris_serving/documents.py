"""YAML documents with a schema, read so that nothing in them is lost silently."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gris_serving.reloading_files import SecurityError, read_bytes
from gris_serving.schema_words import expected
from gris_serving.yaml_texts import TextError, read_text

Document = TypeVar("Document", bound=BaseModel)


class Strict(BaseModel):
    """A section of a document: unknown keys and values of another type are refused, and it is frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def read_document(path: Path, schema: type[Document]) -> Document:
    """Read and check a document.

    Raises:
        SecurityError: The document is not valid; its one line names the file and the field, and shows no value.
    """
    return read_content(read_bytes(path), str(path), schema)


def read_content(content: bytes, source: str, schema: type[Document]) -> Document:
    """Read what a document's file holds. Raises SecurityError, as `read_document` does."""
    try:
        return schema.model_validate(read_text(content.decode()).content)
    except UnicodeDecodeError:
        raise SecurityError(f"{source}: expected UTF-8") from None
    except TextError as error:
        raise SecurityError(f"{source}: {error}") from None
    except ValidationError as error:
        problems = (problem_at(each["loc"], expected(each["type"], each["msg"])) for each in error.errors())
        raise SecurityError(f"{source}: {'; '.join(problems)}") from None


def problem_at(location: tuple[int | str, ...], message: str) -> str:
    """Return what is wrong at a field, in one line."""
    field = ".".join(str(key) for key in location)
    return " ".join((f"{field}: {message}" if field else message).split())

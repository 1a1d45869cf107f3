"""YAML documents with a schema, read so that nothing in them is lost silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gris_serving.reloading_files import SecurityError, read_bytes
from gris_serving.schema_words import expected
from gris_serving.yaml_texts import KeyPath, TextError, read_text

Document = TypeVar("Document", bound=BaseModel)
# The kinds of errors of fields that hold numbers.
_OF_NUMBERS = ("greater_than", "less_than", "multiple_of", "int_", "float_", "finite_")
_MOST_SHOWN = 40


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
        found = read_text(content.decode())
    except UnicodeDecodeError:
        raise SecurityError(f"{source}: expected UTF-8") from None
    except TextError as error:
        raise SecurityError(f"{source}: {error}") from None
    try:
        return schema.model_validate(found.content)
    except ValidationError as error:
        raise SecurityError(f"{source}: {'; '.join(problems_of(error, found.lines))}") from None


def problems_of(error: ValidationError, lines: Mapping[KeyPath, int]) -> Iterator[str]:
    """Yield what is wrong with each field, in one line: what was expected, and the line of the file.

    What stands there follows where it is a number or a choice: any other text may be a secret.

    Args:
        error: What the schema finds wrong.
        lines: The line on which each field starts.
    """
    for each in error.errors():
        problem = problem_at(each["loc"], expected(each["type"], each["msg"]))
        known = each["loc"] or _named_in(problem)
        while known and known not in lines:
            known = known[:-1]
        place = f" (line {lines[known]})" if known else ""
        yield f"{problem}{_got(each['type'], each['input'])}{place}"


def _named_in(problem: str) -> KeyPath:
    """Return the field that the text of a rule about several fields begins with."""
    return tuple(int(part) if part.isdecimal() else part for part in problem.partition(":")[0].split("."))


def _got(kind: str, value: object) -> str:
    is_number = isinstance(value, int | float) and kind.startswith(_OF_NUMBERS)
    is_choice = kind == "literal_error" and isinstance(value, str | int | float)
    return f", got {str(value)[:_MOST_SHOWN]}" if is_number or is_choice else ""


def problem_at(location: tuple[int | str, ...], message: str) -> str:
    """Return what is wrong at a field, in one line."""
    field = ".".join(str(key) for key in location)
    return " ".join((f"{field}: {message}" if field else message).split())

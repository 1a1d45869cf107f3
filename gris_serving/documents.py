"""YAML documents with a schema, read so that nothing in them is lost silently."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from gris_serving.reloading_files import SecurityError

Document = TypeVar("Document", bound=BaseModel)


class Strict(BaseModel):
    """A section of a document: unknown keys and values of another type are refused, and it is frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


def read_document(path: Path, schema: type[Document]) -> Document:
    """Read and check a document.

    Raises:
        SecurityError: The document is not valid; its one line names the file and the field, and shows no value.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=UniqueKeyLoader)  # noqa: S506 - a SafeLoader
        return schema.model_validate(content)
    except OSError as error:
        raise SecurityError(f"{path}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise SecurityError(f"{path}: expected UTF-8") from None
    except yaml.YAMLError as error:
        raise SecurityError(f"{path}: {yaml_problem(error)}") from None
    except ValidationError as error:
        problems = (_problem(each["loc"], expected(each["type"], each["msg"])) for each in error.errors())
        raise SecurityError(f"{path}: {'; '.join(problems)}") from None


_BLOCK_AND_COMMENT = re.compile(r"[|>][-+1-9]*#")


def _is_taken_otherwise(text: str) -> bool:
    """Return whether a text has what libyaml accepts, but PyYAML's own parser refuses in places.

    These are tabs, question marks in brackets, and `|#`. To look for the latter in the whole text would take longer.
    """
    lines = (each for each in text.splitlines() if "#" in each)
    return "\t" in text or "?" in text or any(_BLOCK_AND_COMMENT.search(each) for each in lines)


class UniqueKeyLoader(yaml.SafeLoader):
    """YAML lets the last of two equal keys win silently; here they are refused. Its other errors are YAMLError too."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._text = stream

    def get_single_node(self) -> yaml.Node | None:
        """Parse the document by libyaml, which is far quicker, if PyYAML has it.

        What libyaml refuses is parsed again, for an error in the words that `yaml_problem` knows.
        """
        if yaml.__with_libyaml__ and not _is_taken_otherwise(self._text):
            with suppress(yaml.YAMLError):
                node: yaml.Node | None = yaml.CSafeLoader(self._text).get_single_node()
                return node
        return super().get_single_node()

    def construct_document(self, node: yaml.Node) -> Any:
        """Read a document, and take its nodes apart: other threads would wait if all of them went at once."""
        # Else what is to be done later is collected for the whole document, and goes at once too.
        self.deep_construct = True
        found = super().construct_document(node)
        rest = [node]
        while rest:
            each = rest.pop()
            if isinstance(each, yaml.MappingNode):
                rest += chain.from_iterable(each.value)
            elif isinstance(each, yaml.SequenceNode):
                rest += each.value
            each.value = ()
        return found

    def get_single_data(self) -> Any:
        """Read the document.

        Raises:
            MarkedYAMLError: It is nested deeper than Python can read, or escapes a character that does not exist.
        """
        try:
            return super().get_single_data()
        except RecursionError:
            problem = "expected less nesting"
        except (ValueError, OverflowError):
            problem = "expected escapes of characters that exist"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=self.get_mark())

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Build a value as YAML does.

        Raises:
            MarkedYAMLError: It is a day or a number that Python cannot represent, or does not fit its tag.
        """
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError):
            # What PyYAML raises for `!!bool maybe`, `!!int ""` and `!!timestamp today` is no YAMLError either.
            problem = "expected days that exist, numbers of fewer digits, and values of their tags"
            mark = node.start_mark
        # Raised here: the text of the other error can repeat the value.
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping as YAML does.

        Raises:
            MarkedYAMLError: It has the same key twice.
        """
        keys = [key.value for key, _ in pairs_of(node) if isinstance(key, yaml.ScalarNode)]
        if len(set(keys)) < len(keys):
            repeated = next(key for key, count in Counter(keys).items() if count > 1)
            problem = f"the key {repeated!r} stands there twice"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def pairs_of(node: yaml.Node) -> list[tuple[yaml.Node, yaml.Node]]:
    """Return the keys and values of a mapping; none where a tag calls another node a mapping, which PyYAML refuses."""
    return node.value if isinstance(node, yaml.MappingNode) else []


_NUMBER = re.compile("^Input should be (?=greater|less|a multiple)")
_SIZE = re.compile(r"^[A-Z][a-z]+ should have (at (?:least|most) \d+ (?:character|item)s?).*")
# What pydantic says of these is about this program and not about the document.
_EXPECTED = {
    "missing": "expected this key",
    "extra_forbidden": "there is no such key",
    "model_type": "expected keys and their values",
    "model_attributes_type": "expected keys and their values",
    "dataclass_type": "expected keys and their values",
    "dict_type": "expected keys and their values",
    "string_type": "expected a text",
    "int_type": "expected a whole number",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "invalid_key": "expected a text as the key",
    "tuple_type": "expected a list",
    "string_pattern_mismatch": "expected a text of another form",
}


def expected(kind: str, message: str) -> str:
    """Return what is wrong with a field in the words of who writes the document.

    Args:
        kind: The type of pydantic's error.
        message: Its text.
    """
    own = message.removeprefix("Value error, ")
    if (size := _SIZE.fullmatch(own)) is not None:
        return f"expected {size[1]}"
    return _EXPECTED.get(
        kind, _NUMBER.sub("expected a number ", own).replace("Input should be ", "expected ")
    )


# Parts of PyYAML's messages, which name characters and tokens as Python does; the first that fits counts.
_YAML = {
    r"'\t'": "a tab is not allowed here: indent with spaces",
    "cannot start any token": "no text begins with this character: put it into quotes",
    "mapping values are not allowed": "this colon follows no key: a colon is missing above, a key does not begin in "
    "the column of the others, or a text with a colon needs quotes",
    "sequence entries are not allowed": "no list can begin here: put it on a line of its own",
    "could not find expected ':'": "expected a key, a colon and its value",
    "unexpected end of stream": "quotes that are opened here or above are not closed",
    "expected ',' or ']'": "a list in brackets needs a comma between its values, and a ] at its end",
    "expected ',' or '}'": "a mapping in braces needs a comma between its keys, and a } at its end",
    "<block end>": "this line does not continue what is above it: begin all keys of one mapping in the same column",
    "expected alphabetic or numeric": "a text that begins with *, & or % needs quotes",
    "undefined alias": "a text that begins with * needs quotes",
    "escape": "a backslash in double quotes means something else: put this text into single quotes",
    "the node content": "expected a value",
    "another document": "expected one document, without a second one behind ---",
}


def yaml_problem(error: yaml.YAMLError) -> str:
    """Return where the text is wrong and how; the parser's own message is about characters, and can repeat a piece."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return "expected YAML"
    problem = str(error.problem)
    # Exactly this class is raised here alone; its subclasses are PyYAML's own.
    if type(error) is not yaml.MarkedYAMLError:
        problem = next((own for part, own in _YAML.items() if part in problem), "expected YAML")
    return f"line {error.problem_mark.line + 1}: {problem}"


def _problem(location: tuple[int | str, ...], message: str) -> str:
    field = ".".join(str(key) for key in location)
    return " ".join((f"{field}: {message}" if field else message).split())

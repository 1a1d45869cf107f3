"""YAML texts as plain values, read so that nothing in them is lost silently.

PyYAML follows YAML 1.1, where `NO` is false, `012` is ten and `12:30` is 750, and lets the last of two equal keys
win. A file must mean what it says. So only the plain forms of YAML 1.2 are read as anything but text, and repeated
keys, aliases and explicit tags are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import yaml

from gris_serving.garbage_collection import no_collection

KeyPath = tuple[str | int, ...]

_PREFIX = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT, _FLOAT = (_PREFIX + name for name in ("null", "bool", "int", "float"))
# The length of the longest 64-bit integer; Python refuses to convert very long ones.
_MAXIMUM_INTEGER_CHARACTERS = len(str(-(2**63)))
_MAXIMUM_DEPTH = 32
# The longest name of a caller in a certificate.
MAXIMUM_KEY_CHARACTERS = 2048
MOST_CHANGED = 10
"""How many keys that differ are named."""


class TextError(Exception):
    """A text that cannot be read. The problem may repeat a key, and no value.

    Attributes:
        line: Where, from 1 on; None: the text as a whole.
        problem: What was expected there.
    """

    def __init__(self, line: int | None, problem: str) -> None:
        super().__init__(problem if line is None else f"line {line}: {problem}")
        self.line = line
        self.problem = problem


@dataclass
class YamlText:
    """The plain values of a text, and the line on which each key path starts."""

    content: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)


def read_text(
    text: str, *, decimals: Callable[[str], Any] = float, most_key_characters: int = MAXIMUM_KEY_CHARACTERS
) -> YamlText:
    """Read a YAML text.

    Args:
        text: The text.
        decimals: What makes a number of one that is written with a point or an exponent.
        most_key_characters: How long a key may be.

    Raises:
        TextError: The text is not of this form.
    """
    found = YamlText()
    reader = _Reader(decimals, most_key_characters, found.lines)
    try:
        with no_collection():
            node = _composed(text)
            found.content = None if node is None else reader.plain(node, ())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        own = isinstance(error, _OwnError)
        raise TextError(line, str(error.problem) if own else _problem(str(error.problem))) from None
    except RecursionError:
        raise TextError(None, "expected less nesting") from None
    except yaml.YAMLError:
        raise TextError(None, "expected a YAML text of printable characters") from None
    return found


def changed_keys(before: str, after: str) -> str:
    """Return the path of each key, such as `tables.orders.columns`, under which two texts differ; lists are wholes.

    Raises:
        TextError: One is not of this form.
    """
    found = list(_changed(read_text(before).content, read_text(after).content, ()))
    more = len(found) - MOST_CHANGED
    return ", ".join(found[:MOST_CHANGED]) + (f" and {more} more" if more > 0 else "")


def _changed(before: Any, after: Any, path: KeyPath) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from _changed(before.get(key), after.get(key), (*path, key))
    elif before != after:
        yield ".".join(map(str, path))


class _Loader(yaml.SafeLoader):
    """The safe loader with fewer implicit types, and neither aliases nor tags."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's interface

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node; refuse aliases, which are hard to audit, and tags, which make `!!bool yes` false."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _error(event, "aliases are not allowed: put a text that begins with * into quotes")
        if getattr(event, "tag", None) is not None:
            raise _error(event, "explicit tags are not allowed")
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(_NULL, re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|false)$"), ["t", "f"])
_Loader.add_implicit_resolver(_INT, re.compile(r"^(?:0|-?[1-9][0-9]*)$"), list("-0123456789"))
_Loader.add_implicit_resolver(
    _FLOAT, re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"), list("-0123456789")
)


def _composed(text: str) -> yaml.Node | None:
    """Return the root of a text; composing builds no objects at all.

    libyaml is far quicker. What it refuses, or would take otherwise, is read by PyYAML's own parser, whose errors
    `_problem` knows.
    """
    if yaml.__with_libyaml__ and not _is_taken_otherwise(text):
        with suppress(yaml.YAMLError, ValueError, OverflowError):
            loader = yaml.CSafeLoader(text)
            loader.yaml_implicit_resolvers = _Loader.yaml_implicit_resolvers
            node: yaml.Node | None = loader.get_single_node()
            return node
    python = _Loader(text)
    try:
        return python.get_single_node()
    except (ValueError, OverflowError):
        mark = python.get_mark()
    raise _OwnError(problem="expected escapes of characters that exist", problem_mark=mark)


_BLOCK_AND_COMMENT = re.compile(r"[|>][-+1-9]*#")
_TAG_OR_ALIAS = re.compile(r"(?:^|[\s\[{,])[!*]")


def _is_taken_otherwise(text: str) -> bool:
    """Return whether a text has what libyaml accepts and PyYAML's own parser refuses, or what `_Loader` does.

    These are tabs, question marks in brackets and `|#`; and what may be a tag or an alias. To look for `|#` in the
    whole text would take longer.
    """
    if "\t" in text or "?" in text or _TAG_OR_ALIAS.search(text):
        return True
    return any(_BLOCK_AND_COMMENT.search(each) for each in text.splitlines() if "#" in each)


@dataclass
class _Reader:
    """Makes plain values of nodes, and takes these apart: threads would wait if all of them went at once."""

    decimals: Callable[[str], Any]
    most_key_characters: int
    lines: dict[KeyPath, int]

    def plain(self, node: yaml.Node, path: KeyPath) -> Any:
        """Return the value of a node."""
        if len(path) > _MAXIMUM_DEPTH:
            raise _error(node, "expected less nesting")
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        parts, node.value = node.value, ()
        if isinstance(node, yaml.MappingNode):
            return self._mapping(parts, path)
        return [self.plain(item, (*path, place)) for place, item in enumerate(parts)]

    def _mapping(self, parts: list[tuple[yaml.Node, yaml.Node]], path: KeyPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for key_node, value_node in parts:
            key = self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                raise _error(key_node, "expected a text as key")
            if len(key) > self.most_key_characters:
                raise _error(key_node, f"expected a key of at most {self.most_key_characters} characters")
            if key in mapping:
                raise _error(key_node, f"the key {key!r} is repeated")
            self.lines[(*path, key)] = key_node.start_mark.line + 1
            mapping[key] = self.plain(value_node, (*path, key))
        return mapping

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        match node.tag:
            case t if t == _INT:
                if len(text) > _MAXIMUM_INTEGER_CHARACTERS:
                    raise _error(node, "expected an integer of 64 bits, or a text in quotes")
                return int(text)
            case t if t == _FLOAT:
                return self.decimals(text)
            case t if t == _BOOL:
                return text == "true"
            case t if t == _NULL:
                return None
            case _:
                return text


class _OwnError(yaml.MarkedYAMLError):
    """What this module refuses, in words of its own."""


def _error(node: yaml.Node | yaml.Event, problem: str) -> _OwnError:
    mark: Any = node.start_mark
    return _OwnError(problem=problem, problem_mark=mark)


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
    "escape": "a backslash in double quotes means something else: put this text into single quotes",
    "the node content": "expected a value",
    "another document": "expected one document, without a second one behind ---",
}


def _problem(said: str) -> str:
    """Return what is wrong in the words of who writes the file; PyYAML's can repeat a piece of it."""
    return next((own for part, own in _YAML.items() if part in said), "expected YAML")

"""Reads YAML without loss: every scalar keeps its text, every value its line.

PyYAML follows YAML 1.1, where `NO` is false, `012` is ten and `12:30` is 750, and lets the last of two equal keys
win. A policy must mean what it says, so only the plain forms of YAML 1.2 are read as anything but text, decimal
numbers stay text until they become exact fractions, and repeated keys, aliases and explicit tags are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from dp_service.queries.errors import PolicyError, Problem
from dp_service.queries.schema_errors import yaml_error

KeyPath = tuple[str | int, ...]

_PREFIX = "tag:yaml.org,2002:"
_NULL, _BOOL, _INT = (_PREFIX + name for name in ("null", "bool", "int"))
# The length of the longest 64-bit integer; Python refuses to convert very long ones.
_MAXIMUM_INTEGER_CHARACTERS = len(str(-(2**63)))
# Every fault and every line repeats the keys above it, so a stranger's text could grow far beyond its own size.
MAXIMUM_KEY_CHARACTERS = 128
_MAXIMUM_DEPTH = 32


class _Loader(yaml.SafeLoader):
    """The safe loader with fewer implicit types, and neither aliases nor tags."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's interface

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node; refuse aliases, which are hard to audit, and tags, which make `!!bool yes` false."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _marked(event, "aliases are not allowed")
        if getattr(event, "tag", None) is not None:
            raise _marked(event, "explicit tags are not allowed")
        return super().compose_node(parent, index)


_Loader.add_implicit_resolver(_NULL, re.compile(r"^(?:~|null|)$"), ["~", "n", ""])
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|false)$"), ["t", "f"])
_Loader.add_implicit_resolver(_INT, re.compile(r"^(?:0|-?[1-9][0-9]*)$"), list("-0123456789"))


@dataclass
class Document:
    """The plain values of a YAML text, and the line on which each key path starts."""

    source: str
    content: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Return a problem at a key path, with the line of the nearest key that exists."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        key = ".".join(map(str, path)) or "the file"
        return Problem(self.source, self.lines.get(known, 1), key, message)


def read_document(text: str, source: str) -> Document:
    """Read a YAML text; `source` names it in errors.

    Raises:
        PolicyError: The text is not of this form; the error names the line.
    """
    document = Document(source)
    try:
        node = _composed(text)
        document.content = _plain(document, node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        # Exactly this class is raised here alone; its subclasses are PyYAML's own.
        own = type(error) is yaml.MarkedYAMLError
        problem = str(error.problem) if own else yaml_error(str(error.problem))
        raise PolicyError((Problem(source, line, "", problem),)) from None
    except RecursionError:
        raise PolicyError((Problem(source, 1, "", "expected less nesting"),)) from None
    except yaml.YAMLError:
        raise PolicyError((Problem(source, 1, "", "expected a YAML text of printable characters"),)) from None
    return document


def _composed(text: str) -> yaml.Node | None:
    """Return the root of a text; composing builds no objects at all."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    except (ValueError, OverflowError):
        mark = loader.get_mark()
    raise yaml.MarkedYAMLError(problem="expected escapes of characters that exist", problem_mark=mark)


def _plain(document: Document, node: yaml.Node, path: KeyPath) -> Any:
    if len(path) > _MAXIMUM_DEPTH:
        raise _marked(node, "expected less nesting")
    document.lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(document, node, path)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(document, item, (*path, i)) for i, item in enumerate(node.value)]
    return _plain_scalar(node)


def _plain_mapping(document: Document, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _plain_scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise _marked(key_node, "expected a text as key")
        if len(key) > MAXIMUM_KEY_CHARACTERS:
            raise _marked(key_node, f"expected a key of at most {MAXIMUM_KEY_CHARACTERS} characters")
        if key in mapping:
            raise _marked(key_node, f"the key {key!r} is repeated")
        document.lines[(*path, key)] = key_node.start_mark.line + 1
        mapping[key] = _plain(document, value_node, (*path, key))
    return mapping


def _plain_scalar(node: yaml.Node) -> str | int | bool | None:
    text: str = node.value
    match node.tag:
        case t if t == _INT:
            if len(text) > _MAXIMUM_INTEGER_CHARACTERS:
                raise _marked(node, "expected an integer of 64 bits, or a text in quotes")
            return int(text)
        case t if t == _BOOL:
            return text == "true"
        case t if t == _NULL:
            return None
        case _:
            return text


def _marked(node: yaml.Node | yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = node.start_mark
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)

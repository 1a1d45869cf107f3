"""What is said of a document that does not have the shape of its schema."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import yaml
from pydantic import Field

from gris_serving.documents import Strict, read_document
from gris_serving.reloading_files import SecurityError


class _Inner(Strict):
    port: int = Field(ge=1)


class _Schema(Strict):
    name: str
    inner: _Inner
    shown: bool = False
    many: list[str] = Field(default_factory=list)
    kind: Literal["a", "b"] = "a"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("inner: {port: 1}", "name: expected this key"),
        ("{name: a, inner: {port: 1}, more: 2}", "more: there is no such key (line 1)"),
        ("{name: 3, inner: {port: 1}}", "name: expected a text (line 1)"),
        ("{name: a, inner: 7}", "inner: expected keys and their values (line 1)"),
        ("{name: a, inner: {port: x}}", "inner.port: expected a whole number (line 1)"),
        (
            "{name: a, inner: {port: 0}}",
            "inner.port: expected a number greater than or equal to 1, got 0 (line 1)",
        ),
        ("{name: a, inner: {port: 1}, shown: 'x'}", "shown: expected true or false (line 1)"),
        ("{name: a, inner: {port: 1}, many: b}", "many: expected a list (line 1)"),
        ("name: a\nkind: c\ninner:\n  port: 1", "kind: expected 'a' or 'b', got c (line 2)"),
        ("name: a\ninner:\n  port: 5.5\n", "inner.port: expected a whole number, got 5.5 (line 3)"),
        ("name: a\ninner:\n  port: secret\n", "inner.port: expected a whole number (line 3)"),
        ("name: a\ninner: {}\n", "inner.port: expected this key (line 2)"),
        ("- a", "expected keys and their values"),
        ("a:\n\tb: 1", "line 2: a tab is not allowed here: indent with spaces"),
        ("a: {b: 1\nc: d", "line 2: a mapping in braces needs a comma between its keys, and a } at its end"),
        ("a: &", "line 1: a text that begins with *, & or % needs quotes"),
        ("a: [b, *]", "line 1: a text that begins with *, & or % needs quotes"),
        ("a: [b, *c]", "line 1: aliases are not allowed: put a text that begins with * into quotes"),
        ("a: !b c", "line 1: explicit tags are not allowed"),
        ("{7: a}", "line 1: expected a text as key"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' is repeated"),
        ("{name: a, inner: {port: 0x1F}}", "inner.port: expected a whole number (line 1)"),
        ("{name: NO, inner: {port: 1}, shown: yes}", "shown: expected true or false (line 1)"),
    ],
)
def test_a_fault_is_told_in_the_words_of_who_writes_the_document(
    text: str, problem: str, tmp_path: Path
) -> None:
    """None of the libraries' own texts, which are about classes and inputs, tokens and blocks."""
    path = tmp_path / "document.yaml"
    path.write_text(text)
    with pytest.raises(SecurityError) as refusal:
        read_document(path, _Schema)
    assert f"{path}: {problem}" == str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "name: a\ninner: {port: 1}\nmany: [b, 'c', \"d\\u00e9\"]",
        "name: >-\n  a\n  b\ninner: &x {port: 1}\nmany: []",
        "name: a\tb\ninner: {port: 1}",
        "name: a\ninner: {port: 1}\nmany: [b?c]",
        "name: |# a\ninner: {port: 1}",
        "name: a\ninner: {port: 1, port: 2}",
        "? [a, b]\n: c",
        "name: !!bool maybe",
        "name: !!int ''",
        "name: !!timestamp today",
        "name: !!map a",
        "name: " + "[" * 500,
    ],
)
def test_a_document_is_read_alike_where_pyyaml_has_no_libyaml(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same values, or the same refusal; nothing else is raised."""
    path = tmp_path / "document.yaml"
    path.write_text(text)

    def outcome() -> _Schema | str:
        try:
            return read_document(path, _Schema)
        except SecurityError as refusal:
            return str(refusal)

    found = outcome()
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert found == outcome()

"""The references list every key, every option and every alert, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import pytest
import yaml
from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo

from budget_service.configuration.budget_file import Configuration
from budget_service.server import process as budget_service
from dp_service.queries.policy_schema import PolicySchema
from dp_service.server import process as dp_service
from gris_gateway import process as gateway
from gris_gateway.configuration import GatewayConfiguration
from gris_serving.authorisation import Access
from tests.support.pages import quoted, rows, section
from tests.support.paths import ROOT
from tests.support.some import some

EVERY = section("options.md", "## Options of every server")
BOTH = section("options.md", "## Options of both services") + EVERY


@dataclass(frozen=True)
class Reference:
    """A table of keys, and the schema that it describes."""

    text: str
    schema: type[BaseModel]

    def documented(self) -> dict[str, str]:
        """Return the default that the table tells for each key, empty where it tells none."""
        return {key: cells[2] for cells in rows(self.text, "key") for key in quoted(cells[0])}

    def existing(self) -> dict[str, FieldInfo]:
        """Return every key that the schema has."""
        return dict(keys(self.schema))


def keys(schema: type[BaseModel], above: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Give every key of a schema with its path; T stands for the name of a table, [] for an entry of a list."""
    for name, reported in schema.model_fields.items():
        path = above + (reported.alias or name)
        yield path, reported
        for below, inner in schemas(reported.annotation, path.rpartition(".")[2][:1].upper()):
            yield from keys(inner, f"{path}{below}.")


def schemas(annotation: Any, placeholder: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Give the schemas inside a type, and how a path goes on to them."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, RootModel):
        yield from schemas(annotation.model_fields["root"].annotation, placeholder)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "", annotation
    elif origin is dict:
        yield from ((f".{placeholder}{below}", each) for below, each in schemas(inside[1], placeholder))
    elif origin is list:
        yield from ((f"[]{below}", each) for below, each in schemas(inside[0], placeholder))
    elif origin in (Annotated, Union, UnionType):
        for each in inside[:1] if origin is Annotated else inside:
            yield from schemas(each, placeholder)


REFERENCES = {
    "policy": Reference(section("policy-reference.md", "## Reference"), PolicySchema),
    "budget.yaml": Reference(section("budget.md", "## The configuration"), Configuration),
    "gateway.yaml": Reference(section("gateway-reference.md", "## `gateway.yaml`"), GatewayConfiguration),
    "access": Reference(section("security.md", "## Roles"), Access),
}


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)
def test_a_reference_lists_the_keys_that_there_are(reference: Reference) -> None:
    """In both directions: no key is without its row, and no row without its key."""
    assert reference.existing().keys() == reference.documented().keys()


@pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)
def test_a_reference_tells_the_defaults_that_there_are(reference: Reference) -> None:
    """Which keys are required, which have no default, and what stands for the others."""
    documented = reference.documented()
    for path, reported in some(reference.existing().items()):
        if documented[path]:
            assert documented[path] == default_of(reported, documented[path]), path


def default_of(reported: FieldInfo, as_documented: str) -> str:
    """Return how a table writes a key's default; a default that is a mapping is described by its own keys."""
    if reported.is_required():
        return "required"
    default = reported.get_default(call_default_factory=True)
    match default:
        case BaseModel():
            return as_documented
        case None:
            return as_documented if as_documented.isdecimal() else "none"
        case bool():
            return f"`{str(default).lower()}`"
        case Enum():
            return f"`{default.value}`"
    return f"`{default}`"


OPTIONS: dict[str, tuple[Callable[[list[str]], object], str]] = {
    "dp_service": (dp_service.main, section("options.md", "## `python -m dp_service`") + BOTH),
    "budget_service": (budget_service.main, section("options.md", "## `python -m budget_service`") + BOTH),
    "gateway": (gateway.main, section("options.md", "## `python -m gris_gateway`") + EVERY),
}


@pytest.mark.parametrize("program", OPTIONS)
def test_the_options_that_a_program_takes_are_listed(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its --help lists them, with which of them are required."""
    main, text = OPTIONS[program]
    with pytest.raises(SystemExit):
        main(["--help"])
    usage, _, reported = capsys.readouterr().out.partition("options:")
    taken = set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", reported, re.MULTILINE)) - {"--help"}
    listed = {each.split()[0]: cells[1] for cells in rows(text, "option") for each in quoted(cells[0])}
    assert taken == listed.keys()
    optional = " ".join(re.findall(r"\[([^]]*)\]", " ".join(usage.split())))
    for option, default in some(listed.items()):
        assert (default == "required") == (re.search(rf"{option}\b(?!-)", optional) is None), option


def test_the_guide_explains_the_alerts_that_there_are() -> None:
    """By their names, in the order of the file, each with the severity that it has there."""
    groups = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())["groups"]
    rules = [(rule["alert"], rule["labels"]["severity"]) for group in groups for rule in group["rules"]]
    explained = re.findall(
        r"^- \*\*(\w+)\*\* \((\w+)\)", (ROOT / "docs" / "alerts.md").read_text(), re.MULTILINE
    )
    assert rules == explained

"""What the chart makes of its examples, once for all tests of a worker."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from deploy.kubernetes.chart import ALL, PRODUCTION, Values, helm, render
from deploy.kubernetes.validate import Manifest, manifests_in

Objects = dict[tuple[str, str], Mapping[str, Any]]
EVERYTHING = Values("everything", [*PRODUCTION.files, Path(__file__).with_name("everything.yaml")])
"""What no example has: a ledger in a file, and whatever else is off by default."""


def made_by(example: str) -> list[Manifest]:
    """Return the objects of an example, anew for each who asks: some tests change them."""
    return deepcopy(_read(example))


def deployments(example: str) -> dict[str, Mapping[str, Any]]:
    """Return the Deployments of an example, by their names."""
    return {name: made for (kind, name), made in objects(made_by(example)).items() if kind == "Deployment"}


def text_of(example: str, configuration: str, file: str) -> str:
    """Return a file of a ConfigMap of an example."""
    text: str = objects(made_by(example))["ConfigMap", configuration]["data"][file]
    return text


def charted(values: Values) -> Objects:
    """Return what the chart makes of values."""
    return objects(list(manifests_in(values.name, render(values))))


def objects(manifests: list[Manifest]) -> Objects:
    """Return objects by kind and name."""
    return {(each.content["kind"], each.content["metadata"]["name"]): each.content for each in manifests}


@cache
def _read(example: str) -> list[Manifest]:
    if helm() is None:
        pytest.skip("needs helm")
    (values,) = (each for each in ALL if each.name == example)
    return list(manifests_in(example, render(values)))

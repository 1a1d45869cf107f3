"""The chart's schema repeats keys of `gateway.yaml`: it has all of them that values may state, with the same bounds."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from deploy.kubernetes.chart import CHART
from gris_gateway.configuration import (
    AccountRule,
    CertificateRule,
    GatewayConfiguration,
    HistorySettings,
    LimitSettings,
    Pinot,
    TimeoutSettings,
    Tokens,
)
from gris_gateway.face_settings import BrokerSettings, PostgresSettings
from gris_gateway.page_settings import PageSettings, ProxySettings

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
NUMBERS = ("number", "integer", "boolean")

# What values state by a key of the chart's own, or what the chart itself decides.
OF_THE_CHART: dict[type[BaseModel], set[str]] = {
    GatewayConfiguration: {
        "dp",
        "budget",
        "engine",
        "identity",
        "listen",
        "tls",
        "insecure",
        "releases",
        "mcp",
        "broker",
        "postgres",
        "page",
    },
    HistorySettings: {"file"},
    BrokerSettings: {"listen", "tls"},
    PostgresSettings: {"listen", "tls", "catalogue"},
    PageSettings: {"listen", "tls", "link"},
    Pinot: {"broker", "controller", "authorization_file", "ca_file", "certificate_file"},
    Tokens: {"key_file", "ca_file"},
}
REPEATED: dict[type[BaseModel], str] = {
    GatewayConfiguration: "gateway.settings",
    HistorySettings: "gateway.settings.history",
    LimitSettings: "gateway.settings.limits",
    TimeoutSettings: "gateway.settings.timeouts",
    BrokerSettings: "gateway.broker.settings",
    PostgresSettings: "gateway.postgres.settings",
    PageSettings: "gateway.page.settings",
    ProxySettings: "gateway.page.settings.proxy",
    Pinot: "pinot.settings",
    Tokens: "gateway.identity.jwt",
    AccountRule: "gateway.identity.jwt.accounts.items",
    CertificateRule: "gateway.identity.certificates.additionalProperties",
}
# The files with the keys of tokens' issuer, and with its authority, are written from these.
ONLY_IN_THE_CHART: dict[type[BaseModel], set[str]] = {Tokens: {"keys", "ca"}}


def resolved(schema: Mapping[str, Any], within: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema that a reference stands for; of several forms, the one of a mapping or of a number."""
    if "$ref" in schema:
        *_, group, name = schema["$ref"].split("/")
        return resolved(within[group][name], within)
    for form in schema.get("anyOf", ()):
        if form.get("type") in ("object", *NUMBERS):
            return resolved(form, within)
    return schema


def at(path: str) -> Mapping[str, Any]:
    """Return the part of the chart's schema for a key of the values."""
    found: Mapping[str, Any] = SCHEMA
    for name in path.split("."):
        found = resolved(found.get("properties", found)[name], SCHEMA)
    return found


def numbers_in(
    schema: Mapping[str, Any], names: Collection[str], within: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the type and the bounds of each of these keys that has a number or a truth value."""
    keys = {name: resolved(schema["properties"][name], within) for name in sorted(names)}
    return {
        name: {"type": each["type"], **{bound: each[bound] for bound in BOUNDS if bound in each}}
        for name, each in keys.items()
        if each.get("type") in NUMBERS
    }


@pytest.mark.parametrize("model", REPEATED, ids=lambda model: model.__name__)
def test_the_chart_takes_the_keys_of_the_gateway_with_their_bounds(model: type[BaseModel]) -> None:
    """None more and none less: a key that the schema lacks is refused, though the gateway would read it."""
    chart, own = at(REPEATED[model]), model.model_json_schema()
    names = set(model.model_fields) - OF_THE_CHART.get(model, set())
    assert names == set(chart["properties"]) - ONLY_IN_THE_CHART.get(model, set())
    assert chart["additionalProperties"] is False
    assert numbers_in(own, names, own) == numbers_in(chart, names, SCHEMA)


def test_no_mapping_of_the_settings_is_left_out_of_the_comparison() -> None:
    """A mapping below the settings is one of the gateway's models, each of which is compared."""
    for settings in ("gateway.settings", "pinot.settings"):
        below = {name: resolved(each, SCHEMA) for name, each in at(settings)["properties"].items()}
        mappings = {f"{settings}.{name}" for name, each in below.items() if each["type"] == "object"}
        assert mappings <= set(REPEATED.values())

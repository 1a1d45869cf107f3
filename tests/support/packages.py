"""The packages of the product, from what serves down to what only speaks."""

from __future__ import annotations

PACKAGES = (
    "dp_service",
    "budget_service",
    "pinot_connector",
    "gris_gateway",
    "gris_gateway.faces.page",
    "gris_serving",
    "gris_gateway.faces.mcp",
    "gris_gateway.faces.broker",
    "gris_gateway.faces.postgres",
    "gris_cli.data",
    "gris_cli",
)

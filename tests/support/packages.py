"""The packages of the product, from what serves down to what only speaks."""

from __future__ import annotations

PACKAGES = (
    "dp_service",
    "budget_service",
    "pinot_connector",
    "gris_gateway",
    "gris_page",
    "gris_serving",
    "gris_mcp",
    "gris_broker",
    "gris_postgres",
    "gris_cli.data",
    "gris_cli",
)

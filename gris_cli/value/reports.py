"""What `gris value` prints of a published bound."""

from __future__ import annotations

from dp_service.queries.published_bounds import BoundFile
from dp_service.queries.published_files import integrity_of
from gris_cli.domain.reports import say_price
from gris_cli.terminal import print_json, say
from pinot_connector import formats
from pinot_connector.budgets import Cost
from pinot_connector.json_values import to_json


def print_bound(bound: BoundFile, content: bytes, price: Cost | None, *, as_json: bool) -> None:
    """Print what was published and what it costs; `price` is None where no currency is known."""
    integrity = integrity_of(content)
    if as_json:
        print_json({**bound.model_dump(), "integrity": integrity, "price": to_json(price)})
        return
    cell = formats.interval((formats.exact(bound.lower), formats.exact(bound.upper)))
    share = f"{float(bound.q):g} of the members' totals are below {cell}"
    say("bound", f"{bound.table}.{bound.column}: {share}")
    say("data", f"version {bound.data_version}, published {bound.published_at}")
    say("guarantee", f"{float(bound.rho):g}-zCDP for adding or removing a member")
    say_price(price, f"{bound.rho}:{bound.delta}")
    say("policy", f"upper: {{published: FILE, integrity: '{integrity}'}}")

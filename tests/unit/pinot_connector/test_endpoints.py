"""Addresses: one host, or replicas in gRPC's own forms."""

from __future__ import annotations

import pytest

from gris_gateway.configuration import Service
from pinot_connector.endpoints import require_target
from pinot_connector.errors import InvalidQuestion


@pytest.mark.parametrize("target", ["a:1,b:2", "localhost:50051, localhost:50052"])
def test_a_list_that_grpc_would_take_for_one_name_is_refused(target: str) -> None:
    """By clients, and in the gateway's configuration."""
    with pytest.raises(InvalidQuestion, match="ipv4:IP:PORT,IP:PORT"):
        require_target(target)
    with pytest.raises(ValueError, match="ipv4:IP:PORT,IP:PORT"):
        Service.model_validate({"address": target})


@pytest.mark.parametrize(
    "target", ["a:1", "ipv4:10.0.0.1:1,10.0.0.2:1", "dns:///ledger:50052", "unix:/run/a"]
)
def test_one_host_and_forms_of_grpc_are_taken(target: str) -> None:
    """As gRPC reads them."""
    require_target(target)
    assert Service.model_validate({"address": target}).address == target

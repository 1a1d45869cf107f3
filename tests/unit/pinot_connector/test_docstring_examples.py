"""The examples in the docstrings of the clients hold."""

from __future__ import annotations

import inspect
import re

import pytest

from pinot_connector import AsyncGatewayClient, AsyncPrivateClient, GatewayClient, PrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.questions import structured_question
from tests.support.clients import blocking_client_of
from tests.support.docstring_examples import FRONT_DOOR, run_examples
from tests.support.some import some
from tests.support.world import World


@pytest.mark.parametrize("name", FRONT_DOOR)
@pytest.mark.parametrize("kind", [AsyncPrivateClient, PrivateClient, AsyncGatewayClient, GatewayClient])
def test_every_method_is_documented_in_full(kind: type, name: str) -> None:
    """Arguments, result, errors, guarantee and an example; no argument hides in `**kwargs`."""
    method = getattr(kind, name)
    documentation = inspect.getdoc(method) or ""
    for section in ("Args:", "Returns:", "Raises:", "Guarantee: ", "Example:"):
        assert section in documentation, section
    for parameter in some(list(inspect.signature(method).parameters.values())[1:]):
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        # Arguments that mean the same as another method's share a line.
        assert re.search(rf"\n    (\w+, )*{parameter.name}(, \w+)*: ", documentation), parameter.name


@pytest.mark.parametrize("name", FRONT_DOOR)
async def test_the_examples_of_the_sync_client_hold(world: World, engine: DuckDBEngine, name: str) -> None:
    """They run as they stand, in an account of their own."""
    client = blocking_client_of(world, engine)
    with client:
        assert await run_examples(
            getattr(PrivateClient, name), client=client, structured_question=structured_question
        )


@pytest.mark.parametrize("name", [name for name in FRONT_DOOR if name in vars(AsyncPrivateClient)])
async def test_the_examples_of_the_async_client_hold(client: AsyncPrivateClient, name: str) -> None:
    """They run as they stand, with their `await`."""
    assert await run_examples(
        getattr(AsyncPrivateClient, name), client=client, structured_question=structured_question
    )

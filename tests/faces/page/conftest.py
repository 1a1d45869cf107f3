"""One stage for all tests of the page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.rings import needs
from tests.support.stage import Stage, running_stage
from tests.support.web_page import Person, Served, serving_page


@pytest.fixture(scope="session")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Services and a gateway."""
    with running_stage(tmp_path_factory.mktemp("page")) as made:
        yield made


@pytest.fixture(scope="session")
@needs("process")
def served(stage: Stage) -> Iterator[Served]:
    """A page on a Unix socket."""
    with serving_page(stage) as page:
        yield page


@pytest.fixture
async def ana(served: Served, request: pytest.FixtureRequest) -> AsyncIterator[Person]:
    """Somebody with a budget of her own."""
    name = "".join(each for each in request.node.name if each.isalnum())[:60]
    async with served.person(name) as person:
        yield person

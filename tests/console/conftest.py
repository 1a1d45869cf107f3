"""One stage for all tests of the console, and people who use it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.console.people import Person, Visitors
from tests.console.stage import Stage, running_stage
from tests.support.rings import needs


@pytest.fixture(scope="session")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Services and a gateway."""
    with running_stage(tmp_path_factory.mktemp("console")) as made:
        yield made


@pytest.fixture
async def visitors(stage: Stage) -> AsyncIterator[Visitors]:
    """A console in this process, and people who come to it."""
    made = Visitors(stage)
    yield made
    await made.close()


@pytest.fixture
async def ana(visitors: Visitors) -> Person:
    """An analyst who has logged in."""
    return await visitors.analyst()


@pytest.fixture
async def owner(visitors: Visitors) -> Person:
    """An owner who has logged in."""
    return await visitors.analyst(owner=True)

"""A plugin for tests that are tried again: pytest-rerunfailures leaves two things to mend in what they share.

It keeps the finalizers of a module and a session from the first try, and then loses those of fixtures that only the
second one came to: their servers would never end, and the next module would be given what belongs to another. And it
sets nothing up again that a fixture had asked for by name (`request.getfixturevalue`) and that failed: all other tests
of the session that need it would fail too.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
import pytest_rerunfailures

_failed: list[tuple[pytest.FixtureDef[Any], Any]] = []


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note what has failed."""
    try:
        return (yield)
    except Exception:
        _failed.append((fixturedef, request))
        raise


# Around pytest-rerunfailures, which takes finalizers away and puts them back in this hook.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Keep every finalizer; after the first try of a test, let what has failed be set up anew."""
    _keep_finalizers(item)
    try:
        return (yield)
    finally:
        if getattr(item, "execution_count", 0) == 1:
            for fixturedef, request in _failed:
                fixturedef.finish(request)
        _failed.clear()


def _keep_finalizers(item: pytest.Item) -> None:
    """Put the finalizers that this try of a test has registered beside those of the try before."""
    kept: dict[Any, Any] = pytest_rerunfailures.suspended_finalizers
    for node, (finalizers, _) in item.session._setupstate.stack.items():
        if node in kept:
            # The first is the node's own, which is there already.
            kept[node][0].extend(finalizers[1:])

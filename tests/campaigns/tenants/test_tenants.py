"""The short form of the campaign `tenants`, which asks 100,000 questions; and what it has to find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dp_service.queries import audiences
from dp_service.queries.errors import RefusedByPolicyError
from dp_service.queries.filters import AllOf, AnyOf
from dp_service.queries.tables import Policy, Table
from dp_service.releases import resolving

from .campaign import asking
from .stage import NAMES

QUESTIONS, ENOUGH = 320, 5


@pytest.mark.usefixtures("starts_processes")
def test_tenants_learn_nothing_of_others(tmp_path: Path) -> None:
    """Answers, refusals, catalogue and history are those of worlds without the others."""
    with asking(tmp_path) as campaign:
        totals = campaign.run(QUESTIONS)
    assert min(totals.answered, totals.elements, totals.refused, totals.empty) >= ENOUGH


def a_prefix(patched: pytest.MonkeyPatch) -> None:
    """What begins with a tenant's name is its own: `acme` is `acmecorp`, too."""
    rows = audiences._rows

    def beginning(*arguments: Any) -> Iterator[Any]:
        for each in rows(*arguments):
            more = {name for name in NAMES for value in each.values if name.startswith(str(value))}
            yield replace(each, values=tuple(sorted(more)) if each.column == "text" else each.values)

    patched.setattr(audiences, "_rows", beginning)


def an_or(patched: pytest.MonkeyPatch) -> None:
    """What is forced belongs to the last alternative of a question, as where parentheses are left out."""

    def without_parentheses(query: Any, filters: tuple[Any, ...]) -> Any:
        *others, last = query.filters or (None,)
        if isinstance(last, AnyOf):
            parts = (*last.parts[:-1], AllOf((last.parts[-1], *filters[len(query.filters) :])))
            return replace(query, filters=(*others, AnyOf(parts)))
        return replace(query, filters=filters)

    patched.setattr(resolving, "replace", without_parentheses)


def a_suggestion(patched: pytest.MonkeyPatch) -> None:
    """Who mistypes the name of a table is shown the nearest one of the whole policy."""
    table = Policy.table

    def of_all(self: Policy, name: str) -> Table:
        with suppress(RefusedByPolicyError):
            return table(self, name)
        # It names one that is offered, or the refusal is of all that there are.
        table(self.whole or self, name)
        return table(self, name)

    patched.setattr(Policy, "table", of_all)


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("broken", [a_prefix, an_or, a_suggestion])
def test_what_leads_outside_is_found(
    broken: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these faults ends the campaign."""
    broken(monkeypatch)
    with asking(tmp_path) as campaign, pytest.raises(AssertionError, match="instead of"):
        campaign.run(8 * QUESTIONS)

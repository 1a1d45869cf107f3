"""docs/recipes.md: each question is answered by what the page makes, for the price and with the rows that it states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pinot_connector.embedded import EmbeddedServices
from tests.documentation.commands import run
from tests.support.clients import own_client
from tests.support.embedded import embedded
from tests.support.pages import DOCS, blocks
from tests.support.paths import ROOT
from tests.support.rings import needs

PAGE = (DOCS / "recipes.md").read_text()
RECIPE = re.compile(r"^\*\*(.+)\*\* (.+?); (.+) \(`(.+)`\)\.\n\n```sql\n((?:(?!```).*\n)+)```", re.MULTILINE)
RECIPES = RECIPE.findall(PAGE)
POLICY = (ROOT / "examples/orders/policy.yaml").read_text()
PRICES = {"Free": (0, 0), "1 unit": (1, 0), "20 units and 1 call": (20, 1)}


@pytest.fixture(scope="module")
@needs("process")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedServices, dict[str, Path]]]:
    """Both services under the page's policy, and the table that the page makes."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "examples").symlink_to(ROOT / "examples")
    (commands,) = blocks(PAGE, "sh")
    assert "20 information" in run(commands, folder)
    with embedded(folder, POLICY) as services:
        yield services, {"orders": folder / "shop/orders.parquet"}


def test_the_page_has_as_many_recipes_as_it_says() -> None:
    """Each has the form that the other tests read, and the SQL of none is left out."""
    assert PAGE.startswith(f"# Recipes\n\n{len(RECIPES)} questions ")
    assert len(blocks(PAGE, "sql")) == len(RECIPES)


@pytest.mark.parametrize("number", range(len(RECIPES)), ids=[each[0] for each in RECIPES])
def test_a_recipe_costs_and_shows_what_the_page_says(
    served: tuple[EmbeddedServices, dict[str, Path]], number: int
) -> None:
    """Each asked by somebody who has asked nothing before but, in the last one, the first."""
    _, price, back, _, sql = RECIPES[number]
    services, tables = served
    with own_client(services, tables, account=f"t/{number}") as client:
        if number and sql == RECIPES[0][4]:
            client.sql(sql)
        result = client.sql(sql)
    charged = (result.charged.information, result.charged.calls)
    assert charged == (PRICES.get(price) or (int(price.removesuffix(" units")), 0))
    rows = re.match(r"(some of at most |no )?([0-9]*) ?rows?", back)
    assert rows, back
    if rows[1] == "some of at most ":
        assert 0 < len(result.rows) <= int(rows[2])
    else:
        assert len(result.rows) == int(rows[2] or 0)


@pytest.mark.parametrize("key", sorted({each[3] for each in RECIPES}))
def test_a_recipe_names_a_line_of_the_policy(key: str) -> None:
    """One that the page's policy has, or whose default is in the reference."""
    found: Any = yaml.safe_load(POLICY)["tables"]["orders"]
    for part in key.split("."):
        found = found.get(part)
        if found is None:
            break
    assert found is not None or f"`tables.T.{key}`" in (Path(DOCS) / "policy-reference.md").read_text()

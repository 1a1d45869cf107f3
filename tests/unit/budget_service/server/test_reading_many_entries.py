"""A `budget.yaml` of very many entries that is read while calls are answered: no step of it is long."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import pytest
import yaml

from budget_service.configuration.budget_file import load_configuration
from budget_service.ledger.values import Account
from gris_serving import yaml_texts

MANY = 2000
ENTRY = "  - {{path: [c{}, ann], limit: {{information: 10, calls: 5}}}}\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a file with many entries."""
    found = tmp_path / "budget.yaml"
    found.write_text("accounts:\n" + "".join(map(ENTRY.format, range(MANY))))
    return found


def test_garbage_collection_does_not_look_at_entries(path: Path) -> None:
    """Every thread waits while it looks, and there may be twenty thousand of them."""
    configuration = load_configuration(path)
    ids = set(map(id, configuration.accounts))
    assert len(ids) == MANY
    assert not [each for each in gc.get_objects() if id(each) in ids]


def test_a_configuration_that_is_replaced_needs_no_garbage_collection(path: Path) -> None:
    """It goes with the last one who looks at it, also when limits were found by it."""
    configuration = load_configuration(path)
    assert configuration.limits_of(Account(("c7", "ann")), {})
    last = weakref.ref(configuration)
    gc.disable()
    try:
        del configuration
        assert last() is None
    finally:
        gc.enable()


def test_the_nodes_of_a_document_go_one_by_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None holds another one when the document was read."""
    nodes: list[yaml.Node] = []
    composed = yaml_texts._composed

    def kept(text: str) -> yaml.Node | None:
        document = composed(text)
        assert isinstance(document, yaml.MappingNode)
        ((_, entries),) = document.value
        nodes.extend([document, entries, *entries.value])
        return document

    monkeypatch.setattr(yaml_texts, "_composed", kept)
    assert len(yaml_texts.read_text(path.read_text()).content["accounts"]) == MANY
    assert len(nodes) == MANY + 2
    assert not any(each.value for each in nodes)

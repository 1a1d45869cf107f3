"""The example notebook runs from its first cell to its last."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

from tests.support.paths import ROOT
from tests.support.rings import needs

mpl.use("agg")
from matplotlib import pyplot as plt

from tests.support.some import some

NOTEBOOK = ROOT / "examples" / "notebook" / "private_answers.ipynb"


@pytest.fixture(params=["", "examples/notebook"], ids=["checkout", "own folder"])
@needs("process")
def namespace(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, examples_at_hand: None
) -> dict[str, Any]:
    """Return where the cells run, with services of their own."""
    monkeypatch.chdir(tmp_path / request.param)
    return {}


def shown_by(cell: str, namespace: dict[str, Any]) -> Any:
    """Run a cell as Jupyter does, and return the value that it would show."""
    *before, last = ast.parse(cell).body
    exec(compile(ast.Module(before, []), "cell", "exec"), namespace)  # noqa: S102 - the project's own notebook
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)  # noqa: S307 - as above
    exec(compile(ast.Module([last], []), "cell", "exec"), namespace)  # noqa: S102 - as above
    return None


def test_the_example_notebook_runs(namespace: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """It shows a price, a table, two pictures, a frame and a budget that the questions have taken from."""
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in some(cells))
    try:
        shown = [shown_by("".join(cell["source"]), namespace) for cell in cells]
    finally:
        namespace["opened"].close()
        pictures = len(plt.get_fignums())
        plt.close("all")
    _, price, top, _, frame, _, _ = shown
    assert "information units, at most" in price._repr_html_()
    assert "charged now: 2" in top._repr_html_()
    assert ["article_id", "members", "members_lower", "members_upper", "width"] == list(frame.columns)
    assert 2 == pictures
    assert "demo/notebook 29" in capsys.readouterr().out

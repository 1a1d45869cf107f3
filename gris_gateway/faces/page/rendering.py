"""The page as HTML. Texts that strangers wrote are shown as texts."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from gris_gateway.faces.page.asking import ASK, PRICE, Seen
from pinot_connector import formats
from pinot_connector.notebooks.cells import cells, facts, heads, visible

MOST_ROWS = 1000


def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("gris_gateway.faces.page", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "shown": lambda value: visible(str(value)),
        "number": formats.number,
        "time": formats.instant,
        "path": formats.path,
        "share": formats.share,
        "left_of_blocks": formats.left_of_blocks,
    }
    return found


_PAGE = _environment().get_template("page.html")


def rendered(seen: Seen) -> str:
    """Return the page."""
    result = seen.result
    rows = () if result is None else result.rows[:MOST_ROWS]
    return _PAGE.render(
        seen=seen,
        acts={"price": PRICE, "ask": ASK},
        heads=[] if result is None else heads(result),
        names=0 if result is None else len(result.columns),
        rows=[] if result is None else [cells(row, result) for row in rows],
        facts=[] if result is None else list(facts(result, len(rows))),
    )

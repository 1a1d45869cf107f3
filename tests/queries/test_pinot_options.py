"""Options that Pinot's queries set: whatever a table or a broker is set up with, no answer is cut."""

import re
from pathlib import Path

from dp_service.queries.render import dialects
from pinot_connector.engines.pinot.configuration import EXACT

_PAGE = Path(__file__).parents[2] / "docs" / "pinot.md"
_SET = re.compile(r"SET (\w+=[^;]+);")


def _documented(where: str) -> list[str]:
    section = _PAGE.read_text().split("### Settings that its queries override")[1].split("\n## ")[0]
    return re.findall(rf"^\| `([^`]+)` \| [\d.]+ \| {where} \|", section, re.MULTILINE)


def test_every_option_of_the_page_is_set_by_the_queries_it_names_and_no_other() -> None:
    """The page on Pinot and the queries name the same options with the same values."""
    pinot = dialects.DIALECTS["pinot"]
    assert _documented("every query") == _SET.findall(pinot.prefix) == _SET.findall(EXACT)
    assert _documented("nested queries") == _SET.findall(pinot.nested_prefix)
    assert _documented("windows") == _SET.findall(dialects._PINOT_WINDOW)


def test_no_limit_of_a_table_or_a_broker_on_the_size_of_an_answer_is_in_force() -> None:
    """A query sets the largest size that a server's answer can have, and lets nothing be left out in silence."""
    options = _SET.findall(dialects.DIALECTS["pinot"].prefix)
    assert f"maxServerResponseSizeBytes={2**31 - 1}" in options
    assert {"ignoreMissingSegments=false", "skipUnavailableServers=false"} <= set(options)
    assert "usePhysicalOptimizer=false" in _SET.findall(dialects.DIALECTS["pinot"].nested_prefix)

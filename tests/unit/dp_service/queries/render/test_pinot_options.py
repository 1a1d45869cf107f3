"""Options that Pinot's queries set: whatever a table or a broker is set up with, no answer is cut."""

import re

from dp_service.queries.render import dialects
from pinot_connector.engines.pinot.configuration import EXACT, HARMLESS_QUERY_SETTINGS, require_exact_table
from tests.support.paths import ROOT

_PAGE = ROOT / "docs" / "pinot-reference.md"
_SET = re.compile(r"SET (\w+=[^;]+);")
_REFUSED, _OVERRIDDEN = "## Settings that it refuses", "## Settings that its queries override"
_HARMLESS, _LOAD = "## Settings that do no harm", "## Settings that end a question under load"


def _rows(heading: str) -> list[list[str]]:
    """Return the rows of a section's table, without its head."""
    section = re.split(r"\n##+ ", _PAGE.read_text().split(heading)[1])[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]


def _documented(where: str) -> list[str]:
    return [option.strip("`") for option, _, place, *_ in _rows(_OVERRIDDEN) if place == where]


def _named(heading: str, cells: slice) -> set[str]:
    """Return what the table of a section names in these of its cells."""
    return {name for row in _rows(heading) for cell in row[cells] for name in re.findall(r"`([^`]+)`", cell)}


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


def test_no_setting_of_the_page_has_two_verdicts() -> None:
    """What is refused or overridden is not called harmless, nor a matter of load."""
    options = {option.strip("`").partition("=")[0] for option, *_ in _rows(_OVERRIDDEN)}
    verdicts = (
        _named(_REFUSED, slice(1)),
        options | _named(_OVERRIDDEN, slice(4, None)) - {"query"},
        _named(_HARMLESS, slice(1)),
        _named(_LOAD, slice(1)) - {".exceed.strategy"},
    )
    assert all(len(names) > 5 for names in verdicts)
    assert sum(map(len, verdicts)) == len(set().union(*verdicts))


def test_every_key_that_a_tables_query_may_state_is_on_the_page() -> None:
    """Nothing is accepted that has no verdict."""
    require_exact_table({"OFFLINE": {"query": dict.fromkeys(HARMLESS_QUERY_SETTINGS, 1)}})
    page = _PAGE.read_text()
    assert all(re.search(rf"`(query\.)?{name}`", page) for name in HARMLESS_QUERY_SETTINGS)

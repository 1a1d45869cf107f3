"""The rows of the campaign `pinot_check`, but the slow ones, on the Pinot that the tests start."""

from collections.abc import Iterator

import pytest

from deploy.pinot.cluster import PinotCluster
from tests.campaigns.pinot_check import __main__ as check
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.connector import filled, require_equal
from tests.campaigns.pinot_check.rows import Outcome, Row, row, tried
from tests.campaigns.pinot_check.table import ROWS
from tests.engines.pinot.plain_http import HTTP

pytestmark = pytest.mark.nightly

QUICK = {each.attempt.__name__: each for each in ROWS if not each.is_slow}


@pytest.fixture(scope="module")
def checked(pinot_cluster: PinotCluster) -> Iterator[CheckedCluster]:
    """The cluster, as somebody else's."""
    with CheckedCluster(pinot_cluster.controller_url, pinot_cluster.broker_url) as cluster:
        yield cluster
    assert cluster.tables == []


@pytest.mark.parametrize("name", QUICK)
def test_the_row_holds(checked: CheckedCluster, name: str) -> None:
    """On the version that the tests run on; what cannot be tried there says why."""
    (result,) = tried([QUICK[name]], checked)
    if result.outcome is Outcome.NOT_TRIED:
        pytest.skip(result.remark)
    assert Outcome.HELD is result.outcome, result.remark


@row
def wrong(cluster: CheckedCluster) -> str:
    """A count is another."""
    table = filled(cluster, "wrong", {"a": 2})
    require_equal([[3]], cluster.rows(f"SELECT COUNT(*) FROM {table}"))  # noqa: S608
    return ""


@row
def impossible(cluster: CheckedCluster) -> str:
    """Nobody can try this."""
    raise CannotTryError("for a reason")


@pytest.mark.parametrize(("rows", "code"), [((wrong, impossible), 1), ((impossible,), 0)])
def test_a_row_that_does_not_hold_is_told_and_its_table_removed(
    pinot_cluster: PinotCluster,
    capsys: pytest.CaptureFixture[str],
    rows: tuple[Row, ...],
    code: int,
) -> None:
    """The exit code says so; what could not be tried is reported, and is no failure."""
    before = _tables(pinot_cluster)
    urls = ("--controller", pinot_cluster.controller_url, "--broker", f"{pinot_cluster.broker_url}/")
    assert code == check.main(urls, rows)
    printed = capsys.readouterr().out
    assert f"Pinot {pinot_cluster.version}" in printed
    assert "2 servers" in printed
    assert "not tried  Nobody can try this (for a reason)" in printed
    assert (code == 1) == ("DID NOT    A count is another (AssertionError: another answer" in printed)
    assert before == _tables(pinot_cluster)


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """No row is tried, and there is no traceback."""
    nobody = "http://127.0.0.1:1"
    assert 2 == check.main(("--controller", nobody, "--broker", nobody))
    reported = capsys.readouterr()
    assert reported.err.startswith(f"the controller {nobody} cannot be asked: ")
    assert not reported.out


def _tables(cluster: PinotCluster) -> object:
    return [HTTP.get(f"{cluster.controller_url}/{kind}", timeout=30).json() for kind in ("tables", "schemas")]

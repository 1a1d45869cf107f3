"""Which bounds a draft proposes, by their errors on the owner's rows."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from gris_cli.data.policy.draft_bounds import MOST_CUT, UsualList, UsualLists

LITTLE_NOISE, MUCH_NOISE = 1e6, 1e-4


@pytest.fixture
def rows() -> Iterator[duckdb.DuckDBPyConnection]:
    """Read rows of 1,000 members: a dozen of them have 16 pages with 4 rows each, the others one page and one row."""
    with duckdb.connect() as connection:
        connection.sql(
            "CREATE TABLE views AS SELECT who, page, 2.5 AS paid FROM range(1000) AS a(who), range(16) AS b(page), "
            "range(4) AS c(row) WHERE who < 12 OR (page = 0 AND row = 0)"
        )
        yield connection


def lists(connection: duckdb.DuckDBPyConnection, rho: float) -> UsualLists:
    """Return the lists of the table, with noise of this price."""
    return UsualLists(connection, "views", "who", rho)


def test_a_cut_is_that_of_the_weights(rows: duckdb.DuckDBPyConnection) -> None:
    """A member of 16 elements where 4 count in full has half of each: `isqrt(4 * 100 ** 2 // 16)` hundredths."""
    cells = "SELECT DISTINCT who, page AS element, 1 AS size FROM views WHERE who < 12"
    errors = UsualList(cells, 4, LITTLE_NOISE).errors(rows, 1)
    assert errors.cut == pytest.approx(1 / 2)
    assert errors.most_cut == pytest.approx(1 / 2)
    assert errors.error == pytest.approx(1 / 2, abs=0.01)


@pytest.mark.parametrize(("rho", "typical"), [(LITTLE_NOISE, 16), (MUCH_NOISE, 8)])
def test_more_noise_leads_to_a_smaller_bound(
    rows: duckdb.DuckDBPyConnection, rho: float, typical: int
) -> None:
    """Never to one that cuts more than a sixteenth of the total."""
    assert lists(rows, rho).typical("page", rho) == typical


def test_fewer_elements_leave_room_for_one_that_has_most_rows() -> None:
    """A list of members alone would have 16: then 8 rows of the 64 in a favourite page would count, and so 32."""
    with duckdb.connect() as connection:
        connection.sql(
            "CREATE TABLE views AS SELECT who, page FROM range(10064) AS a(who), range(16) AS b(page), "
            "range(64) AS c(row) WHERE row = 0 AND (who < 64 OR page = who % 16) OR who < 64 AND page = who % 16"
        )
        assert lists(connection, LITTLE_NOISE).typical("page", LITTLE_NOISE) == 2


def test_the_largest_cut_is_also_that_of_a_list_of_members(rows: duckdb.DuckDBPyConnection) -> None:
    """Members of 16 pages count with a part in each where 8 count in full: `isqrt(8 * 100 ** 2 // 16)` hundredths."""
    of_views = lists(rows, MUCH_NOISE)
    assert of_views.typical("page", MUCH_NOISE) == 8
    assert of_views.cuts(64)[-1] == pytest.approx(1 - 0.5**0.5)


def test_rows_are_bounded_for_the_total_and_for_lists(rows: duckdb.DuckDBPyConnection) -> None:
    """64 rows in all elements, so that each of 16 elements has 4 and nothing is cut."""
    of_views = lists(rows, LITTLE_NOISE)
    of_views.typical("page", LITTLE_NOISE)
    bound = of_views.rows()
    assert bound == 64
    assert of_views.cuts(bound) == pytest.approx([0, 0, 0])


def test_a_bound_of_rows_cuts_little_of_the_total_whatever_the_noise(
    rows: duckdb.DuckDBPyConnection,
) -> None:
    """The owner's total is right before lists have less noise."""
    of_views = lists(rows, MUCH_NOISE)
    of_views.typical("page", MUCH_NOISE)
    assert of_views.cuts(of_views.rows())[0] <= MOST_CUT


def test_an_amount_is_bounded_by_what_members_have_in_an_element(rows: duckdb.DuckDBPyConnection) -> None:
    """64 rows of 2.5 in the total: 256 is the power of two above 160."""
    assert lists(rows, LITTLE_NOISE).upper("paid", 1024) == 256


@pytest.mark.parametrize(("rho", "expected"), [(LITTLE_NOISE, 16), (0.01, 4)])
def test_rows_with_a_value_are_those_that_a_sum_needs_and_more_for_unlike_averages(
    rho: float, expected: int
) -> None:
    """Four rows of 64 make a total of 256; where a member's 16 rows are of 16 times the amount, all weigh in a mean."""
    with duckdb.connect() as connection:
        connection.sql(
            "CREATE TABLE views AS SELECT who, CASE WHEN who < 20 THEN 16 ELSE 1 END AS paid "
            "FROM range(1000) AS a(who), range(16) AS b(row) WHERE who < 20 OR row = 0"
        )
        assert lists(connection, rho).rows_with_value("paid", low=0, high=64, upper=256) == expected


def test_the_cut_of_sums_is_that_of_the_element_that_loses_most(rows: duckdb.DuckDBPyConnection) -> None:
    """In 15 of 16 pages members have 10, of which 4 rows of at most 1 count, as many as a page has of 64."""
    of_views = lists(rows, LITTLE_NOISE)
    of_views.typical("page", LITTLE_NOISE)
    assert of_views.most_cut("paid", rows=64, row_upper=1, upper=1024) == pytest.approx(0.6)


@pytest.mark.parametrize(("copies", "expected"), [(1, 1), (100, 64)])
def test_quantiles_of_few_rows_have_few_of_a_member(
    rows: duckdb.DuckDBPyConnection, copies: int, expected: int
) -> None:
    """Where ranks are off by a large share of all rows, rows of members are cut; where rows are many, they are not."""
    rows.execute(
        f"CREATE TABLE more AS SELECT who + 1000 * copy AS who, page, paid FROM views, range({copies}) AS d(copy)"  # noqa: S608
    )
    assert UsualLists(rows, "more", "who", LITTLE_NOISE).rows_ranked("paid") == expected


def test_fewer_than_a_dozen_members_decide_no_bound() -> None:
    """One member with far more rows than the others leaves the bound where they are."""
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE views AS SELECT least(i, 999) AS who FROM range(1_000_000) AS a(i)")
        assert lists(connection, LITTLE_NOISE).rows() == 1

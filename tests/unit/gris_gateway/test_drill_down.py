"""Totals beside a list by a looked-up column, asked of a gateway over DuckDB: all surfaces have the same numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
import sqlalchemy as sa

from gris_cli.answer_plot import draw_answer
from pinot_connector import Credentials, Endpoint, GatewayClient
from pinot_connector.dbapi import InterfaceError, ProgrammingError, connect
from pinot_connector.dbapi.urls import CREDENTIALS_DIR
from pinot_connector.errors import InvalidQuestion
from pinot_connector.results import PrivateResult
from pinot_connector.sqlalchemy import GrisDialect
from tests.support.rings import needs
from tests.support.sales import FAR, MEMBERS, SHOWN, TOTALS, running_sales
from tests.support.stage import Stage

mpl.use("agg")
from matplotlib import pyplot as plt

from tests.support.some import some

SQL = (
    "SELECT topic AS about, country, COUNT(DISTINCT member_id) AS people FROM sales "
    "GROUP BY GROUPING SETS ((topic, country), (topic))"
)


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Run services and a gateway."""
    with running_sales(tmp_path_factory.mktemp("sales")) as made:
        yield made


@pytest.fixture(scope="module")
def credentials(stage: Stage) -> Credentials:
    """Return who asks."""
    path = stage.folder / "ana.jwt"
    path.write_text(stage.token("ana"))
    path.chmod(0o600)
    return Credentials(ca_file=stage.authority.ca_file, token_file=path)


@pytest.fixture(scope="module")
def result(stage: Stage, credentials: Credentials) -> Iterator[PrivateResult]:
    """Return the answer that all of this is about."""
    with GatewayClient(Endpoint(stage.gateway, credentials)) as client:
        (table,) = client.catalog("sales").tables
        assert {column.name: column.looked_up_by for column in table.columns}["topic"] == "article"
        yield client.top_k("sales", ["topic", "country"], SHOWN, totals_by="topic")
        plt.close("all")


def test_looked_up_columns_and_their_totals_are_those_of_the_data(result: PrivateResult) -> None:
    """Articles without a topic count nowhere; a pair that is not shown is in its total and in what is left of it."""
    found = {row.element: row.noisy_count for row in result.rows}
    assert [*found] == [*MEMBERS][:SHOWN]
    assert all(abs(int(count or 0) - MEMBERS[str(a), str(b)]) < FAR for (a, b), count in some(found.items()))
    assert result.totals is not None
    assert [each.value for each in result.totals] == [*TOTALS]
    for each in result.totals:
        total, left = TOTALS[str(each.value)]
        assert abs(each.noisy_count - total) < FAR
        assert abs(each.other_count - left) < FAR


def test_a_cursor_has_totals_as_sql_says_and_behind_them_what_is_left(
    stage: Stage, credentials: Credentials, result: PrivateResult
) -> None:
    """NULL is in totals alone, a message says so, and the next result set has the totals with what is left of each."""
    with connect(f"gris://{stage.gateway}/?intervals=1", credentials=credentials) as cursor:
        with pytest.raises(InterfaceError, match="nothing to fetch"):
            cursor.nextset()
        cursor.execute(SQL)
        assert [(each[0], each[6]) for each in cursor.description or ()][:3] == [
            ("about", False),
            ("country", True),
            ("people", False),
        ]
        assert cursor.rowcount == len(MEMBERS) + len(TOTALS)
        found = cursor.fetchall()
        assert [row for row in found if row[1] is None] == found[-len(TOTALS) :]
        totals = [(each.value, each.noisy_count, *each.interval) for each in result.totals or ()]
        assert [(row[0], *row[2:]) for row in found[-len(TOTALS) :]] == totals
        assert "rows with NULL in country are totals by about, of contributions" in str(
            cursor.messages[-1][1]
        )
        assert cursor.nextset() is True
        assert [each[0] for each in cursor.description or ()][4:] == [
            "other_people",
            "other_people_lower",
            "other_people_upper",
        ]
        assert cursor.rowcount == len(TOTALS)
        behind = cursor.fetchall()
        assert [row[:4] for row in behind] == totals
        # All pairs are shown now, so nothing is left but noise.
        assert all(abs(number) < FAR for row in behind for number in row[4:])
        assert cursor.nextset() is None
        plain = cursor.execute("SELECT country, COUNT(DISTINCT member_id) FROM sales GROUP BY country")
        assert (plain.nextset(), plain.fetchone() is None) == (None, False)
        assert cursor.execute("SELECT 1").nextset() is None
        assert cursor.fetchall() == [(1,)]
        with pytest.raises(ProgrammingError, match="expected GROUPING SETS"):
            cursor.execute(SQL.replace(", (topic))", ", (article))"))
        with pytest.raises(ProgrammingError, match="GROUPING"):
            cursor.execute(SQL.replace(" AS people", " AS people, GROUPING(country)"))


def test_sqlalchemy_and_pandas_ask_for_totals_in_their_own_words(
    stage: Stage, credentials: Credentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of SQLAlchemy for GROUPING SETS are accepted SQL, and pandas reads a total as a row without a value."""
    monkeypatch.setenv(CREDENTIALS_DIR, str(stage.folder))
    sa.dialects.registry.register("gris", GrisDialect.__module__, GrisDialect.__name__)
    files = (
        f"ca_file={Path(str(credentials.ca_file)).name}&token_file={Path(str(credentials.token_file)).name}"
    )
    engine = sa.create_engine(f"gris://{stage.gateway}/?{files}")
    sales = sa.Table("sales", sa.MetaData(), autoload_with=engine)
    sets = sa.func.grouping_sets(sa.tuple_(sales.c.topic, sales.c.country), sa.tuple_(sales.c.topic))
    assert str(sales.c.topic.comment).endswith("looked up by article")
    assert str(sales.comment).endswith("GROUPING SETS ((a, b), (a))")
    members = sa.func.count(sales.c.member_id.distinct()).label("members")
    frame = pd.read_sql(sa.select(sales.c.topic, sales.c.country, members).group_by(sets), engine)
    engine.dispose()
    without = frame[frame["country"].isna()]
    assert without["topic"].tolist() == [*TOTALS]
    assert all(
        abs(count - TOTALS[topic][0]) < FAR for topic, _, count in some(without.itertuples(index=False))
    )


def test_a_picture_has_totals_on_a_scale_of_their_own(result: PrivateResult, tmp_path: Path) -> None:
    """Below the elements, which it would dwarf: a bar for each total and one for what is left of it."""
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_answer(result, tmp_path / "a.svg")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", (tmp_path / "a.svg").read_text())
    assert [each for each in texts if each in TOTALS] == [*TOTALS]
    assert len([each for each in texts if ", " in each]) == SHOWN + 1
    axes: Any = result.plot(totals=True)
    assert [label.get_text() for label in axes.get_yticklabels()] == [*TOTALS]
    assert [[bar.get_width() for bar in bars] for bars in axes.containers] == [
        [each.noisy_count for each in result.totals or ()],
        [each.other_count for each in result.totals or ()],
    ]
    assert axes.get_xlabel() == "contributions, totals by topic"
    assert [len(bars) for bars in result.plot().containers] == [SHOWN]


def test_totals_that_nobody_asked_for_are_refused_by_name(
    stage: Stage, credentials: Credentials, result: PrivateResult
) -> None:
    """A result without totals has no table and no picture of them, and no wrong column becomes a question."""
    with GatewayClient(Endpoint(stage.gateway, credentials)) as client:
        plain = client.top_k("sales", ["topic", "country"], SHOWN)
        for wanted in (plain.to_arrow, plain.to_pandas, plain.plot):
            with pytest.raises(InvalidQuestion) as refused:
                wanted(totals=True)
            assert refused.value.field == "totals"
        for by, totals in (
            (["topic", "country"], "article"),
            (["topic"], "topic"),
            (["topic", "country"], 3),
        ):
            with pytest.raises(InvalidQuestion) as refused:
                client.top_k("sales", by, SHOWN, totals_by=totals)  # type: ignore[arg-type]  # wrong ones are meant
            assert refused.value.field == "totals_by"
    assert plain.release_id != result.release_id

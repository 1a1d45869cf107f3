"""pandas reads private answers as it reads any database."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pandas as pd
import pytest

from pinot_connector.dbapi import Connection, ProgrammingError

from .questions import ARTICLES


@pytest.fixture(autouse=True)
def _pandas_wants_sqlalchemy() -> Iterator[None]:
    """pandas warns about every connection that is not SQLAlchemy's, and reads from it all the same."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pandas only supports SQLAlchemy", UserWarning)
        yield


def test_a_frame_has_the_columns_and_rows_of_the_release(connection: Connection) -> None:
    """Counts are integers, so they can be reckoned with."""
    frame = pd.read_sql(ARTICLES, connection)
    assert ["article_id", "members", "members_lower", "members_upper"] == list(frame.columns)
    assert 5 == len(frame)
    assert ["int64"] * 3 == [str(dtype) for dtype in frame.dtypes.iloc[1:]]
    assert ((frame.members_lower <= frame.members) & (frame.members <= frame.members_upper)).all()


def test_parameters_go_through(connection: Connection) -> None:
    """By name, as the module's paramstyle says."""
    sql = ARTICLES.replace("GROUP", "WHERE app = %(app)s GROUP")
    bot = pd.read_sql(sql, connection, params={"app": "RUMORS_LINE_BOT"})
    web = pd.read_sql(sql, connection, params={"app": "WEBSITE"})
    assert list(bot.article_id) != list(web.article_id)


def test_a_frame_can_come_in_pieces(connection: Connection) -> None:
    """One question, read by fetchmany."""
    assert [2, 2, 1] == [len(piece) for piece in pd.read_sql(ARTICLES, connection, chunksize=2)]


def test_an_error_says_what_is_wrong(connection: Connection) -> None:
    """It is ours, or, of an older pandas, its own with our text."""
    with pytest.raises((ProgrammingError, pd.errors.DatabaseError), match="LIKE is not accepted"):
        pd.read_sql(ARTICLES.replace("GROUP", "WHERE app LIKE 'x' GROUP"), connection)

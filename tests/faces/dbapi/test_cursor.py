"""What PEP 249 promises of cursors and connections, on real questions, and pandas on top of them."""

from __future__ import annotations

import datetime
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from pinot_connector import Mechanism, PrivateResult, Timeouts, dbapi
from pinot_connector.dbapi import BOOLEAN, DATETIME, NUMBER, STRING, Connection, Cursor, ProgrammingError
from pinot_connector.dbapi.tables import described
from pinot_connector.engines.base import ColumnType, EngineAnswer, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineUnavailable
from tests.support.clients import Corrupting
from tests.support.interrupting import interruptible
from tests.support.some import some
from tests.support.world import World, new_account

from .questions import ARTICLES, COHORTS, connected


def released(cursor: Cursor) -> PrivateResult:
    """Returns the release of a cursor that has one."""
    assert cursor.release is not None
    return cursor.release


def names(cursor: Cursor) -> list[str]:
    """Returns the names of the columns."""
    return [column[0] for column in cursor.description or ()]


def test_the_module_says_what_pep_249_asks() -> None:
    """Level, thread safety and style of parameters."""
    assert ("2.0", 2, "pyformat") == (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle)


def test_the_constructors_of_pep_249_make_pythons_own_values() -> None:
    """Of their parts, and of the seconds since 1970 in local time."""
    at_time = datetime.datetime(2019, 1, 31, 12, 30)  # the PEP means local time
    ticks = at_time.timestamp()
    assert at_time == dbapi.Timestamp(2019, 1, 31, 12, 30) == dbapi.TimestampFromTicks(ticks)
    assert at_time.date() == dbapi.Date(2019, 1, 31) == dbapi.DateFromTicks(ticks)
    assert at_time.time() == dbapi.Time(12, 30) == dbapi.TimeFromTicks(ticks)
    assert b"bytes" == dbapi.Binary(b"bytes")


def test_rows_are_those_of_the_release(connection: Connection) -> None:
    """Element, count and interval, ranked; every fetch goes on where the last one stopped."""
    cursor = connection.execute(ARTICLES)
    expected = [(*row.element, row.noisy_count, *(row.interval or ())) for row in released(cursor).rows]
    assert 5 == cursor.rowcount == len(expected)
    assert expected == [cursor.fetchone(), *cursor.fetchmany(2), *cursor.fetchall()]
    assert (None, [], []) == (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall())
    assert 5 == cursor.rowcount


def test_the_counts_are_about_the_true_ones(connection: Connection, world: World) -> None:
    """With epsilon 8 no count is off by 20 (but once in 10^30), and intervals lie around it."""
    for article, members, lower, upper in some(connection.execute(ARTICLES)):
        with duckdb.connect() as plain:
            true = plain.execute(
                "SELECT COUNT(DISTINCT member_id) FROM read_parquet(?) WHERE article_id = ?",
                [str(world.tables["feedback"]), article],
            ).fetchall()
        assert abs(members - true[0][0]) < 20
        assert lower <= members <= upper


def test_a_cursor_is_an_iterator(connection: Connection) -> None:
    """Of the rows that are left, also in a block of its own."""
    with connection.cursor() as cursor:
        first, *rest = cursor.execute(ARTICLES)
        assert 4 == len(rest)
        assert [first, *rest] == list(cursor.execute(ARTICLES))
    assert cursor.closed


def test_arraysize_is_what_fetchmany_takes(connection: Connection) -> None:
    """One by default, as the PEP says; 0 rows are 0 rows, and fewer are an error."""
    cursor = connection.execute(ARTICLES)
    assert (1, 0) == (len(cursor.fetchmany()), len(cursor.fetchmany(0)))
    cursor.arraysize = 3
    assert (3, 1) == (len(cursor.fetchmany()), len(cursor.fetchmany()))
    with pytest.raises(dbapi.InterfaceError, match=r"^size: "):
        cursor.fetchmany(-1)


@pytest.mark.parametrize("size", ["2", 2.0, True, [], b"2", 2**64])
def test_what_is_no_number_of_rows_is_refused_and_costs_no_row(connection: Connection, size: Any) -> None:
    """By an error of the PEP, whether it is an argument or `arraysize`; the rows can still be fetched."""
    cursor = connection.execute(ARTICLES)
    with pytest.raises(dbapi.InterfaceError, match=r"^size: "):
        cursor.fetchmany(size)
    cursor.arraysize = size
    with pytest.raises(dbapi.InterfaceError, match=r"^size: "):
        cursor.fetchmany()
    assert cursor.rowcount == len(cursor.fetchall())


def test_an_integer_of_numpy_is_a_number_of_rows(connection: Connection) -> None:
    """Programs that count with NumPy and pandas pass on what they have."""
    assert 2 == len(connection.execute(ARTICLES).fetchmany(np.int64(2)))  # type: ignore[arg-type]  # a caller's


def test_columns_are_named_as_selected(connection: Connection) -> None:
    """In the order of the SELECT list, the count by its alias, then its interval; nothing is ever NULL."""
    cursor = connection.execute(
        "SELECT score, day, app, COUNT(DISTINCT member_id) AS members FROM feedback "
        "GROUP BY app, score, day ORDER BY 4 DESC LIMIT 3"
    )
    types = [(column[0], column[1], column[2:]) for column in cursor.description or ()]
    rest = (None, None, None, None, False)
    assert [
        ("score", NUMBER, rest),
        ("day", DATETIME, rest),
        ("app", STRING, rest),
        ("members", NUMBER, rest),
        ("members_lower", NUMBER, rest),
        ("members_upper", NUMBER, rest),
    ] == types
    assert [int, datetime.date, str, int, int, int] == [type(value) for value in cursor.fetchall()[0]]


def test_a_count_without_alias_is_called_count(connection: Connection) -> None:
    """What Pinot calls it depends on its version."""
    cursor = connection.execute(COHORTS.replace(" AS members", ""))
    assert ["cohort", "count", "count_lower", "count_upper"] == names(cursor)


def test_without_counts_there_are_elements_alone(connection: Connection) -> None:
    """An order is cheaper than counts, and its rows have nothing but elements."""
    cursor = connection.execute(
        "SELECT article_id FROM feedback GROUP BY article_id ORDER BY COUNT(DISTINCT member_id) DESC LIMIT 5"
    )
    assert (["article_id"], 5) == (names(cursor), cursor.rowcount)
    assert all(1 == len(row) for row in cursor)


def test_intervals_can_be_left_out(world: World, engine: DuckDBEngine) -> None:
    """For programs that unpack a row into as many names as they select."""
    with connected(world, engine, intervals=False) as cursor:
        counts = [members for article, members in cursor.execute(ARTICLES)]
        assert (5, ["article_id", "members"]) == (len(counts), names(cursor))


def test_a_result_without_rows_has_columns(connection: Connection) -> None:
    """A filter that nobody meets: bottom alone."""
    cursor = connection.execute(COHORTS.replace("GROUP", "WHERE cohort = %(c)s GROUP"), {"c": "nobody's"})
    assert (0, None, []) == (cursor.rowcount, cursor.fetchone(), cursor.fetchall())
    assert ["cohort", "members", "members_lower", "members_upper"] == names(cursor)
    assert released(cursor).ended_in_bottom


def test_names_that_meet_are_kept_apart(connection: Connection) -> None:
    """A column of the table may be called as the count's interval would be."""
    result = released(connection.execute(COHORTS.replace(" AS members", "")))
    columns = [ExpectedColumn(name, ColumnType.BOOL) for name in ("count", "count__lower", "count__lower_")]
    clashing = PrivateResult(**(vars(result) | {"columns": tuple(columns)}))
    described_names = [(column[0], column[1]) for column in described(clashing, intervals=True)]
    assert [
        *((column.name, BOOLEAN) for column in columns),
        ("count_", NUMBER),
        ("count_lower", NUMBER),
        ("count_upper", NUMBER),
    ] == described_names


def test_a_total_is_one_row_of_its_count(connection: Connection) -> None:
    """As any database gives it: no column beside the count, under its alias, and the ends of its interval."""
    cursor = connection.execute("SELECT COUNT(DISTINCT member_id) AS members FROM feedback WHERE score = 1")
    assert ["members", "members_lower", "members_upper"] == names(cursor)
    ((members, lower, upper),) = cursor.fetchall()
    assert lower <= members <= upper
    assert (1, ()) == (cursor.rowcount, released(cursor).rows[0].element)


@pytest.mark.parametrize("text", ["SELECT 1", "select 1;", " SELECT\n1 ; "])
def test_the_check_that_a_connection_lives_asks_nothing(text: str) -> None:
    """SQLAlchemy and BI tools send it when they connect: one row, no release, and no service that could refuse it."""
    with dbapi.connect("gris://localhost:1") as cursor:
        cursor.execute(text)
        assert (1, ["1"], None) == (cursor.rowcount, names(cursor), cursor.release)
        assert ([(1,)], None) == (cursor.fetchall(), cursor.fetchone())
        assert ["is_alive"] == names(cursor.execute("SELECT 1 AS is_alive"))


def test_any_other_select_without_a_table_is_refused(connection: Connection) -> None:
    """Only the check itself is answered here."""
    for text in ("SELECT 2", "SELECT 1 AS n, 2", "SELECT 1, 1"):
        with pytest.raises(dbapi.ProgrammingError, match="expected FROM with a table"):
            connection.execute(text)


def test_columns_have_the_aliases_of_the_question(connection: Connection) -> None:
    """The rows are those of the question without them, which is the same one and free."""
    plain = connection.execute(COHORTS)
    named = connection.execute(COHORTS.replace("cohort,", 'cohort AS "Kohorte (%%)",'))
    assert ["Kohorte (%)", "members", "members_lower", "members_upper"] == names(named)
    assert plain.fetchall() == named.fetchall()
    assert released(plain).query_id == released(named).query_id
    assert 0 == released(named).charged.information


def test_every_execute_is_one_paid_question(connection: Connection) -> None:
    """The release says what it cost, what was charged and what is left; a repeat is free."""
    first = released(connection.execute(ARTICLES))
    again = released(connection.execute(ARTICLES))
    other = released(connection.execute(COHORTS))
    assert (Mechanism.UNK_GUMB, Mechanism.UNK_LAP) == (first.mechanism, other.mechanism)
    assert (11, 0, 1) == tuple(each.charged.information for each in (first, again, other))
    assert first.rows == again.rows
    assert 3000 - 11 - 1 == other.remaining[-1].remaining.information


def test_parameters_are_values(connection: Connection) -> None:
    """A question with parameters is the question with literals: the same release, paid for once."""
    where = "WHERE app IN (%(apps)s) AND score = %(score)s AND day >= %(day)s AND cohort <> %(cohort)s GROUP"
    parameters = {
        "apps": ["WEBSITE", "RUMORS_LINE_BOT"],
        "score": -1,
        "day": datetime.date(2018, 1, 1),
        "cohort": "it's 100%",
    }
    literal = (
        "WHERE app IN ('WEBSITE', 'RUMORS_LINE_BOT') AND score = -1 AND day >= '2018-01-01' "
        "AND cohort <> 'it''s 100%' GROUP"
    )
    bound = released(connection.execute(ARTICLES.replace("GROUP", where), parameters))
    written = released(connection.execute(ARTICLES.replace("GROUP", literal)))
    assert (bound.release_id, 0) == (written.release_id, written.charged.information)


@pytest.mark.parametrize(
    "fetch", [Cursor.fetchone, Cursor.fetchmany, Cursor.fetchall, next], ids=["one", "many", "all", "next"]
)
def test_nothing_is_fetched_before_execute(connection: Connection, fetch: Callable[[Cursor], object]) -> None:
    """There is no description, no count of rows and no release either."""
    cursor = connection.cursor()
    assert (None, -1, None) == (cursor.description, cursor.rowcount, cursor.release)
    with pytest.raises(dbapi.InterfaceError, match="nothing to fetch"):
        fetch(cursor)


def test_a_failed_execute_leaves_nothing_of_the_one_before(connection: Connection) -> None:
    """Neither rows nor columns nor a release that would be taken for the failed question's."""
    cursor = connection.execute(ARTICLES)
    cursor.fetchone()
    for operation, parameters in (("SELECT", None), (COHORTS + " LIMIT %(k)s", {})):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute(operation, parameters)
        assert (None, -1, None) == (cursor.description, cursor.rowcount, cursor.release)
        with pytest.raises(dbapi.InterfaceError):
            cursor.fetchall()
    assert 5 == cursor.execute(ARTICLES).rowcount


def test_an_engine_that_fails_costs_nothing(world: World) -> None:
    """A question that failed can be asked again, and is then charged once."""
    failures = [EngineUnavailable("gone")]

    def fail_once(answer: EngineAnswer) -> EngineAnswer:
        if failures:
            raise failures.pop()
        return answer

    with closing(Corrupting(world, fail_once)) as engine, connected(world, engine) as cursor:
        with pytest.raises(dbapi.OperationalError):
            cursor.execute(ARTICLES)
        cursor.execute(ARTICLES)
        assert 3000 - 11 == released(cursor).remaining[-1].remaining.information


def test_an_interrupted_execute_is_not_paid_for(world: World, engine: DuckDBEngine) -> None:
    """Ctrl-C while the engine works: no result, neither new nor old, and nothing charged or held."""
    account, over = new_account(), threading.Event()

    def interrupt(answer: EngineAnswer) -> EngineAnswer:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        over.wait(20)
        return answer

    with (
        closing(Corrupting(world, interrupt)) as hanging,
        connected(world, hanging, account=account) as cursor,
    ):
        with interruptible(), pytest.raises(KeyboardInterrupt):
            cursor.execute(ARTICLES)
        assert (None, -1, None) == (cursor.description, cursor.rowcount, cursor.release)
        over.set()
    with connected(world, engine, account=account) as after:
        (*_, level) = released(after.execute(COHORTS)).remaining
        assert (1, 0) == (level.spent.information, level.reserved.information)


def test_there_is_no_transaction(connection: Connection) -> None:
    """What is executed is paid for at once: commit has nothing to do, and nothing can be rolled back."""
    connection.commit()
    with pytest.raises(dbapi.NotSupportedError, match="rollback"):
        connection.rollback()


def test_executemany_is_refused_by_name(connection: Connection) -> None:
    """Each question is paid for, so each is asked on its own."""
    with pytest.raises(dbapi.NotSupportedError, match="executemany"):
        connection.cursor().executemany(ARTICLES, [{}])


def test_sizes_are_accepted_and_ignored(connection: Connection) -> None:
    """The PEP asks for the methods and lets them do nothing."""
    with connection.cursor() as cursor:
        cursor.setinputsizes([10])
        cursor.setoutputsize(10)
        assert 5 == cursor.execute(ARTICLES).rowcount


def test_a_closed_cursor_gives_nothing(connection: Connection) -> None:
    """The connection goes on; closing twice is allowed."""
    cursor = connection.execute(ARTICLES)
    cursor.close()
    cursor.close()
    for call in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute(ARTICLES)):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            call()
    assert 5 == connection.execute(ARTICLES).rowcount


def test_a_closed_connection_closes_its_cursors(world: World, engine: DuckDBEngine) -> None:
    """Closing twice is allowed; the engine of the caller stays open."""
    connection = connected(world, engine)
    cursor = connection.execute(ARTICLES)
    assert connection is cursor.connection
    connection.close()
    connection.close()
    assert cursor.closed
    for call in (connection.cursor, connection.commit, cursor.fetchone, lambda: cursor.execute(ARTICLES)):
        with pytest.raises(dbapi.InterfaceError, match="closed"):
            call()
    with connected(world, engine) as open_cursor:
        assert 5 == open_cursor.execute(ARTICLES).rowcount


def test_threads_share_a_connection(connection: Connection) -> None:
    """Eight at once, each with its own cursor: the same answers, and one charge for each question."""
    questions = [ARTICLES.replace("LIMIT 5", f"LIMIT {k}") for k in (1, 2, 3, 4)] * 4

    def ask(question: str) -> tuple[int, int]:
        with connection.cursor() as cursor:
            return len(cursor.execute(question).fetchall()), released(cursor).charged.information

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, questions))
    assert [1, 2, 3, 4] * 4 == [rows for rows, _ in answers]
    assert 3 + 5 + 7 + 9 == sum(charged for _, charged in answers)


def test_closing_ends_a_question_of_another_thread(world: World, engine: DuckDBEngine) -> None:
    """It gets an error and no result, and what it had reserved is free again."""
    account = new_account()
    asked, over = threading.Event(), threading.Event()

    def hang(answer: EngineAnswer) -> EngineAnswer:
        asked.set()
        over.wait(20)
        return answer

    with closing(Corrupting(world, hang)) as hanging, ThreadPoolExecutor(1) as threads:
        connection = connected(world, hanging, account=account, timeouts=Timeouts(engine=20))
        cursor = connection.cursor()
        asking = threads.submit(cursor.execute, ARTICLES)
        assert asked.wait(20)
        connection.close()
        over.set()
        with pytest.raises(dbapi.InterfaceError, match="closed before there was an answer"):
            asking.result()
    assert cursor.release is None
    with connected(world, engine, account=account) as after:
        (*_, level) = released(after.execute(COHORTS)).remaining
        assert (1, 0) == (level.spent.information, level.reserved.information)


def test_a_lowered_limit_is_a_warning_of_its_result_alone(connection: Connection) -> None:
    """PEP 249's `messages` have it until the next question."""
    cursor = connection.execute(ARTICLES.replace("LIMIT 5", "LIMIT 50000"))
    lowered = "The question asks for 50000 elements; the policy shows at most 100."
    assert (dbapi.Warning, lowered) in [(kind, str(warning)) for kind, warning in cursor.messages]
    assert 50_000 == released(cursor).requested_k
    assert lowered not in map(str, dict(cursor.execute(ARTICLES).messages).values())


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
    with pytest.raises(
        (ProgrammingError, pd.errors.DatabaseError), match="regular expressions are not accepted"
    ):
        pd.read_sql(ARTICLES.replace("GROUP", "WHERE app ~ 'x' GROUP"), connection)

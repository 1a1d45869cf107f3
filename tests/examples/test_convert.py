"""The example tables hold what their authors published, and converting gives the same bytes each time."""

import csv
import io
import tarfile
import zipfile
from pathlib import Path

import duckdb
import pytest

from examples.convert import FOLDER, convert_cofacts, convert_online_retail, convert_ubuntu_irc, main

FEEDBACK = FOLDER / "cofacts" / "feedback.parquet"
WORDS = FOLDER / "ubuntu_irc" / "words.parquet"
PURCHASES = FOLDER / "online_retail" / "purchases.parquet"

Row = tuple[object, ...]


def ask(query: str, table: Path) -> list[Row]:
    """Return the rows of a query in which `t` is the Parquet file."""
    with duckdb.connect() as connection:
        connection.from_parquet(str(table)).create_view("t")
        rows: list[Row] = connection.execute(query).fetchall()
        return rows


def members_per(column: str, table: Path) -> list[int]:
    """Return how many distinct members each value of the column has, the largest first."""
    counts = ask(f"SELECT count(DISTINCT member_id) FROM t GROUP BY {column} ORDER BY 1 DESC", table)  # noqa: S608
    return [int(str(count)) for (count,) in counts]


@pytest.fixture
def published_feedback(tmp_path: Path) -> Path:
    """A small file in the published form, with comments that hold line breaks, quotes and commas."""
    rows = [
        ["b", "r1", "-1", 'first line\nsecond, "quoted" line', "f" * 64, "SITE", "2018-12-31T23:59:59.999Z"],
        ["a", "r1", "1", "", "f" * 64, "BOT", "2018-11-30T00:00:00.000Z"],
        ["a", "r2", "1", "plain", "e" * 64, "BOT", "2019-01-01T00:00:00.001Z"],
    ]
    source = tmp_path / "article_reply_feedbacks.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["articleId", "replyId", "score", "comment", "userIdsha256", "appId", "createdAt"])
        writer.writerows(rows)
    with zipfile.ZipFile(tmp_path / "feedback.zip", "w") as archive:
        archive.write(source, source.name)
    return tmp_path / "feedback.zip"


@pytest.fixture
def published_purchases(tmp_path: Path) -> Path:
    """A small file in the published form, with one row that has no customer."""
    source = tmp_path / "purchases.csv"
    source.write_text(
        "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
        '5,B,"A, comma",6,2010-12-01 08:26:00,2.55,17850.0,France\n'
        "5,A,,-1,2010-12-01 23:59:00,2.55,12346.0,Spain\n"
        "5,A,,1,2010-12-02 08:26:00,2.55,,Spain\n",
        encoding="utf-8",
    )
    return source


def test_feedback_has_the_published_numbers_of_rows_members_and_articles() -> None:
    """The committed table is the whole release, not a part of it."""
    query = "SELECT count(*), count(DISTINCT member_id), count(DISTINCT article_id) FROM t"
    assert ask(query, FEEDBACK) == [(74_012, 24_587, 6_982)]


def test_feedback_has_the_published_members_per_article() -> None:
    """The head of the ranking and two places of its tail are those of the release."""
    members = members_per("article_id", FEEDBACK)
    assert members[:10] == [1127, 970, 802, 787, 742, 702, 579, 568, 519, 484]
    assert (members[500], members[1000]) == (31, 13)


def test_feedback_has_no_nulls_and_only_known_scores() -> None:
    """A policy can treat every column as always present."""
    query = "SELECT count(COLUMNS(*)) FROM t"
    assert ask(query, FEEDBACK) == [(74_012,) * 6]
    assert ask("SELECT DISTINCT score FROM t ORDER BY 1", FEEDBACK) == [(-1,), (1,)]


def test_each_member_has_one_cohort_the_month_of_the_first_day() -> None:
    """Delta = 1 holds for the cohort by construction."""
    query = """SELECT count(*) FROM (
        SELECT count(DISTINCT cohort) AS cohorts, min(cohort) AS cohort, strftime(min(day), '%Y-%m') AS month
        FROM t GROUP BY member_id) WHERE cohorts <> 1 OR cohort <> month"""
    assert ask(query, FEEDBACK) == [(0,)]


def test_purchases_have_the_published_numbers() -> None:
    """The committed table holds every purchase of a known customer."""
    query = "SELECT count(*), count(DISTINCT member_id), count(DISTINCT stock_code) FROM t"
    assert ask(query, PURCHASES) == [(406_829, 4_372, 3_684)]
    assert members_per("stock_code", PURCHASES)[:5] == [887, 858, 708, 679, 640]
    assert members_per("country", PURCHASES)[:4] == [3950, 95, 87, 31]


def test_the_committed_tables_are_small() -> None:
    """A clone of the repository stays light."""
    assert FEEDBACK.stat().st_size < 1_000_000
    assert PURCHASES.stat().st_size < 2_000_000


def test_feedback_is_converted_row_by_row(published_feedback: Path, tmp_path: Path) -> None:
    """Line breaks in comments do not split rows, days are UTC, and the rows are sorted."""
    target = tmp_path / "feedback.parquet"
    convert_cofacts(published_feedback, target)
    expected = [
        ("a", "e" * 16, 1, "BOT", "2019-01-01", "2019-01"),
        ("a", "f" * 16, 1, "BOT", "2018-11-30", "2018-11"),
        ("b", "f" * 16, -1, "SITE", "2018-12-31", "2018-11"),
    ]
    assert expected == ask("SELECT * REPLACE (CAST(day AS VARCHAR) AS day) FROM t", target)


def test_purchases_without_a_customer_are_left_out(published_purchases: Path, tmp_path: Path) -> None:
    """A row without a customer has no member whom it could be counted for."""
    target = tmp_path / "purchases.parquet"
    convert_online_retail(published_purchases, target)
    expected = [("12346", "A", "Spain", "2010-12-01", -1), ("17850", "B", "France", "2010-12-01", 6)]
    assert expected == ask("SELECT * REPLACE (CAST(day AS VARCHAR) AS day) FROM t", target)


def test_converting_twice_gives_the_same_bytes(
    published_feedback: Path, published_purchases: Path, tmp_path: Path
) -> None:
    """The hash of a table can serve as its data version."""
    results = []
    for name in ("first", "second"):
        output = tmp_path / name
        main(
            [
                "--cofacts",
                str(published_feedback),
                "--online-retail",
                str(published_purchases),
                "--output",
                str(output),
            ]
        )
        results.append({file.name: file.read_bytes() for file in output.rglob("*.parquet")})
    assert len(results[0]) == 2
    assert results[0] == results[1]


def test_a_hash_that_is_not_told_apart_by_sixteen_characters_is_refused(tmp_path: Path) -> None:
    """Two members are never merged silently."""
    source = tmp_path / "article_reply_feedbacks.csv"
    lines = [f"a,r,1,,{'f' * 63}{last},BOT,2018-11-30T00:00:00.000Z\n" for last in "01"]
    source.write_text("articleId,replyId,score,comment,userIdsha256,appId,createdAt\n" + "".join(lines))
    with zipfile.ZipFile(tmp_path / "feedback.zip", "w") as archive:
        archive.write(source, source.name)
    with pytest.raises(ValueError, match="not as expected"):
        convert_cofacts(tmp_path / "feedback.zip", tmp_path / "feedback.parquet")


CHAT = """=== someone [~x] has joined #ubuntu
[15:29] <Ann> Look: HTTP://Example.org/a?b=c and don't-know
[15:30] <bob> look www.example.org   [ok]
no message
"""


def test_words_are_lower_case_tokens_without_urls(tmp_path: Path) -> None:
    """Members are numbers, words keep apostrophes and hyphens, and the channel's own lines say nothing."""
    published, target = tmp_path / "chat.tar.gz", tmp_path / "words.parquet"
    with tarfile.open(published, "w:gz") as archive:
        entry = tarfile.TarInfo("data/a.ascii.txt")
        entry.size = len(CHAT.encode())
        archive.addfile(entry, io.BytesIO(CHAT.encode()))
    convert_ubuntu_irc(published, target)
    rows = ask("SELECT list(word ORDER BY word) FROM t GROUP BY member_id", target)
    assert [["and", "don't-know", "look"], ["look", "ok"]] == sorted(words for (words,) in rows)  # type: ignore[type-var]


def test_the_words_of_the_channel_are_all_there() -> None:
    """Words, members and different words, as the folder's page says."""
    counts = ask("SELECT count(*), count(DISTINCT member_id), count(DISTINCT word) FROM t", WORDS)
    assert [(2_285_754, 17_701, 62_720)] == counts

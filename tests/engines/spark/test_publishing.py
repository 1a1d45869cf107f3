"""`gris domain publish --engine spark`: the pairs that one machine reads, a whole file or none."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from functools import reduce
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover
from dp_service.partitions.spark import SparkFailedError, discover_on_spark
from dp_service.queries.published import DomainFile
from gris_cli.__main__ import main
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import read_pairs
from gris_cli.data.domain.on_spark import canonical_pairs
from gris_cli.data.errors import InputError
from tests.engines.spark.pairs import SALT, SEED
from tests.support.world import copy

POLICY = """
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: who
    measures: {distinct_members: true}
    columns:
      page: {type: string, group_by: true}
"""
GENEROUS = Parameters(Method.SIPS, rho=Fraction(5), delta=Fraction(1, 10**3), typical=7)


def _published(path: Path, member: str, column: str) -> tuple[str, ...]:
    """Return what one machine releases."""
    with read_pairs(Source(path, member, column), typical=GENEROUS.typical, salt=SALT) as pairs:
        noise = KeyedElementNoise(SEED, GENEROUS, pairs.keys)
        return tuple(sorted(pairs.named(discover(pairs.contributions, GENEROUS, noise).elements)))


def _published_on_spark(texts: DataFrame) -> tuple[str, ...]:
    rounds = discover_on_spark(texts, GENEROUS, seed=SEED, salt=SALT)
    return tuple(sorted(text for texts in rounds for text in texts))


# Members and elements of other types than texts, and one member with more elements than all others together.
_TYPED = """
    SELECT i AS who, i % 9 - 4 AS number, (i % 3 = 0) AS flag, DATE '1969-12-30' + (i % 5)::INT AS day,
           CASE WHEN i % 2 = 0 THEN '00' || (i % 4) ELSE 'q"u,o' || chr(10) || 'te' END AS text
    FROM range(300) r(i)
    UNION ALL SELECT 1, i, true, DATE '1500-01-01' + i::INT, 't' || i FROM range(2000) r(i)
"""
# No two columns share a member or an element, so that none has a part in what is released of another one.
_MEMBERS_OF = {"number": "who", "flag": "who + 1000", "day": "who + 2000", "text": "who + 3000"}


def test_every_type_is_published_as_on_one_machine(spark: SparkSession, tmp_path: Path) -> None:
    """Canonical texts are the same bytes on both: the same seed names the same elements, of all columns at once."""
    path = tmp_path / "typed.parquet"
    members = ", ".join(f"{who} AS who_of_{column}" for column, who in _MEMBERS_OF.items())
    copy(f"SELECT *, {members} FROM ({_TYPED})", path)  # noqa: S608 - its own
    expected = [_published(path, f"who_of_{column}", column) for column in _MEMBERS_OF]
    assert all(expected)
    texts = [
        canonical_pairs(spark, Source(str(path), f"who_of_{column}", column))[0] for column in _MEMBERS_OF
    ]
    # Spark has two threads, and more partitions than these take longer.
    together = reduce(DataFrame.union, texts).coalesce(2)
    assert sorted(chain.from_iterable(expected)) == list(_published_on_spark(together))


def test_csv_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """A broken quote of one member would swallow the rows of others, in a file and in a table of the catalogue."""
    (tmp_path / "pairs.csv").write_text('who,text\nm1,"a\nm2,b\n')
    with pytest.raises(InputError, match="one machine only"):
        canonical_pairs(spark, Source(str(tmp_path / "pairs.csv"), "who", "text"))
    spark.sql("CREATE TABLE loose_pairs USING csv AS SELECT 'm' AS who, 'a' AS text")
    try:
        with pytest.raises(InputError, match="Parquet and ORC only"):
            canonical_pairs(spark, Source("catalog:loose_pairs", "who", "text"))
    finally:
        spark.sql("DROP TABLE loose_pairs")


def test_what_no_answer_can_carry_is_left_out(spark: SparkSession, tmp_path: Path) -> None:
    """Texts that are too long or no UTF-8, NUL, and days beyond the year 9999: a query would leave them out too."""
    path = str(tmp_path / "odd")
    spark.sql("""
        SELECT m, CAST(name AS STRING) AS name, day FROM VALUES (1, BINARY('a'), DATE '2019-01-01'),
            (2, BINARY(repeat('x', 1025)), DATE '2019-01-01' + 4000000), (3, X'61FF', DATE '0001-01-01' - 1),
            (4, X'6100', NULL), (NULL, BINARY('b'), DATE '2019-01-02') AS t(m, name, day)
    """).write.parquet(path)
    for column, expected in (("name", "a"), ("day", "2019-01-01")):
        texts, _ = canonical_pairs(spark, Source(path, "m", column, drops_nulls=True))
        assert [("1", expected)] == texts.collect()


@pytest.mark.parametrize(
    ("member", "column", "message"),
    [
        ("m", "nobody", "no column nobody"),
        ("m", "price", "price: expected elements"),
        ("price", "name", "price: expected members"),
        ("m", "name", "such rows are left out"),
    ],
)
def test_data_that_are_no_pairs_are_refused(
    spark: SparkSession, tmp_path: Path, member: str, column: str, message: str
) -> None:
    """A column that is not there, one of another type, and rows without an element that nobody said to drop."""
    copy("SELECT 1 AS m, 1.5::DOUBLE AS price, NULL::VARCHAR AS name", tmp_path / "t.parquet")
    with pytest.raises(InputError, match=message):
        canonical_pairs(spark, Source(str(tmp_path / "t.parquet"), member, column))


@pytest.mark.parametrize("place", ["/nowhere/t.parquet", "catalog:nowhere"])
def test_a_place_where_nothing_is_is_refused(spark: SparkSession, place: str) -> None:
    """The error names the place that was given."""
    with pytest.raises(InputError, match="nothing to read"):
        canonical_pairs(spark, Source(place, "m", "name"))


def test_no_pairs_are_an_empty_domain(spark: SparkSession) -> None:
    """Nobody holds anything, so nothing is released."""
    texts = spark.createDataFrame([], "member string, element string")
    assert _published_on_spark(texts) == ()


@pytest.mark.parametrize("method", [Method.POLICY_GAUSSIAN, Method.GREEDY])
def test_a_method_for_one_machine_is_refused(spark: SparkSession, method: Method) -> None:
    """Before any data are read."""
    parameters = Parameters(method, Fraction(1), Fraction(1, 10))
    with pytest.raises(ValueError, match="one machine only"):
        discover_on_spark(spark.sql("SELECT raise_error('read')"), parameters, seed=SEED, salt=SALT)


def test_sparks_own_error_is_not_repeated(spark: SparkSession) -> None:
    """It quotes the data."""
    texts = spark.sql("SELECT raise_error('canary') AS member, 'a' AS element")
    with pytest.raises(SparkFailedError) as raised:
        discover_on_spark(texts, GENEROUS, seed=SEED, salt=SALT)
    assert "canary" not in str(raised.value)
    assert raised.value.__context__ is None


def _arguments(folder: Path, *more: str) -> list[str]:
    data = [
        "--data",
        str(folder / "visits.parquet"),
        "--table",
        "visits",
        "--column",
        "page",
        "--member",
        "who",
    ]
    files = [
        "--policy",
        str(folder / "policy.yaml"),
        "--out",
        str(folder / "page.json"),
        "--data-version",
        "v1",
    ]
    return ["domain", "publish", *data, *files, "--unrecorded", "--engine", "spark", *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Data in which everyone visits /home and one other page, and a policy."""
    copy(
        "SELECT i AS who, unnest(['/home', '/page/' || i]) AS page FROM range(400) t(i)",
        tmp_path / "visits.parquet",
    )
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


@pytest.mark.nightly
@pytest.mark.usefixtures("starts_processes")
def test_a_domain_is_published_by_a_spark_of_its_own(spark: SparkSession, folder: Path) -> None:
    """From the flags to the file, in a process that starts and ends its own Spark; `spark` only says there is Java."""
    done = subprocess.run(
        [sys.executable, "-m", "gris_cli", *_arguments(folder, "--spark", "local[1]", "--json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, "" if done.returncode == 0 else done.stderr)
    assert ("/home",) == DomainFile.read((folder / "page.json").read_bytes()).elements
    assert spark.range(1).count() == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "message"), [("local[1]", "Java 17"), ("sc://localhost", "would see the seed")]
)
def test_where_spark_cannot_run_there_is_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], url: str, message: str
) -> None:
    """Without Java, or where Spark would get to know the seed, the error says what to do."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    before = sorted(folder.iterdir())
    assert 0 != main(_arguments(folder, "--spark", url))
    assert message in capsys.readouterr().err
    assert before == sorted(folder.iterdir())

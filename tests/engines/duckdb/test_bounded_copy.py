"""What a bounded copy states is read from its footer; what is no such copy, or no longer one, is refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pinot_connector.engines.base import BoundedCopy
from pinot_connector.engines.bounded_copies import require_bounded_copy
from pinot_connector.engines.bounded_copy import BoundedCopyError, CopyStatement, read_bounded_copy
from pinot_connector.errors import EngineRefused

ROWS = "SELECT 'ada' AS who, 'x' || i AS what, 'may' AS month, 100 AS weight FROM range(3) t(i)"
COPY = CopyStatement("visits", "who", ("what",), 3, "all", "weights/v1", 3)


def write(path: Path, stated: str | None, rows: str = ROWS, key: str = "gris_bound") -> Path:
    """Write a Parquet file that states something."""
    statement = "" if stated is None else f", KV_METADATA {{{key}: '{stated.replace(chr(39), chr(39) * 2)}'}}"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet{statement})")
    return path


def changed(**values: object) -> str:
    """Return the statement with other values; None takes a key away."""
    stated = json.loads(COPY.to_json()) | values
    return json.dumps({key: value for key, value in stated.items() if value is not None})


@pytest.mark.parametrize(
    "copy",
    [
        COPY,
        replace(COPY, period="month"),
        replace(COPY, table="ta'ble é😀", elements=("what", "month")),
    ],
    ids=str,
)
def test_what_a_file_states_is_read(tmp_path: Path, copy: CopyStatement) -> None:
    """Whatever the names, that of the file too."""
    assert read_bounded_copy(write(tmp_path / "a [1]*.parquet", copy.to_json())) == copy


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (None, "states no bound"),
        ("no JSON", "in another form"),
        ("[]", "in another form"),
        ("{}", "in another form"),
        *((changed(**{key: None}), "in another form") for key in json.loads(COPY.to_json())),
        (changed(typical=0), "in another form"),
        (changed(typical=True), "in another form"),
        (changed(typical="3"), "in another form"),
        (changed(rows=-1), "in another form"),
        (changed(elements=[]), "in another form"),
        (changed(elements="what"), "in another form"),
        (changed(table=""), "in another form"),
        (changed(member="nobody"), "states a column nobody, which it does not have"),
        (changed(elements=["what", "where"]), "states a column where"),
        (changed(period="day"), "states a column day"),
        (changed(rows=4), "states 4 rows and has 3"),
    ],
)
def test_another_statement_is_refused(tmp_path: Path, stated: str | None, message: str) -> None:
    """Nothing is taken for granted: a missing key is no default."""
    with pytest.raises(BoundedCopyError, match=message):
        read_bounded_copy(write(tmp_path / "copy.parquet", stated))


SPARK = "org.apache.spark.sql.parquet.row.metadata"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("table", "clicks", 'table is "clicks" in the file and "visits" in the policy'),
        ("elements", ["month"], 'elements is ["month"] in the file and ["what"] in the policy'),
        ("typical", 4, "typical is 4 in the file and 3 in the policy"),
        ("period", "month", 'period is "month" in the file and "all" in the policy'),
        # Nobody knows what another rule bounds.
        ("rule", "sha256/v1", 'rule is "sha256/v1" in the file and "weights/v1" in the policy'),
    ],
)
def test_another_copy_than_the_policys_is_refused(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    """With both values of what differs; the same copy is not."""
    expected = BoundedCopy("visits", "who", ("what",), 3, "all")
    require_bounded_copy(write(tmp_path / "same.parquet", COPY.to_json()), expected)
    with pytest.raises(EngineRefused) as refused:
        require_bounded_copy(write(tmp_path / "other.parquet", changed(**{key: value})), expected)
    assert message in str(refused.value)


def test_a_copy_without_weights_is_refused(tmp_path: Path) -> None:
    """Whatever it states."""
    rows = "SELECT 'ada' AS who, 'x' || i AS what FROM range(3) t(i)"
    with pytest.raises(BoundedCopyError, match="states a column weight, which it does not have"):
        read_bounded_copy(write(tmp_path / "copy.parquet", COPY.to_json(), rows))


def spark_schema(*stated: str) -> str:
    """Return a schema as Spark writes it, with a statement at each of its columns."""
    fields = [
        {"name": f"c{place}", "type": "string", "nullable": True, "metadata": {"gris_bound": each}}
        for place, each in enumerate(stated)
    ]
    plain = {"name": "plain", "type": "string", "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [*fields, plain]})


def test_what_spark_writes_at_a_column_is_read(tmp_path: Path) -> None:
    """It is the same statement."""
    path = write(tmp_path / "copy.parquet", spark_schema(COPY.to_json()), key=f'"{SPARK}"')
    assert read_bounded_copy(path) == COPY


@pytest.mark.parametrize(
    "schema",
    [spark_schema(), spark_schema(COPY.to_json(), COPY.to_json()), "no JSON", "[]", '{"fields": [1]}'],
)
def test_another_schema_of_spark_states_nothing(tmp_path: Path, schema: str) -> None:
    """Nor do two statements in one file, whatever they are."""
    with pytest.raises(BoundedCopyError, match="states no bound"):
        read_bounded_copy(write(tmp_path / "copy.parquet", schema, key=f'"{SPARK}"'))


def test_a_file_that_is_no_copy_is_refused(tmp_path: Path) -> None:
    """By its name, without what DuckDB says of it."""
    with pytest.raises(BoundedCopyError, match="there is no file"):
        read_bounded_copy(tmp_path / "absent.parquet")
    (tmp_path / "a.parquet").write_bytes(b"secret")
    with pytest.raises(BoundedCopyError, match="cannot be read as Parquet") as caught:
        read_bounded_copy(tmp_path / "a.parquet")
    assert caught.value.__context__ is None
    with pytest.raises(BoundedCopyError, match="states no bound"):
        read_bounded_copy(write(tmp_path / "a.parquet", COPY.to_json(), key="other"))


def test_rows_that_were_added_under_the_same_footer_are_noticed(tmp_path: Path) -> None:
    """As when a library joins a copy with other rows and carries its footer over."""
    added = f"{ROWS} UNION ALL SELECT 'ada', 'y' || i, 'june', 100 FROM range(99) t(i)"  # noqa: S608
    with pytest.raises(BoundedCopyError, match="states 3 rows and has 102"):
        read_bounded_copy(write(tmp_path / "copy.parquet", COPY.to_json(), added))


def test_the_files_of_a_directory_are_one_copy(tmp_path: Path) -> None:
    """They state the same, and have its rows together; what Spark ignores is ignored."""
    stated = replace(COPY, rows=6).to_json()
    for name in ("part-0.parquet", "part-1.parquet"):
        write(tmp_path / name, stated)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-0.parquet.crc").touch()
    assert read_bounded_copy(tmp_path).rows == 6
    (tmp_path / "part-1.parquet").rename(tmp_path / "_part-1.parquet")
    with pytest.raises(BoundedCopyError, match="states 6 rows and has 3"):
        read_bounded_copy(tmp_path)
    shutil.copy(tmp_path / "part-0.parquet", tmp_path / "part-2.parquet")
    assert read_bounded_copy(tmp_path).rows == 6
    write(tmp_path / "part-2.parquet", replace(COPY, rows=6, typical=4).to_json())
    with pytest.raises(BoundedCopyError, match="different bounded copies"):
        read_bounded_copy(tmp_path)
    (tmp_path / "more.txt").touch()
    with pytest.raises(BoundedCopyError, match="Parquet files and nothing else"):
        read_bounded_copy(tmp_path)


def test_a_directory_without_files_is_refused(tmp_path: Path) -> None:
    """It states nothing."""
    with pytest.raises(BoundedCopyError, match="must hold Parquet files"):
        read_bounded_copy(tmp_path)

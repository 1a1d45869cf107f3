"""The generator's tables: the same numbers give the same bytes, whether a run was interrupted or not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from examples import generate as module
from examples.generate import AnotherTableError, Engagement, generate, main

# Three parts.
SMALL = Engagement(events=2500, members=300, articles=1000, zipf=1.1, seed=7, part=1000)
OTHER = replace(SMALL, seed=8)


def made(path: Path, engagement: Engagement = SMALL) -> bytes:
    """Return the bytes of a table."""
    generate(engagement, path)
    return path.read_bytes()


def asked(path: Path, query: str) -> list[tuple[object, ...]]:
    """Return what DuckDB says of a table."""
    with duckdb.connect() as connection:
        connection.read_parquet(str(path)).create_view("t")
        return connection.execute(query).fetchall()


def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    """And another seed gives others."""
    first = made(tmp_path / "a.parquet")
    assert first == made(tmp_path / "b.parquet")
    assert first != made(tmp_path / "c.parquet", OTHER)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are whole are not made again, and the bytes are those of a run without interruption."""
    whole = made(tmp_path / "whole.parquet")
    really_write = module._write
    written: list[str] = []

    def counted(connection: duckdb.DuckDBPyConnection, events: Any, target: Path) -> None:
        written.append(target.name)
        really_write(connection, events, target)

    def stopping(connection: duckdb.DuckDBPyConnection, events: Any, target: Path) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        counted(connection, events, target)

    path = tmp_path / "resumed.parquet"
    monkeypatch.setattr(module, "_write", stopping)
    with pytest.raises(KeyboardInterrupt):
        generate(SMALL, path)
    assert not path.exists()
    assert ["part-0000.parquet", "part-0001.parquet"] == written
    monkeypatch.setattr(module, "_write", counted)
    assert whole == made(path)
    assert ["part-0000.parquet", "part-0001.parquet", "part-0002.parquet"] == written
    assert not path.with_suffix(".parts").exists()


def test_parts_of_another_table_are_not_mixed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of other numbers is refused, and what lies there stays."""
    path = tmp_path / "t.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(module, "_copy", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            generate(SMALL, path)
    with pytest.raises(AnotherTableError):
        generate(OTHER, path)
    generate(SMALL, path)


def test_popularity_is_uneven_and_members_stay_themselves(tmp_path: Path) -> None:
    """The first article leads by about its weight, and nobody has two titles or regions."""
    path = tmp_path / "t.parquet"
    generate(Engagement(events=20_000, members=2000, articles=1000, zipf=1.1, seed=1), path)
    ((leader, count),) = asked(path, "SELECT article_id, count(*) FROM t GROUP BY 1 ORDER BY 2 DESC LIMIT 1")
    share = 1 / sum(i**-1.1 for i in range(1, 1001))
    assert leader == "article-0000000"
    # Six standard deviations of a binomial count.
    assert count == pytest.approx(20_000 * share, abs=6 * (20_000 * share) ** 0.5)
    assert asked(
        path, "SELECT max(n) FROM (SELECT count(DISTINCT (job_title, region)) n FROM t GROUP BY member_id)"
    ) == [(1,)]
    assert asked(path, "SELECT count(*), min(day)::VARCHAR FROM t") == [(20_000, "2026-01-01")]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--events", "0"),
        ("--events", "1000000000"),
        ("--members", "-1"),
        ("--articles", "0"),
        ("--zipf", "nan"),
        ("--zipf", "0"),
        ("--seed", "-1"),
        ("--seed", str(2**63)),
    ],
)
def test_impossible_numbers_are_refused_by_name(
    option: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the option, and nothing is written."""
    path = tmp_path / "t.parquet"
    with pytest.raises(SystemExit):
        main([option, value, "--output", str(path)])
    assert option.removeprefix("--") in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())

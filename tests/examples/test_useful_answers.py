"""What `bench.answers` calls a useful answer, and a short run of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from bench.answers import main
from bench.workloads import top_list


@pytest.mark.parametrize(("off_by", "missing", "is_useful"), [(9, 1, True), (0, 2, False), (25, 0, False)])
def test_a_list_is_useful_by_its_names_and_counts(off_by: int, missing: int, is_useful: bool) -> None:
    """Nine of ten names, and a tenth of the counts."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE VIEW everything AS SELECT i % 20 AS item, i AS member FROM range(2000) AS rows(i)"
        )
        connection.execute("CREATE VIEW lists AS FROM everything WHERE item < 10 OR member < 1000")
        rows = [SimpleNamespace(element=(item,), noisy_count=100 + off_by) for item in range(missing, 10)]
        result: Any = SimpleNamespace(rows=rows)
        assert top_list(10, "true").is_useful(result, connection) is is_useful


@pytest.mark.usefixtures("starts_processes")
def test_a_short_run_tells_answers_and_the_guarantee(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every workload that makes sense of the data."""
    main(["--only", "Cofacts", "--most", "2"])
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("300 calls")]
    assert [line.split()[2] for line in found] == ["audience", "dashboard"]
    assert all("(33.78, 7e-09)" in line for line in found)

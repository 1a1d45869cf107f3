"""What the owner of the data learns about looked-up columns: rows that are left out, and promises about the values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.queries.policy import Policy
from gris_cli.data.policy.data import examined
from gris_cli.data.policy.promises import counted, require_columns
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.queries.lookups import content, policy_of, said

ENTRIES = content("page", [("1", "news"), ("2", "news"), ("3", "sport")])
ROWS: list[tuple[str | None, int | None]] = [("m1", page) for page in (1, 2, 3, 9, 9)]
ROWS += [("m2", 1), ("m2", None), (None, 1)]


def written(folder: Path) -> Path:
    """Return a file with the rows."""
    path = folder / "t.parquet"
    members, pages = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"m": pa.array(members), "page": pa.array(pages, pa.int64())}), path)
    return path


def policy(table: dict[str, Any], **topic: Any) -> Policy:
    """Return a policy whose pages are not grouped by, but their topics are."""
    columns = {"m": {"type": "string"}, "page": {"type": "int64"}, "topic": said("page", ENTRIES, **topic)}
    stated = {"member": "m", "measures": {"distinct_members": True}, "columns": columns, **table}
    noise = {"count_noise": "gaussian"} if "contributions" in table else {}
    return policy_of({"epsilon_per": "0.15", "delta": "1e-10", **noise, "tables": {"t": stated}}, ENTRIES)


def test_rows_whose_key_the_file_lacks_are_counted_where_they_are_left_out(tmp_path: Path) -> None:
    """Two rows have page 9; where the policy keeps them, they count as an element."""
    path = written(tmp_path)
    kept = policy({}, nulls="keep", null_value="other")
    found = {(each.column, each.reason): each.rows for each in examined(policy({}).tables[0], path).left_out}
    assert found["topic", "a key that the lookup's file does not have"] == 2
    assert "topic" not in {each.column for each in examined(kept.tables[0], path).left_out}


def test_a_delta_that_pages_lend_to_their_topics_is_counted_in_all_pages(tmp_path: Path) -> None:
    """A domain of two pages bounds questions by page; one by topic asks for all four pages of m1."""
    column = {"type": "int64", "domain": [1, 2], "delta": 2, "group_by": True}
    stated = {"member": "m", "measures": {"distinct_members": True}}
    topics = said("page", ENTRIES)
    for columns, found in (({"page": column}, []), ({"page": column, "topic": topics}, [4])):
        table = policy_of(
            {
                "epsilon_per": "0.15",
                "delta": "1e-10",
                "tables": {"t": {**stated, "columns": {"m": {"type": "string"}, **columns}}},
            },
            ENTRIES,
        ).tables[0]
        promises = examined(table, written(tmp_path)).promises
        assert [each.found for each in promises if each.key == "columns.page.delta"] == found


def test_promises_about_topics_are_counted_after_pages_were_looked_up(tmp_path: Path) -> None:
    """m1 has four pages, and two topics; from the file and by the engine."""
    path = written(tmp_path)
    assumed = policy({"contributions": {"bound": "assumed", "delta": 1, "units": 5}})
    narrow = policy({}, delta=1)
    engine = DuckDBEngine({"t": path})
    try:
        for each, key in ((assumed, "contributions.delta"), (narrow, "columns.topic.delta")):
            table = each.tables[0]
            require_columns(engine, table)
            of_file, of_engine = (
                examined(table, path).promises,
                counted(engine, table, each.currency).promises,
            )
            assert [(one.key, one.found) for one in of_file] == [(key, 2)]
            assert [(one.key, one.found) for one in of_engine] == [(key, 2)]
    finally:
        engine.close()

"""Answers questions by DPSQL+ in an interpreter that has it, with an older DuckDB than that of the benchmark.

A line of JSON for each question comes in, and one for its answer or error goes out, until there are no more.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any


def main() -> None:
    """Answer lines; what libraries print goes where errors go."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout = sys.stderr
    # It logs numbers of each step.
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        said: dict[str, object]
        try:
            said = {"found": answered(json.loads(line))}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(said) + "\n")
        answers.flush()


def answered(asked: dict[str, Any]) -> dict[str, float]:
    """Return the numbers by key, or by 0 where there are no keys."""
    import duckdb  # noqa: PLC0415 - an error is an answer
    import polars as pl  # noqa: PLC0415
    from dpsql.accountant import RenyiAccountant  # noqa: PLC0415
    from dpsql.backend import DuckDBBackend  # noqa: PLC0415
    from dpsql.dp_params import DPParams  # noqa: PLC0415
    from dpsql.engine import Engine  # noqa: PLC0415
    from dpsql.validator import Validator  # noqa: PLC0415

    types = {name: pl.Float64 if name == "amount" else pl.String for name in asked["rows"]}
    with duckdb.connect() as connection:
        connection.register("frame", pl.DataFrame(asked["rows"], schema=types))
        connection.execute("CREATE TABLE answers AS SELECT * FROM frame")
        connection.unregister("frame")
        engine = Engine(RenyiAccountant(*asked["account"]), DuckDBBackend(connection), Validator())
        engine.register_database(privacy_unit_columns={"answers": "member"})
        bounds = [tuple(asked["bounds"])] if asked["measure"].startswith("SUM") else None
        params = DPParams(clipping_thresholds=[bounds], **asked["params"])
        if asked["by_key"]:
            text = f"SELECT key, {asked['measure']} FROM answers GROUP BY key"  # noqa: S608
        else:
            text = f"SELECT {asked['measure']} FROM answers"  # noqa: S608
        found = engine.execute_query(text, params)
    keys = found.index if asked["by_key"] else ["0"] * len(found)
    return dict(zip(keys, map(float, found.iloc[:, 0] if len(found) else ()), strict=True))


if __name__ == "__main__":
    main()

"""Answers questions by Tumult Analytics in an interpreter of its own, which needs an older pandas, and Java 17.

A line of JSON for each question comes in, and one for its answer or error goes out, until there are no more.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any


def main() -> None:
    """Answer lines; what libraries and Spark print goes where errors go."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        spark = started(folder)
        for line in sys.stdin:
            said: dict[str, object]
            try:
                said = {"found": answered(spark, json.loads(line))}
            except Exception as error:
                said = {"error": f"{type(error).__name__}: {error}"}
            answers.write(json.dumps(said) + "\n")
            answers.flush()
        spark.stop()


def started(folder: str) -> Any:
    """Return Spark in this process's JVM, which listens to nobody else."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "3g",
        "spark.local.dir": folder,
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": folder,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def answered(spark: Any, asked: dict[str, Any]) -> dict[str, float]:
    """Return the numbers by key, or by 0 where there are no keys; names of a list are found first."""
    import tmlt.analytics as ta  # noqa: PLC0415 - an error is an answer

    rows = _frame(spark, asked["rows"]).cache()
    try:
        session, query = _session(rows, asked["budget"]), ta.QueryBuilder("rows")
        keys = asked["keys"]
        if keys is None:
            keys = _names(session, rows, asked["names"])
            if not keys:
                return {}
            query = query.join_public(_frame(spark, {"key": keys}))
        if keys:
            query = query.enforce(ta.MaxGroupsPerID("key", asked["groups"]))
            query = query.groupby(ta.KeySet.from_dict({"key": keys}))
        found = session.evaluate(_measured(query, asked), session.remaining_privacy_budget).toPandas()
        return dict(zip(found["key"] if keys else ["0"], map(float, found["found"]), strict=True))
    finally:
        rows.unpersist()


def _frame(spark: Any, columns: dict[str, list[Any]]) -> Any:
    import pandas as pd  # noqa: PLC0415 - an extra

    schema = ", ".join(f"{name} {'double' if name == 'amount' else 'string'}" for name in columns)
    return spark.createDataFrame(pd.DataFrame(columns), schema)


def _budget(of: dict[str, float]) -> Any:
    import tmlt.analytics as ta  # noqa: PLC0415 - an extra

    return ta.RhoZCDPBudget(of["rho"]) if "rho" in of else ta.ApproxDPBudget(of["epsilon"], of["delta"])


def _session(rows: Any, budget: dict[str, float]) -> Any:
    import tmlt.analytics as ta  # noqa: PLC0415 - an extra

    change = ta.AddRowsWithID("member")
    return ta.Session.from_dataframe(_budget(budget), "rows", rows, protected_change=change)


def _names(session: Any, rows: Any, asked: dict[str, Any]) -> list[str]:
    """Return names by a part of a session's budget, or by a session of their own, whose budgets are of another kind."""
    import tmlt.analytics as ta  # noqa: PLC0415 - an extra

    finder = _session(rows, asked["budget"]) if asked["apart"] else session
    query = ta.QueryBuilder("rows").enforce(ta.MaxGroupsPerID("key", asked["groups"]))
    query = query.enforce(ta.MaxRowsPerGroupPerID("key", 1)).get_groups(["key"])
    return list(finder.evaluate(query, _budget(asked["budget"])).toPandas()["key"])


def _measured(query: Any, asked: dict[str, Any]) -> Any:
    if asked["measure"] == "members":
        return query.count_distinct(["member"], name="found")
    import tmlt.analytics as ta  # noqa: PLC0415 - an extra

    query = query.enforce(ta.MaxRowsPerID(asked["most"]))
    if asked["measure"] == "rows":
        return query.count(name="found")
    return query.sum("amount", *asked["bounds"], name="found")


if __name__ == "__main__":
    main()

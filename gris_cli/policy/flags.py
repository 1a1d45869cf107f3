"""The flags that name what a policy is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from gris_cli.flag_groups import flag


@dataclass(frozen=True)
class DataFlags:
    """With what a policy is compared."""

    data: list[str] = flag(
        [],
        "Also read a table's Parquet file or DuckDB database: compare it with the policy, check every assumed "
        "delta and tau, and count the rows that questions leave out. True counts, for the owner of the data "
        "alone. PATH alone is enough for a policy of one table. Repeatable.",
        metavar="[TABLE=]PATH",
    )
    pinot: str = flag(
        "",
        "Also compare the policy with the schemas of its tables in a Pinot, at its controller.",
        metavar="URL",
    )
    pinot_broker: str = flag(
        "",
        "With --pinot: also count by queries, through this broker, whether Pinot's rows keep every assumed "
        "delta and tau. True counts, for the owner of the data alone.",
        metavar="URL",
    )
    spark: str = flag(
        "",
        "The same for --data TABLE=PATH or TABLE=catalog:NAME on this Spark, which reads them instead.",
        metavar="URL",
    )

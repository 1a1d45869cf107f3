"""`gris value publish`."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated

from gris_cli.flag_groups import required, with_flags
from gris_cli.inputs import number
from gris_cli.publishing_flags import DataVersionFlag, PriceFlags, TableFlag


@with_flags
def publish(
    *,
    data: Path = required("Parquet, or a DuckDB database.", metavar="FILE"),
    table: TableFlag,
    column: str = required("The column, one of the policy's quantiles of totals."),
    data_version: DataVersionFlag,
    policy: Path = required("The policy, for the column's grid and the currency.", metavar="FILE"),
    out: Path = required("The file to write.", metavar="FILE", dir_okay=False),
    price: PriceFlags,
    quantile: Annotated[
        Fraction, number("Which part of the members is below the bound.", default="0.95")
    ] = Fraction(95, 100),
    as_json: bool,
) -> None:
    """Publish a quantile of members' totals as an upper bound, and record the price for everyone who sees it."""
    from gris_cli.value.reports import print_bound
    from gris_data.value.publishing import Request, published

    made = published(Request(table, column, quantile, data, data_version, policy, out, price.payer()))
    print_bound(made.bound, made.content, made.price, as_json=as_json)

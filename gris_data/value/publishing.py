"""One publication of a bound, from the data to the file; in between, the price is recorded.

What is released is one question for a quantile of all members' totals, by the query and the mechanism of every other
one (`dp_service.mechanisms.aggregates.quantile_gumb`): one choice that is e-bounded range, one unit. Its key is drawn
here and forgotten here, so no question ever shares its noise.
"""

from __future__ import annotations

import datetime
import secrets
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dp_service.noise.gaussian_price import rho_of_units
from dp_service.noise.stream import SEED_BYTES
from dp_service.queries.asked_numbers import AskedQuantile, Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy
from dp_service.queries.published_bounds import NO_DELTA, BoundFile
from dp_service.queries.published_files import PublishedFileError, written
from dp_service.queries.read_columns import quantiles_read
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.versions import is_plain_hash
from dp_service.releases.histogram import checked_histogram
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds.quantiles import CELL_TYPE
from dp_service.releases.releasing import release
from dp_service.releases.translation import FRESH_BYTES, IssueContext, plan_for
from dp_service.terms import GridScale, MemberValue, RankFunction
from gris_data.domain.ledger_entry import LedgerAccount, record
from gris_data.domain.price import price_of
from gris_data.domain.publishing import write_paid
from gris_data.errors import InputError
from gris_data.policies import policy_of
from gris_data.policy.reads import reads_of
from pinot_connector.budgets import Cost
from pinot_connector.engines.base import (
    CELL_COLUMN,
    CellColumn,
    ColumnType,
    EngineQuery,
    ReadValue,
    ValueType,
)
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError

DIALECT = "duckdb"
NONCE_BYTES = 16


@dataclass(frozen=True)
class Request:
    """What is to be published, and where its price is recorded.

    Attributes:
        table: The policy's name of the table.
        column: A column among its `quantiles`, with the totals of members and a geometric grid.
        q: The quantile.
        data: The file with the table: Parquet, or a DuckDB database.
        data_version: What the bound's file calls the data.
        policy: The policy, for the column and the currency.
        out: The file to write.
        payer: The account that records the price; None to record none.
    """

    table: str
    column: str
    q: Fraction
    data: Path
    data_version: str
    policy: Path
    out: Path
    payer: LedgerAccount | None


@dataclass(frozen=True)
class Made:
    """A bound, its price, and the content of its file."""

    bound: BoundFile
    price: Cost
    content: bytes


def published(request: Request) -> Made:
    """Choose the quantile, record the price, write the file.

    Raises:
        InputError: The data, the policy, the quantile or the path of the file are not as expected, or the file
            is there already.
        BudgetExhausted, GrisError: The ledger did not record the price; there is no file.
    """
    if not request.out.parent.is_dir():
        raise InputError(f"there is no directory {request.out.parent}", "out")
    if request.out.exists():
        raise InputError(
            f"{request.out} is there already, and a policy that names it would not be served without it: name another "
            "file",
            "out",
        )
    if is_plain_hash(request.data_version):
        raise InputError("expected a name, such as a date, and no plain hash of the data", "data_version")
    policy = policy_of(request.policy)
    resolution = _question(request, policy)
    rho = rho_of_units(policy.currency.epsilon_per, 1)
    # One choice, and no call: a price states no delta.
    price = replace(price_of(rho, NO_DELTA, policy.currency), calls=0)
    now = datetime.datetime.now(datetime.UTC)
    lower, upper = _chosen(request, policy, resolution, int(now.timestamp()))
    fields = {
        "table": request.table,
        "column": request.column,
        "data_version": request.data_version,
        "q": request.q,
        "lower": lower,
        "upper": upper,
        "rho": rho,
        "delta": NO_DELTA,
        "published_at": now.isoformat(timespec="seconds"),
        "nonce": secrets.token_hex(NONCE_BYTES),
    }
    try:
        bound = BoundFile.of(fields)
    except PublishedFileError as error:
        raise InputError(f"the file could not be read: {error}") from None
    content = written(bound)
    write_paid(content, request.out, lambda: record(request.payer, price))
    return Made(bound, price, content)


def _question(request: Request, policy: Policy) -> Resolution:
    """Return the question that is released once, checked by the policy."""
    try:
        column = policy.table(request.table).quantile(request.column)
        asked = AskedQuantile(RankFunction.QUANTILE, request.column, request.q)
        query = HistogramQuery(request.table, (), Measure.DISTINCT_MEMBERS, quantiles=(asked,))
        resolution = resolve(query, policy, now=int(datetime.datetime.now(datetime.UTC).timestamp()))
    except RefusedByPolicyError as error:
        raise InputError(str(error), "table", "column") from None
    except QuestionError as error:
        raise InputError(str(error), "quantile") from None
    if (column.member_value, column.spec.scale) != (MemberValue.TOTAL, GridScale.GEOMETRIC):
        raise InputError(
            f"expected {request.column} with member_value: total and a geometric grid in the policy's quantiles: a sum "
            "is bounded by members' totals",
            "column",
        )
    return resolution


def _chosen(request: Request, policy: Policy, resolution: Resolution, now: int) -> tuple[Fraction, Fraction]:
    """Return the ends of the cell that was chosen, with noise of its own."""
    (value,) = quantiles_read(resolution.query)
    query = EngineQuery(
        request.table,
        render(resolution, DIALECT),
        columns=(CellColumn(CELL_COLUMN, ColumnType.INT64),),
        row_limit=resolution.row_limit,
        reads=tuple(reads_of(policy.table(request.table))),
        quantiles=ReadValue(value.name, ValueType(value.type.value), value.null_value),
    )
    try:
        engine = DuckDBEngine({request.table: request.data})
        try:
            version = engine.data_version(request.table)
            answer = engine.run(query, version)
            engine.confirm(query, answer)
        finally:
            engine.close()
    except GrisError as error:
        raise InputError(str(error), "data") from None
    key = NoiseKey(secrets.token_bytes(SEED_BYTES))
    plan = plan_for(resolution, version, key, IssueContext(now, secrets.token_bytes(FRESH_BYTES)))
    histogram = checked_histogram(
        (CELL_TYPE,), answer.elements, answer.counts, row_limit=resolution.row_limit
    )
    (shown,) = release(plan, histogram, key, confidence=0.95).shown.quantiles
    return shown.lower[0], shown.upper[0]

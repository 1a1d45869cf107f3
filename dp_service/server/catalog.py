"""The catalogue: what the policy says about the tables and columns that questions can use, page by page.

It leaves out columns that questions can neither group by nor filter on, and the data version that a policy declares:
that may be a plain hash of the data, with which anyone could verify a guess of them.

The catalogue is one sequence of entries: each table, each of its columns, and after a column the values of its domain.
A page is a part of that sequence, and its token holds the position where it ended.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries.asked_numbers import DistinctValues
from dp_service.queries.blocks import Blocks
from dp_service.queries.columns import Column, Operator
from dp_service.queries.contributions import most_names
from dp_service.queries.elements import elements_of_domain
from dp_service.queries.filters import Value, type_of
from dp_service.queries.functions.parts import Extracted
from dp_service.queries.policy import Policy
from dp_service.queries.resolution import mechanism_for
from dp_service.queries.table_contributions import Contributions, promised
from dp_service.queries.tables import OfferedMeasure, Table, TauIs
from dp_service.queries.times import Refresh, TimeColumn
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.releases.kinds.grids import column_said
from dp_service.server.errors import CatalogChangedError, RequestError
from dp_service.server.messages import (
    BOUNDED_BY,
    COLUMN_TYPES,
    CONSISTENCIES,
    COUNT_NOISES,
    MEASURES,
    MECHANISMS,
    TIME_UNITS,
    element_columns,
    filled,
    value_message,
)
from dp_service.server.offered_functions import offered_functions
from dp_service.server.served_policy import PolicyContent

# Even with the longest texts, a page stays below gRPC's default limit of 4 MiB.
MAX_PAGE_SIZE = 500
_TOKEN = re.compile(r"(?P<policy>[0-9a-f]{16}):(?P<position>[0-9]{1,12}):(?P<table>[A-Za-z0-9_]*)")

_REFRESHES = {
    Refresh.DAY: dp_pb2.REFRESH_PERIOD_DAY,
    Refresh.WEEK: dp_pb2.REFRESH_PERIOD_WEEK,
    Refresh.MONTH: dp_pb2.REFRESH_PERIOD_MONTH,
}
_OPERATORS = {
    Operator.IN: dp_pb2.FILTER_OPERATOR_IN,
    Operator.NOT_IN: dp_pb2.FILTER_OPERATOR_NOT_IN,
    Operator.RANGE: dp_pb2.FILTER_OPERATOR_RANGE,
}


def catalog_page(
    request: dp_pb2.GetCatalogRequest, content: PolicyContent, *, now: int
) -> dp_pb2.GetCatalogResponse:
    """Return one page of the catalogue.

    Args:
        request: Which page, of which table.
        content: The policy that is served.
        now: Seconds since 1970 (UTC); decides which periods are closed.

    Raises:
        RequestError: The page size or the page token is not valid; `field` says which.
        RefusedByPolicyError: The policy does not list the table.
        CatalogChangedError: The policy was replaced since the first page.
    """
    policy = content.policy
    tables = [policy.table(request.table)] if request.table else list(policy.tables)
    start = _position(request, content.policy_id)
    if request.page_size < 0:
        raise RequestError("page_size", "expected 0 or more")
    end = start + min(request.page_size or MAX_PAGE_SIZE, MAX_PAGE_SIZE)
    total = sum(entries.size for table in tables for entries in _entries(table))
    if start > total:
        raise RequestError("page_token", "expected the next_page_token of the page before")
    page = _header(policy, content.policy_id)
    page.audience = request.audience.name
    if start == 0 and policy.currency.blocks is not None:
        offered = _blocks(policy.currency.blocks, policy)
        if offered.name:
            page.blocks.CopyFrom(offered)
    page.tables.extend(_tables(tables, start, end, now=now))
    year = datetime.datetime.fromtimestamp(now, datetime.UTC).year
    for table in page.tables:
        table.functions.extend(offered_functions(content, table.name, year))
    if end < total:
        page.next_page_token = _token(content.policy_id, end, request.table)
    return page


def _token(policy_id: str, position: int, table: str) -> str:
    return base64.urlsafe_b64encode(f"{policy_id}:{position}:{table}".encode()).decode()


def _position(request: dp_pb2.GetCatalogRequest, policy_id: str) -> int:
    """Return how many entries come before the page."""
    if not request.page_token:
        return 0
    try:
        token = _TOKEN.fullmatch(base64.urlsafe_b64decode(request.page_token).decode())
    except ValueError:
        token = None
    if token is None or token["table"] != request.table:
        raise RequestError(
            "page_token", "expected the next_page_token of the page before, for the same table"
        )
    if token["policy"] != policy_id:
        raise CatalogChangedError
    return int(token["position"])


@dataclass(frozen=True)
class _Entries:
    """A table by itself (`column` None), or a column with its domain: one entry, and one for each value."""

    column: Column | None

    @property
    def domain(self) -> tuple[Value, ...]:
        return () if self.column is None else self.column.domain or ()

    @property
    def size(self) -> int:
        return 1 + len(self.domain)


def _entries(table: Table) -> list[_Entries]:
    return [_Entries(None), *(_Entries(column) for column in table.usable_columns)]


def _tables(tables: list[Table], start: int, end: int, *, now: int) -> Iterator[dp_pb2.CatalogTable]:
    """Yield the entries between two positions, table by table."""
    before = 0
    for table in tables:
        columns, is_shown = [], False
        for entries in _entries(table):
            first, last = max(start - before, 0), min(end - before, entries.size)
            before += entries.size
            if first < last:
                is_shown = True
            if first < last and entries.column is not None:
                # The first entry is the column itself.
                columns.append(
                    _column(entries.column, table, entries.domain[max(first - 1, 0) : max(last - 1, 0)])
                )
        if is_shown:
            yield _table(table, columns, now=now)


def _header(policy: Policy, policy_id: str) -> dp_pb2.GetCatalogResponse:
    return dp_pb2.GetCatalogResponse(
        epsilon_per=str(policy.currency.epsilon_per),
        delta=str(policy.currency.delta),
        unit_id=policy.currency.unit_id,
        count_noise=COUNT_NOISES[policy.count_noise],
        policy_id=policy_id,
    )


def _blocks(blocks: Blocks, policy: Policy) -> dp_pb2.Blocks:
    """Return the blocks without those that an audience is in no table offered rows of; empty: it is offered none."""
    divided = [table for table in policy.tables if table.block is not None]
    every = {*blocks.ids.values(), blocks.rest}
    of_tables = [every if policy.whole is None else _offered(blocks, table) or every for table in divided]
    seen = every if policy.whole is None else {id_ for of in of_tables for id_ in of}
    if not seen:
        return dp_pb2.Blocks()
    shown = [each for each in blocks.values if blocks.ids[each] in seen]
    (values,) = element_columns([(blocks.name, type_of(blocks.values[0]))], [(each,) for each in shown])
    return dp_pb2.Blocks(
        name=blocks.name,
        values=values,
        ids=[blocks.ids[each] for each in shown],
        rest=blocks.rest if blocks.rest in seen else "",
        moves=blocks.moves,
        # A question is of one table.
        all_may_pay=len(divided) < len(policy.tables) or not all(map(blocks.can_pay, of_tables)),
    )


def _offered(blocks: Blocks, table: Table) -> set[str]:
    """Return the blocks of which an audience is offered rows of a divided table; empty: it is offered all rows."""
    forced = [each.values for each in table.forced if each.column == table.block]
    return {id_ for each in forced for id_ in blocks.of_values(each)}


def _table(table: Table, columns: list[dp_pb2.CatalogColumn], *, now: int) -> dp_pb2.CatalogTable:
    return dp_pb2.CatalogTable(
        name=table.name,
        member=table.member,
        block_column=table.block or "",
        measures=[_measure(offered) for offered in table.measures.offered],
        time=None if table.time is None else _time(table.time, table, now=now),
        consistency=CONSISTENCIES[table.consistency],
        columns=columns,
        contributions=None if table.contributions is None else _contributions(table.contributions),
        values=map(_value_column, table.values),
        quantiles=map(_quantile_column, table.quantiles),
    )


def _quantile_column(column: QuantileColumn) -> dp_pb2.QuantileColumn:
    fields = column_said(column.name, column.bounds.quantum.size, column.spec)
    return filled(dp_pb2.QuantileColumn(), fields)


def _value_column(column: ValueColumn) -> dp_pb2.CatalogValue:
    quantum, totals, rows = column.bounds.quantum.size, column.bounds.totals, column.bounds.rows
    return dp_pb2.CatalogValue(
        name=column.name,
        quantum=str(quantum),
        lower=str(totals.low * quantum),
        upper=str(totals.high * quantum),
        row_lower=str(rows.low * quantum),
        row_upper=str(rows.high * quantum),
    )


def _contributions(stated: Contributions) -> dp_pb2.CatalogContributions:
    return dp_pb2.CatalogContributions(
        bounded_by=BOUNDED_BY[stated.bounded_by],
        delta=promised(stated) or 0,
        periods=stated.periods if isinstance(stated.periods, int) else 0,
        units=stated.units,
        min_count=stated.min_count,
        longest_list=0 if stated.longest_list is None else most_names(stated.longest_list, texts=1),
        least_units=stated.allowed_units[0],
        most_units=stated.allowed_units[-1],
        largest_cut="" if stated.largest_cut is None else str(stated.largest_cut),
    )


def _measure(offered: OfferedMeasure) -> dp_pb2.CatalogMeasure:
    counted, is_clipped = offered.measure, offered.tau_is is TauIs.CLIPPED
    if isinstance(counted, DistinctValues):
        return dp_pb2.CatalogMeasure(
            measure=question_pb2.MEASURE_DISTINCT_VALUES,
            tau=offered.tau,
            clipped=is_clipped,
            distinct_of=counted.column,
        )
    return dp_pb2.CatalogMeasure(measure=MEASURES[counted], tau=offered.tau, clipped=is_clipped)


def _time(time: TimeColumn, table: Table, *, now: int) -> dp_pb2.CatalogTime:
    return dp_pb2.CatalogTime(
        column=time.name,
        unit=TIME_UNITS[time.unit],
        zone=time.zone,
        refresh=None if time.refresh is None else _REFRESHES[time.refresh],
        closed_before=time.closed_before(now),
        buckets=list(table.buckets),
        parts=[str(Extracted(time.name, part)) for part in table.parts],
    )


def _column(column: Column, table: Table, values: tuple[Value, ...]) -> dp_pb2.CatalogColumn:
    return dp_pb2.CatalogColumn(
        name=column.name,
        type=COLUMN_TYPES[column.type],
        mechanism=MECHANISMS[mechanism_for(table, [column])] if column.group_by else None,
        filters=sorted(_OPERATORS[each] for each in table.operators(column)),
        domain_size=len(column.domain or ()),
        domain=_domain(column, values) if values else None,
        delta=0 if column.typical else column.of_member_within or 0,
        typical=column.typical or 0,
        null_value=_null_value(column),
        published=_published(column),
        looked_up_by="" if column.lookup is None else column.lookup.key.name,
    )


def _domain(column: Column, values: tuple[Value, ...]) -> histogram_pb2.ElementColumn:
    elements = elements_of_domain([(value,) for value in values])
    return element_columns([(column.name, column.type)], elements)[0]


def _published(column: Column) -> dp_pb2.PublishedDomain | None:
    # The id is left out: it is a hash of the whole file, which holds more than the catalogue shows.
    price = column.publication
    return None if price is None else dp_pb2.PublishedDomain(rho=str(price.rho), delta=str(price.delta))


def _null_value(column: Column) -> question_pb2.Value | None:
    value = column.value_for_null
    return None if value is None else value_message(value)

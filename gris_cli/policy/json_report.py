"""What `gris check --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dp_service.queries.columns import Column
from dp_service.queries.elements import date_of
from dp_service.queries.errors import Problem
from dp_service.queries.policy import Policy, PolicyFile
from dp_service.queries.policy_review import Review
from dp_service.queries.resolution import mechanism_for
from dp_service.queries.tables import Table
from dp_service.queries.times import TimeColumn
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.terms import ValueType
from dp_service.values.cells import Grid as PublicGrid
from gris_cli.policy.worst_case import worst_cases

if TYPE_CHECKING:
    from gris_cli.data.policy.data import DataReport
    from gris_cli.data.policy.promises import PromiseReport


def policy_json(file: PolicyFile, found: Review) -> dict[str, Any]:
    """Return a valid policy, its defaults and its warnings, as JSON has them."""
    policy = file.policy
    return {
        "policy": file.document.source,
        "currency": {
            "epsilon_per": str(policy.currency.epsilon_per),
            "delta": str(policy.currency.delta),
            "unit_id": policy.currency.unit_id,
        },
        "count_noise": policy.count_noise,
        "tables": [_table_json(table, policy) for table in policy.tables],
        **_stated(
            audiences={
                name: each.model_dump(mode="json", exclude_unset=True)
                for name, each in file.schema.audiences.items()
            }
        ),
        "defaults": [{"key": default.key, "value": default.value} for default in found.defaults],
        "warnings": [problem_json(warning) for warning in found.warnings],
    }


def _table_json(table: Table, policy: Policy) -> dict[str, Any]:
    return {
        "name": table.name,
        "member": table.member,
        "measures": [
            {"measure": each.measure.value, "tau": each.tau, "tau_is": each.tau_is}
            for each in table.measures.offered
        ],
        "time": table.time
        and _time_json(table.time) | _stated(buckets=list(table.buckets), parts=list(table.parts)),
        "consistency": table.consistency,
        "worst_cases": [asdict(each) for each in worst_cases(table, policy)],
        **_stated(
            contributions=table.contributions
            and table.contributions.model_dump(mode="json", by_alias=True, exclude_none=True),
        ),
        "columns": [_column_json(column, table) for column in table.usable_columns],
        **_stated(
            values=list(map(_value_json, table.values)), quantiles=list(map(_quantiles_json, table.quantiles))
        ),
    }


def _stated(**values: Any) -> dict[str, Any]:
    """Return what a policy states; what it does not is no part of the JSON."""
    return {name: value for name, value in values.items() if value}


def _quantiles_json(column: QuantileColumn) -> dict[str, Any]:
    quantum, rows, grid = column.bounds.quantum.size, column.bounds.rows, column.spec

    def written(steps: int) -> str:
        return date_of(steps).isoformat() if column.type is ValueType.DATE else str(steps * quantum)

    return {
        "name": column.name,
        "type": column.type,
        "quantum": str(quantum),
        "grid": {
            "scale": grid.scale,
            "from": written(grid.low),
            "to": written(grid.high),
            "cells": len(PublicGrid.of(grid)),
        },
        "row_lower": written(rows.low),
        "row_upper": written(rows.high),
        "nulls": column.nulls,
        "null_value": None if column.null_value is None else str(column.null_value),
    }


def _value_json(value: ValueColumn) -> dict[str, Any]:
    quantum, rows, totals = value.bounds.quantum.size, value.bounds.rows, value.bounds.totals
    return {
        "name": value.name,
        "type": value.type,
        "quantum": str(quantum),
        "row_lower": str(rows.low * quantum),
        "row_upper": str(rows.high * quantum),
        "lower": str(totals.low * quantum),
        "upper": str(totals.high * quantum),
        **(
            {}
            if value.months is None
            else {"months": {"lower": str(value.months.lower), "upper": str(value.months.upper)}}
        ),
        "weight": value.weight,
        "nulls": value.nulls,
        "null_value": None if value.null_value is None else str(value.null_value),
    }


def _time_json(time: TimeColumn) -> dict[str, Any]:
    of_stream = {"complete_by", "replaced_rows", "replaced_by", "offline_part"}
    return {
        "column": time.name,
        "zone": time.zone,
        "refresh": time.refresh,
        "delay_minutes": None if time.refresh is None else time.delay_minutes,
        **({} if time.complete_by is None else time.model_dump(include=of_stream)),
    }


def _column_json(column: Column, table: Table) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "mechanism": mechanism_for(table, [column]) if column.group_by else None,
        "domain_size": None if column.domain is None else len(column.domain),
        "delta": None if column.typical else column.of_member_within,
        **_stated(typical=column.typical),
        "published": _publication_json(column),
        "filter": sorted(table.operators(column)),
        **_stated(looked_up_by=column.lookup and column.lookup.key.name),
    }


def _publication_json(column: Column) -> dict[str, str] | None:
    price = column.publication
    return None if price is None else {"rho": str(price.rho), "delta": str(price.delta)}


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a fault or a warning with its line."""
    return {"line": problem.line, "key": problem.key, "message": problem.message}


def data_json(report: DataReport | PromiseReport) -> dict[str, Any]:
    """Return what was counted in a table; true counts, for the owner alone."""
    kept = [{**asdict(each), "is_kept": each.is_kept} for each in report.promises]
    return {**asdict(report), "promises": kept}

"""What `gris check --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dp_service.queries.errors import Problem
from dp_service.queries.policy import PolicyFile
from dp_service.queries.policy_review import Review
from gris_cli.policy.offered import offered_by
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
        "tables": [
            {**offered, "worst_cases": [asdict(each) for each in worst_cases(table, policy)]}
            for table, offered in zip(policy.tables, offered_by(policy).to_dict()["tables"], strict=True)
        ],
        **_stated(
            audiences={
                name: each.model_dump(mode="json", exclude_unset=True)
                for name, each in file.schema.audiences.items()
            }
        ),
        "defaults": [{"key": default.key, "value": default.value} for default in found.defaults],
        "warnings": [problem_json(warning) for warning in found.warnings],
    }


def _stated(**values: Any) -> dict[str, Any]:
    """Return what a policy states; what it does not is no part of the JSON."""
    return {name: value for name, value in values.items() if value}


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return a fault or a warning with its line."""
    return {"line": problem.line, "key": problem.key, "message": problem.message}


def data_json(report: DataReport | PromiseReport) -> dict[str, Any]:
    """Return what was counted in a table; true counts, for the owner alone."""
    kept = [{**asdict(each), "is_kept": each.is_kept} for each in report.promises]
    return {**asdict(report), "promises": kept}

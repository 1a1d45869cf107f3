"""The plan: everything that was resolved for a question, sealed so that AddNoise can trust it later.

A plan is `version (1 byte) | key id (8) | HMAC-SHA256 (32) | zlib of JSON`; the HMAC covers all that is beside it.
It is complete: AddNoise needs no policy, so a policy that is reloaded between two replicas at different moments
cannot change what a plan means. It is opaque to clients.
"""

from __future__ import annotations

import hmac
import json
import zlib
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from dp_service.queries.policy import Consistency
from dp_service.queries.resolution import MechanismKind
from dp_service.queries.structured import ColumnType
from dp_service.releases.histogram import Element
from dp_service.releases.keys import KeyUse, NoiseKey
from dp_service.releases.parameters import ReleaseParameters

PLAN_VERSION = b"\x01"
PLAN_TTL_SECONDS = 600
_KEY_ID_BYTES = 8
_MAC_BYTES = 32
_PAYLOAD_OFFSET = 1 + _KEY_ID_BYTES + _MAC_BYTES


class PlanFault(Enum):
    """Why a plan is refused; the value is the reason that clients see."""

    NOT_AUTHENTIC = "PLAN_NOT_AUTHENTIC"
    EXPIRED = "PLAN_EXPIRED"


class PlanError(Exception):
    """A plan that AddNoise does not honour; a new translation is needed."""

    def __init__(self, fault: PlanFault) -> None:
        super().__init__(f"the plan is refused ({fault.value}): translate the question again")
        self.fault = fault


@dataclass(frozen=True)
class Plan:
    """A translated question.

    `specification` is the release specification's bytes, `data_version` what the seed takes, `engine_data_version`
    what the engine must still say after the query, `issued_at` seconds since 1970 (UTC).
    """

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    parameters: ReleaseParameters
    row_limit: int
    unit_id: str
    specification: bytes
    data_version: str
    engine_data_version: str
    query_id: str
    issued_at: int


def seal(plan: Plan, key: NoiseKey) -> bytes:
    """Return the plan as bytes that only a holder of the key can make."""
    payload = zlib.compress(json.dumps(_to_json(plan), separators=(",", ":")).encode(), level=1)
    head = PLAN_VERSION + bytes.fromhex(key.key_id)
    return head + key.authenticate(KeyUse.PLAN, head, payload) + payload


def unseal(sealed: bytes, key: NoiseKey, *, now: int) -> Plan:
    """Return the plan, or raise PlanError if it was not sealed with this key or is older than ten minutes."""
    head, mac = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES : _PAYLOAD_OFFSET]
    payload = sealed[_PAYLOAD_OFFSET:]
    if not hmac.compare_digest(mac, key.authenticate(KeyUse.PLAN, head, payload)):
        raise PlanError(PlanFault.NOT_AUTHENTIC)
    plan = _from_json(json.loads(zlib.decompress(payload)))
    if not plan.issued_at <= now < plan.issued_at + PLAN_TTL_SECONDS:
        raise PlanError(PlanFault.EXPIRED)
    return plan


def _to_json(plan: Plan) -> dict[str, Any]:
    parameters = plan.parameters
    return {
        "table": plan.table,
        "columns": [[name, kind.name] for name, kind in plan.columns],
        "mechanism": parameters.mechanism.name,
        "epsilon_per": str(parameters.epsilon_per),
        "delta": str(parameters.delta),
        "tau": parameters.tau,
        "delta_l0": parameters.delta_l0,
        "d_bar": parameters.d_bar,
        "k": parameters.k,
        "with_counts": parameters.with_counts,
        "consistency": parameters.consistency.name,
        "domain": parameters.domain,
        "row_limit": plan.row_limit,
        "unit_id": plan.unit_id,
        "specification": plan.specification.hex(),
        "data_version": plan.data_version,
        "engine_data_version": plan.engine_data_version,
        "query_id": plan.query_id,
        "issued_at": plan.issued_at,
    }


def _from_json(body: dict[str, Any]) -> Plan:
    return Plan(
        table=body["table"],
        columns=tuple((name, ColumnType[kind]) for name, kind in body["columns"]),
        parameters=_parameters_from_json(body),
        row_limit=body["row_limit"],
        unit_id=body["unit_id"],
        specification=bytes.fromhex(body["specification"]),
        data_version=body["data_version"],
        engine_data_version=body["engine_data_version"],
        query_id=body["query_id"],
        issued_at=body["issued_at"],
    )


def _parameters_from_json(body: dict[str, Any]) -> ReleaseParameters:
    domain: list[list[Any]] | None = body["domain"]
    return ReleaseParameters(
        mechanism=MechanismKind[body["mechanism"]],
        epsilon_per=Fraction(body["epsilon_per"]),
        delta=Fraction(body["delta"]),
        tau=body["tau"],
        delta_l0=body["delta_l0"],
        d_bar=body["d_bar"],
        k=body["k"],
        with_counts=body["with_counts"],
        consistency=Consistency[body["consistency"]],
        domain=None if domain is None else tuple(_element(row) for row in domain),
    )


def _element(row: list[Any]) -> Element:
    return tuple(row)

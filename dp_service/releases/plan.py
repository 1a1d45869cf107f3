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
from typing import Any

from dp_service.release_parameters import ReleaseParameters
from dp_service.releases.keys import KeySet, KeyUse, NoiseKey
from dp_service.releases.mechanism import versions
from dp_service.terms import ColumnType

PLAN_VERSION = b"\x02"
PLAN_TTL_SECONDS = 600
# The replica that made a plan may have a clock that is a little ahead of ours.
CLOCK_SKEW_SECONDS = 30
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
    what the engine must still say after the query, `issued_at` seconds since 1970 (UTC). `drawn_by` is the version of
    mechanism and sampler that the specification speaks of; `fresh` is empty, or 32 bytes that make this question's
    noise its own. The seed stays secret although the plan can be read: it is keyed. `policy_statement` says what the
    policy of the question had published; it changes neither noise nor ids.
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
    drawn_by: tuple[int, int]
    fresh: bytes
    policy_statement: str = ""


def sign_plan(plan: Plan, key: NoiseKey) -> bytes:
    """Return the plan as bytes that only a holder of the key can make."""
    payload = zlib.compress(json.dumps(_to_json(plan), separators=(",", ":")).encode(), level=1)
    head = PLAN_VERSION + bytes.fromhex(key.key_id)
    return head + key.authenticate(KeyUse.PLAN, head, payload) + payload


def signing_key(sealed: bytes, keys: KeySet) -> NoiseKey:
    """Return the live key that a plan says it was sealed with, or raise PlanError; `verify_plan` tells whether it was.

    The plan has to be released under this key: its query_id was made with it.
    """
    key = keys.with_id(sealed[1 : 1 + _KEY_ID_BYTES].hex())
    if key is None:
        raise PlanError(PlanFault.NOT_AUTHENTIC)
    return key


def verify_plan(sealed: bytes, key: NoiseKey, *, now: int) -> Plan:
    """Return the plan, or raise PlanError if it was not sealed with this key and in this form, or is too old.

    A plan is also too old if this program draws noise in another way than the one that made it: two ways of drawing
    must never meet under one specification, whose seed and release id they would share.
    """
    head, mac = sealed[: 1 + _KEY_ID_BYTES], sealed[1 + _KEY_ID_BYTES : _PAYLOAD_OFFSET]
    payload = sealed[_PAYLOAD_OFFSET:]
    if not hmac.compare_digest(mac, key.authenticate(KeyUse.PLAN, head, payload)):
        raise PlanError(PlanFault.NOT_AUTHENTIC)
    if head[:1] != PLAN_VERSION:
        raise PlanError(PlanFault.EXPIRED)
    plan = _from_json(json.loads(zlib.decompress(payload)))
    is_in_time = plan.issued_at - CLOCK_SKEW_SECONDS <= now < plan.issued_at + PLAN_TTL_SECONDS
    if not is_in_time or plan.drawn_by != versions(plan.parameters):
        raise PlanError(PlanFault.EXPIRED)
    return plan


def _to_json(plan: Plan) -> dict[str, Any]:
    return {
        "table": plan.table,
        "columns": [[name, kind.name] for name, kind in plan.columns],
        **plan.parameters.to_json(),
        "row_limit": plan.row_limit,
        "unit_id": plan.unit_id,
        "specification": plan.specification.hex(),
        "data_version": plan.data_version,
        "engine_data_version": plan.engine_data_version,
        "query_id": plan.query_id,
        "issued_at": plan.issued_at,
        "drawn_by": plan.drawn_by,
        "fresh": plan.fresh.hex(),
        **({"policy_statement": plan.policy_statement} if plan.policy_statement else {}),
    }


def _from_json(body: dict[str, Any]) -> Plan:
    return Plan(
        table=body["table"],
        columns=tuple((name, ColumnType[kind]) for name, kind in body["columns"]),
        parameters=ReleaseParameters.from_json(body),
        row_limit=body["row_limit"],
        unit_id=body["unit_id"],
        specification=bytes.fromhex(body["specification"]),
        data_version=body["data_version"],
        engine_data_version=body["engine_data_version"],
        query_id=body["query_id"],
        issued_at=body["issued_at"],
        drawn_by=(body["drawn_by"][0], body["drawn_by"][1]),
        fresh=bytes.fromhex(body["fresh"]),
        # A replica of the version before made plans without it.
        policy_statement=body.get("policy_statement", ""),
    )

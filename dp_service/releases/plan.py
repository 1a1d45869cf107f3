"""The plan: everything that was resolved for a question, signed so that AddNoise can trust it later.

A plan is `version (1 byte) | key id (8) | HMAC-SHA256 (32) | zlib of JSON`; the HMAC covers everything else.
It is complete: AddNoise needs no policy, so replicas that reload a policy at different times agree on what a plan
means. Clients treat it as opaque bytes.
"""

from __future__ import annotations

import hmac
import zlib
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.audience_terms import ALL_ROWS, ForcedRows
from dp_service.queries.blocks import PaidBy
from dp_service.queries.canonical_query import CanonicalQuery
from dp_service.queries.contributions import PreparedCopy
from dp_service.releases.keys import KeySet, KeyUse, NoiseKey
from dp_service.releases.kinds import versions
from dp_service.terms import ColumnType, Element

PLAN_VERSION = b"\x03"
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
    """A plan that AddNoise does not accept; the question has to be translated again."""

    def __init__(self, fault: PlanFault) -> None:
        super().__init__(f"the plan is refused ({fault.value}): translate the question again")
        self.fault = fault


@dataclass(frozen=True)
class LooksPlan:
    """What a plan holds where a release takes two looks.

    Attributes:
        query: What is asked; the second look asks it again.
        member_type: The type of the member column, None if the policy does not list it.
        dialects: The engines that the second query is written for.
        names: What the first look named, in ascending order. None: the plan is that of the first look.
        before: The release id of the first look; empty in its own plan.
        copy: Which prepared copy is asked, so that the second look counts its weights too; None: none.
    """

    query: CanonicalQuery
    member_type: ColumnType | None
    dialects: tuple[str, ...]
    names: tuple[Element, ...] | None = None
    before: str = ""
    copy: PreparedCopy | None = None


@dataclass(frozen=True)
class Plan:
    """A translated question. It can be read by clients; the seed stays secret because it is keyed.

    Attributes:
        table: The table that is asked about.
        columns: Name and type of each column of the elements.
        parameters: The parameters of the release.
        row_limit: The most rows that a whole answer has.
        paid_by: The currency that the release is paid in, and the blocks of members that pay.
        specification: The bytes of the release specification.
        data_version: The data version that enters the seed.
        engine_data_version: The data version that the engine must still report after the query.
        query_id: The public name of the question on this version of the data.
        issued_at: Seconds since 1970 (UTC).
        drawn_by: The versions of mechanism and sampler in the specification.
        fresh: Empty, or 32 random bytes that make this question's noise its own.
        policy_statement: What the policy of the question had published; it changes neither noise nor ids.
        looks: What is needed besides for two looks; None: there is one look.
        requested_k: How many elements the question asks for, where fewer are shown; None: as many are.
        forced: To which rows the audience that asks is restricted.
        without_far_times: As `CanonicalQuery.without_far_times`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        ser_json_bytes="hex", val_json_bytes="hex", extra="forbid"
    )

    table: str
    columns: tuple[tuple[str, ColumnType], ...]
    parameters: ReleaseParameters
    row_limit: int
    paid_by: PaidBy
    specification: bytes
    data_version: str
    engine_data_version: str
    query_id: str
    issued_at: int
    drawn_by: tuple[int, int]
    fresh: bytes
    policy_statement: str = ""
    looks: LooksPlan | None = None
    requested_k: int | None = None
    forced: ForcedRows = ALL_ROWS
    without_far_times: tuple[str, ...] = ()

    @property
    def known_elements(self) -> tuple[Element, ...] | None:
        """The elements that its query is about: the domain, or what a first look named; None: unknown ones."""
        return self.parameters.domain if self.looks is None else self.looks.names


# What a plan says is stated once, by the fields of its classes; what has its default is left out.
_PAYLOAD = TypeAdapter(Plan)


def sign_plan(plan: Plan, key: NoiseKey) -> bytes:
    """Return the plan with a signature that only a holder of the key can make."""
    payload = zlib.compress(_PAYLOAD.dump_json(plan, exclude_defaults=True), level=1)
    head = PLAN_VERSION + bytes.fromhex(key.key_id)
    return head + key.authenticate(KeyUse.PLAN, head, payload) + payload


def signing_key(signed: bytes, keys: KeySet) -> NoiseKey:
    """Return the live key that a plan names; whether it was signed with that key, `verify_plan` checks.

    The plan has to be released under this key: its query_id was made with it.

    Raises:
        PlanError: No live key has that name.
    """
    key = keys.with_id(signed[1 : 1 + _KEY_ID_BYTES].hex())
    if key is None:
        raise PlanError(PlanFault.NOT_AUTHENTIC)
    return key


def verify_plan(signed: bytes, key: NoiseKey, *, now: int) -> Plan:
    """Return the plan if its signature is valid and it is not too old.

    A plan is also too old if this program draws noise in another way than the one that made it: two ways of drawing
    must never meet under one specification, whose seed and release id they would share.

    Args:
        signed: The bytes that `sign_plan` returned.
        key: The key that the plan names.
        now: Seconds since 1970 (UTC).

    Raises:
        PlanError: The signature is wrong, or the plan is too old or of another version.
    """
    head, mac = signed[: 1 + _KEY_ID_BYTES], signed[1 + _KEY_ID_BYTES : _PAYLOAD_OFFSET]
    payload = signed[_PAYLOAD_OFFSET:]
    if not hmac.compare_digest(mac, key.authenticate(KeyUse.PLAN, head, payload)):
        raise PlanError(PlanFault.NOT_AUTHENTIC)
    if head[:1] != PLAN_VERSION:
        raise PlanError(PlanFault.EXPIRED)
    try:
        plan = _PAYLOAD.validate_json(zlib.decompress(payload))
    except ValidationError:
        # A replica of another version says something that this one does not know.
        raise PlanError(PlanFault.EXPIRED) from None
    is_in_time = plan.issued_at - CLOCK_SKEW_SECONDS <= now < plan.issued_at + PLAN_TTL_SECONDS
    if not is_in_time or plan.drawn_by != versions(plan.parameters):
        raise PlanError(PlanFault.EXPIRED)
    return plan

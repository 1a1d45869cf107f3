"""A plan for tests that sign, verify and spoil it."""

from __future__ import annotations

import dataclasses

from dp_service.queries.blocks import PaidBy
from dp_service.releases.kinds import versions
from dp_service.releases.plan import (
    Plan,
)
from dp_service.terms import ColumnType
from tests.unit.dp_service.identities import GUMBEL

PARAMETERS = dataclasses.replace(GUMBEL, tau=3)
PLAN = Plan(
    table="articles",
    columns=(("article", ColumnType.STRING), ("day", ColumnType.DATE)),
    parameters=PARAMETERS,
    row_limit=1001,
    paid_by=PaidBy("0" * 32),
    specification=b"specification",
    data_version="declared",
    engine_data_version="engine",
    query_id="1" * 64,
    issued_at=1000,
    drawn_by=versions(PARAMETERS),
    fresh=b"",
)

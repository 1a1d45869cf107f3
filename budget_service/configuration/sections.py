"""Short sections of `budget.yaml`: charge tickets, leases for regions, and what administrators do."""

from __future__ import annotations

from pydantic import Field, model_validator

from gris_serving.documents import Strict


class ChargeTickets(Strict):
    """Charges must carry dp_service's ticket, made with the key in `key_file` or, during a rotation, another one."""

    key_file: str
    previous_key_files: list[str] = Field(default_factory=list)


class Leases(Strict):
    """What this ledger lends as the home of regions: percent of what a level has not spent, and for how long."""

    share_percent: int = Field(10, ge=1, le=50)
    outstanding_percent: int = Field(50, ge=1, le=90)
    seconds: int = Field(600, ge=30, le=3600)

    @model_validator(mode="after")
    def _a_share_may_be_outstanding(self) -> Leases:
        if self.share_percent > self.outstanding_percent:
            raise ValueError("share_percent must not be more than outstanding_percent")
        return self


class Administration(Strict):
    """What administrators do: say why, if `requires_reason`."""

    requires_reason: bool = False

"""`gris budget set-limit`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from gris_cli.budget.flags import DEFAULT_ADMIN, AccountFlag, AdminFlag, ReasonFlag
from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import require_amount, shown

if TYPE_CHECKING:
    from gris_api.budget.v1 import admin_pb2

_SLIDING = re.compile(r"sliding:([1-9][0-9]{0,3})")


@dataclass(frozen=True)
class LimitFlags:
    """A limit."""

    information: int | None = flag(None, "The most information units.")
    calls: int | None = flag(None, "The most calls.")
    mode: str = flag("enforce", "enforce, or track: record and never refuse.", metavar="MODE")
    window: str = flag("month", "day, week, month, never or sliding:DAYS.", metavar="WINDOW")
    zone: str = flag("UTC", "The time zone whose midnights count, such as Europe/Berlin.", metavar="ZONE")

    def limit(self, information: int, calls: int) -> admin_pb2.Limit:
        """Return the limit of so many units and calls."""
        from gris_api.budget.v1 import admin_pb2

        sliding = _SLIDING.fullmatch(self.window)
        period = "sliding" if sliding else self.window
        if not sliding and period not in ("day", "week", "month", "never"):
            raise typer.BadParameter(
                f"--window expects day, week, month, never or sliding:DAYS, got {shown(self.window)}"
            )
        if self.mode not in ("enforce", "track"):
            raise typer.BadParameter(f"--mode expects enforce or track, got {shown(self.mode)}")
        require_amount("--information", information)
        require_amount("--calls", calls)
        return admin_pb2.Limit(
            information=information,
            calls=calls,
            mode=f"MODE_{self.mode.upper()}",
            period=f"PERIOD_{period.upper()}",
            sliding_days=int(sliding[1]) if sliding else 0,
            zone=self.zone,
        )


@with_flags
def set_limit(
    *,
    account: AccountFlag,
    flags: LimitFlags,
    remove: bool = flag(False, "Remove the limit; the configuration applies again."),
    reason: ReasonFlag = "",
    admin: AdminFlag = DEFAULT_ADMIN,
    as_json: bool,
) -> None:
    """Set the limit of one level in the ledger. It overrides the configuration and holds at once.

    It replaces the whole limit: what you leave out becomes enforce, month and UTC, whatever it was before.
    """
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import administered
    from gris_cli.terminal import print_done

    given = [each for each in (flags.information, flags.calls) if each is not None]
    if len(given) != (0 if remove else 2):
        raise typer.BadParameter("give --information and --calls together, or --remove")
    limit = None if remove else flags.limit(*given)
    change = admin_pb2.LimitChange(path=account.split("/"), limit=limit)
    request = admin_pb2.SetLimitsRequest(changes=[change], reason=reason)
    version = administered(admin, "SetLimits", request).version
    what = "removed" if remove else "set"
    done = f"the limit of {account} is {what} (version {version} of its root's limits)"
    facts = {"account": account, "removed": remove, "version": version}
    print_done(done, facts, as_json=as_json)

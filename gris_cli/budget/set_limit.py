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

_PURPOSE = re.compile(r"([a-z0-9-]{1,64})=([0-9]{1,19})/([0-9]{1,19})")
_SLIDING = re.compile(r"sliding:([1-9][0-9]{0,3})")


@dataclass(frozen=True)
class LimitFlags:
    """A limit."""

    information: int | None = flag(None, "The most information units.")
    calls: int | None = flag(None, "The most calls.")
    mode: str = flag("enforce", "enforce, or track: record and never refuse.", metavar="MODE")
    window: str = flag("month", "day, week, month, never or sliding:DAYS.", metavar="WINDOW")
    zone: str = flag("UTC", "The time zone whose midnights count, such as Europe/Berlin.", metavar="ZONE")
    until: str = flag(
        "",
        "When it ends, and what was before holds again; UTC without an offset. Default: never.",
        metavar="DAY",
    )

    purposes: list[str] = flag(
        [],
        "How much of it charges of one purpose may take at most; may be repeated.",
        "--purpose",
        metavar="NAME=INFORMATION/CALLS",
    )

    def limit(self, information: int, calls: int) -> admin_pb2.Limit:
        """Return the limit of so many units and calls."""
        from gris_api.budget.v1 import admin_pb2

        from gris_cli.budget.ledger import timestamp_of

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
            until=timestamp_of("--until", self.until),
            purposes=map(_purpose, self.purposes),
        )


def _purpose(text: str) -> admin_pb2.PurposeLimit:
    from gris_api.budget.v1 import admin_pb2

    found = _PURPOSE.fullmatch(text)
    if found is None or max(map(int, found.groups()[1:])) >= 2**63:
        raise typer.BadParameter(
            "--purpose expects NAME=INFORMATION/CALLS, each 0 to 2^63 - 1, such as payroll=500/50, got "
            f"{shown(text)}"
        )
    name, information, calls = found.groups()
    return admin_pb2.PurposeLimit(purpose=name, information=int(information), calls=int(calls))


def _without_effect(limit: admin_pb2.Limit) -> list[str]:
    """Return the purposes that may take no less than the limit itself, which is allowed as below any other level."""
    return [
        each.purpose
        for each in limit.purposes
        if each.information >= limit.information and each.calls >= limit.calls
    ]


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

    It replaces the whole limit: what you leave out becomes enforce, month and UTC, and no limit for any purpose,
    whatever it was before.
    """
    from gris_api.budget.v1 import admin_pb2

    from gris_cli.budget.ledger import administered, format_timestamp
    from gris_cli.terminal import print_done

    given = [each for each in (flags.information, flags.calls) if each is not None]
    if len(given) != (0 if remove else 2):
        raise typer.BadParameter("give --information and --calls together, or --remove")
    if remove and (flags.until or flags.purposes):
        raise typer.BadParameter("--until and --purpose say more of a new limit: give them without --remove")
    limit = None if remove else flags.limit(*given)
    change = admin_pb2.LimitChange(path=account.split("/"), limit=limit)
    request = admin_pb2.SetLimitsRequest(changes=[change], reason=reason)
    version = administered(admin, "SetLimits", request).version
    until = format_timestamp(limit.until) if limit is not None and limit.HasField("until") else None
    what = "removed" if remove else f"set until {until} (UTC)" if until else "set"
    done = f"the limit of {account} is {what} (version {version} of its root's limits)"
    if idle := [] if limit is None else _without_effect(limit):
        done += f"; that of {', '.join(idle)} has no effect, for the limit itself is no higher"
    facts = {
        "account": account,
        "removed": remove,
        "until": until,
        "version": version,
        "without_effect": idle,
    }
    print_done(done, facts, as_json=as_json)

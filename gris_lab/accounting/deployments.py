"""Published parameters of other deployments, to compare a budget with.

Source: Rogers et al. 2020, table 2, as it is printed. These are parameters as published up to 2020; they may have
changed since, and systems differ in what else they do (sampling, shuffling, memoization).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Model(StrEnum):
    """Who adds the noise: every member, who trusts nobody (`LOCAL`), or a trusted server (`GLOBAL`)."""

    LOCAL = "local"
    GLOBAL = "global"


@dataclass(frozen=True)
class Loss:
    """(epsilon, delta)."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Deployment:
    """One system: the parameters of one report, of a day and of a month; None where they are not published."""

    name: str
    model: Model
    per_report: tuple[Loss, ...]
    daily: Loss | None
    monthly: Loss | None
    note: str = ""


DEPLOYMENTS = (
    Deployment(
        "Google RAPPOR, Chrome homepages",
        Model.LOCAL,
        (Loss(0.534),),
        Loss(25.63),
        Loss(769),
        "a report every 30 minutes",
    ),
    Deployment("Apple Safari domains", Model.LOCAL, (Loss(4),), Loss(8), Loss(240), "two reports a day"),
    Deployment("Apple emojis", Model.LOCAL, (Loss(4),), Loss(4), Loss(120), "one report a day"),
    Deployment(
        "Microsoft telemetry, per app",
        Model.LOCAL,
        (Loss(0.686),),
        Loss(2.74),
        Loss(82.2),
        "a report every 6 hours; repeated records lose much less",
    ),
    Deployment(
        "Google mobility reports",
        Model.GLOBAL,
        (Loss(0.11), Loss(0.22)),
        Loss(2.64),
        Loss(79.2),
        "all metrics of a day added up",
    ),
    Deployment("Microsoft assistive AI", Model.GLOBAL, (Loss(4, 1e-7),), None, None),
    Deployment(
        "LinkedIn Audience Engagements API",
        Model.GLOBAL,
        (Loss(0.15, 1e-10),),
        None,
        Loss(34.9, 7e-9),
        "one analyst, 3000 information and 30 calls; before general availability",
    ),
)

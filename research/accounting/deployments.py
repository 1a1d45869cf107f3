"""Published parameters of other deployments, to compare a budget with.

Where nothing else is named, the source is Rogers et al. 2020, table 2, as it is printed. Parameters may have changed
since they were published, and systems differ in what else they do (sampling, shuffling, memoization).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dp_service.accounting.composition import Guarantee
from gris_cli.data.sheets import Column, Sheet, plainly, upwards


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
    """One system: the parameters of one report, of a day and of a month; None where they are not published.

    `source` is who published them; empty: Rogers et al. 2020.
    """

    name: str
    model: Model
    per_report: tuple[Loss, ...]
    daily: Loss | None
    monthly: Loss | None
    note: str = ""
    source: str = ""


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
    Deployment(
        "Meta, URLs shared on Facebook",
        Model.GLOBAL,
        (Loss(0.45, 1e-5),),
        None,
        None,
        "data of 31 months, published once: of 99 % of users for each kind of action; for all kinds together "
        "(1.453, 1e-05) of 96.6 %",
        "Messing et al. 2020, doi:10.7910/DVN/TDOAPG",
    ),
    Deployment(
        "U.S. Census 2020, redistricting",
        Model.GLOBAL,
        (Loss(17.14, 1e-10), Loss(2.47, 1e-10)),
        None,
        None,
        "published once: persons, and housing units; 19.61 together",
        "U.S. Census Bureau, press release of 9 June 2021",
    ),
)


def deployments_sheet(own: Guarantee, report: Loss, spent: str) -> Sheet:
    """Return other deployments' parameters, and those of a budget below them.

    Args:
        own: What the budget is worth.
        report: What one of its answers is worth.
        spent: What the budget is, in words.
    """
    rows = [
        (
            each.name,
            each.model.value,
            " or ".join(_format_loss(loss) for loss in each.per_report),
            _format_loss(each.daily),
            _format_loss(each.monthly),
            f"{each.note} ({each.source})" if each.source else each.note,
        )
        for each in DEPLOYMENTS
    ]
    worth = f"({upwards(own.epsilon)}, {plainly(own.delta)})"
    rows.append(("this budget", "global", _format_loss(report), "", worth, spent))
    headings = (
        ("name", "deployment"),
        ("model", "model"),
        ("per_report", "one report"),
        ("daily", "a day"),
        ("monthly", "a month"),
        ("note", "remarks"),
    )
    columns = tuple(Column(key, heading, is_text=True) for key, heading in headings)
    return Sheet(columns, rows, (("source", "table 2 of Rogers et al. 2020, unless a row names its own"),))


def _format_loss(loss: Loss | None) -> str:
    return "" if loss is None else f"({loss.epsilon:g}, {loss.delta:g})"

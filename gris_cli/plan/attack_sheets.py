"""The tables of `gris plan attacks`."""

from __future__ import annotations

from fractions import Fraction

from gris_cli.data.sheets import Column, Sheet, percent
from gris_cli.plan.attack_chances import averaging, differencing, unique_member


def attack_sheets(
    epsilon_per: Fraction, delta: Fraction, *, calls: int, answers: int, d_bar: int
) -> dict[str, Sheet]:
    """Return an attacker's chances by each of the three attacks."""
    return {
        "averaging": _averaging_sheet(epsilon_per, answers),
        "differencing": _differencing_sheet(epsilon_per),
        "unique_member": _unique_member_sheet(epsilon_per, delta, calls=calls, d_bar=d_bar),
    }


def _averaging_sheet(epsilon_per: Fraction, answers: int) -> Sheet:
    found = averaging(epsilon_per, answers)
    question = f"the mean of {answers} fresh answers on unchanged data rounds to the true count"
    return Sheet(
        (Column("noise", question, is_text=True), Column("probability", "chance", percent)),
        [
            ("normal approximation, the paper's", found.normal),
            ("continuous Laplace noise", found.continuous),
            ("the noise that is built, strictly within 1/2", found.discrete),
            ("the noise that is built, with ties at 1/2", found.discrete_with_ties),
        ],
    )


def _differencing_sheet(epsilon_per: Fraction) -> Sheet:
    rows = []
    for name, whole in (("continuous Laplace noise, the paper's", False), ("the noise that is built", True)):
        found = differencing(epsilon_per, whole_noise=whole)
        rows.append((name, found.exact_count, found.elements, found.information))
    return Sheet(
        (
            Column("noise", "two questions that differ in one member", is_text=True),
            Column("exact_count", "a count is exact", percent),
            Column("elements", "k before one is in both"),
            Column("information", "information 4k + 2"),
        ),
        rows,
    )


def _unique_member_sheet(epsilon_per: Fraction, delta: Fraction, *, calls: int, d_bar: int) -> Sheet:
    found = unique_member(epsilon_per, delta, calls=calls, d_bar=d_bar)
    rows = [
        ("the paper's formula, calls delta exp(-epsilon_per)", found.paper),
        ("UnkGumb as it is built, calls delta", found.unk_gumb),
        (f"UnkGumb, fewer than {d_bar + 1} elements", found.unk_gumb_few),
        (f"UnkLap, Delta = 1, any of {d_bar} unique elements", found.unk_lap),
    ]
    return Sheet(
        (
            Column("case", f"an element of a single member is shown in any of {calls} calls", is_text=True),
            Column("probability", "chance at most"),
            Column("one_in", "one in", lambda value: f"{value:,}"),
        ),
        [(name, chance, round(1 / chance) if chance else None) for name, chance in rows],
    )

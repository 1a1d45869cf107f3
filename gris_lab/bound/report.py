"""The trade-off as a table, as JSON and as a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gris_data.sheets import Cell, Column, Sheet, percent
from gris_lab.bound.contributions import BoundedCounts
from gris_lab.bound.looks import BothLooks, OneLook, Question, Worth
from gris_lab.bound.proposal import Proposal, TradeOff, Tried
from gris_lab.bound.search import Look
from gris_lab.plots import drawn, styles

_ONE, _TWO, _GUMBEL = "one look", "two looks", "UnkGumb"


def trade_off_sheet(trade_off: TradeOff, counts: BoundedCounts, question: Question) -> Sheet:
    """Return a row for each setting, by units, and one for UnkGumb."""
    rows = [_row(each, counts) for each in trade_off.tried]
    rows.append((_GUMBEL, None, None, None, None, *_worth_cells(trade_off.unk_gumb)))
    return Sheet(
        (
            Column("mechanism", "", is_text=True),
            Column("bound", "Delta_0, Delta_1"),
            Column("counts_bound", "Delta_2"),
            Column("names_share", "for names", percent),
            Column("kept", "pairs kept", percent),
            Column("units", "units", _tenths),
            Column("shown", "shown", _tenths),
            Column("found", f"of the top {question.k}", _tenths),
            Column("error", "a count is off by", _tenths),
            Column("error_part", "of it", percent),
        ),
        rows,
    )


def _row(tried: Tried, counts: BoundedCounts) -> tuple[Cell, ...]:
    look, worth = tried.look, _worth_cells(tried.worth)
    if isinstance(look, OneLook):
        return _ONE, look.bound, None, None, float(counts.kept[counts.bounds.index(look.bound)]), *worth
    kept = float(counts.kept_within[counts.bounds.index(look.counts_bound)])
    return _TWO, look.names_bound, look.counts_bound, float(look.names_share), kept, *worth


def _worth_cells(worth: Worth) -> tuple[Cell, ...]:
    return (
        worth.units,
        worth.shown,
        worth.found,
        worth.error,
        None if worth.error is None else worth.error_part,
    )


def _tenths(value: Cell) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str("" if value is None else value)


def proposal_json(made: Proposal, notes: Sequence[str], policy: str, question: Question) -> dict[str, Any]:
    """Return the proposal as one JSON object."""
    look = made.proposed.look
    found: dict[str, Any] = {"mechanism": _ONE, "units": look.units, "min_count": question.min_count}
    if isinstance(look, OneLook):
        found |= {"delta_0": look.bound}
    else:
        found |= {"mechanism": _TWO, "delta_1": look.names_bound, "delta_2": look.counts_bound}
        found |= {"names_share": str(look.names_share), "most_names": question.most_names}
    return {**found, "reasons": [*made.reasons, *notes], "policy": policy}


def draw_trade_off(trade_off: TradeOff, question: Question, path: Path, *, title: str) -> None:
    """Draw what is found, and how far counts are off, against units: one look, two looks, and UnkGumb as a point."""
    with drawn(path, width=11.0, height=4.8) as figure:
        figure.suptitle(title)
        found, error = figure.subplots(1, 2)
        _draw_found(found, trade_off)
        _draw_error(error, trade_off)
        found.set(ylabel=f"found of the true top {question.k}", ylim=(0, 1.06 * question.k))
        # Room for the bounds above the highest point.
        error.margins(y=0.1)
        error.set(ylabel="a shown count is off by", ylim=(0, None))
        units = sorted({each.look.units for each in trade_off.tried})
        for axes in (found, error):
            axes.set(xlabel="information units", xscale="log")
            axes.set_xticks(units, [str(each) for each in units])
            axes.minorticks_off()
            axes.grid(visible=True, alpha=0.3)
        found.legend(loc="lower right")


def _draw_found(axes: Any, trade_off: TradeOff) -> None:
    for (name, line), style in zip(_lines(trade_off).items(), styles(), strict=False):
        axes.plot(
            [each.look.units for each in line], [each.worth.found for each in line], label=name, **style
        )
    gumbel = trade_off.unk_gumb
    axes.plot([gumbel.units], [gumbel.found], label=f"{_GUMBEL}, at its mean cost", **_gumbel_style())


def _draw_error(axes: Any, trade_off: TradeOff) -> None:
    for line, style, offset in zip(_lines(trade_off).values(), styles(), (6, -12), strict=False):
        seen = [(each.look, each.worth.error) for each in line if each.worth.error is not None]
        axes.plot([look.units for look, _ in seen], [error for _, error in seen], **style)
        for look, error in seen:
            place = {"textcoords": "offset points", "xytext": (0, offset), "ha": "center"}
            axes.annotate(_bounds(look), (look.units, error), fontsize=8, color=style["color"], **place)
    gumbel = trade_off.unk_gumb
    if gumbel.error is not None:
        axes.plot([gumbel.units], [gumbel.error], **_gumbel_style())


def _bounds(look: Look) -> str:
    return f"{look.bound}" if isinstance(look, OneLook) else f"{look.names_bound}, {look.counts_bound}"


def _gumbel_style() -> dict[str, Any]:
    *_, style = (style for _, style in zip(range(3), styles(), strict=False))
    return style | {"linestyle": "", "markersize": 8}


def _lines(trade_off: TradeOff) -> dict[str, list[Tried]]:
    ones = [each for each in trade_off.tried if isinstance(each.look, OneLook)]
    twos = [each for each in trade_off.tried if isinstance(each.look, BothLooks)]
    return {f"{_ONE}: Delta_0": ones, f"{_TWO}: Delta_1, Delta_2": twos}

"""What `gris check` prints of what was counted in a table's data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gris_cli.data.policy.promises import ASSUMED_BOUND, BLOCK, is_size
from gris_cli.terminal import grid, say, show
from pinot_connector import formats

if TYPE_CHECKING:
    from gris_cli.data.policy.data import Clipped, DataReport, KeptValues
    from gris_cli.data.policy.promises import Promise
    from gris_cli.data.policy.values import Clamped


def print_data(report: DataReport) -> None:
    """Print how many of a table's rows count; true counts, for the owner alone."""
    show()
    say(
        "data",
        f"{report.table}: {formats.counted(report.rows, 'row')}; true counts, for the owner alone",
    )
    say(
        "left out",
        f"{formats.counted(report.rows_in_no_question, 'row')} that cannot be read as text",
    )
    if report.left_out:
        rows = ((each.column, str(each.rows), each.reason, each.of) for each in report.left_out)
        show(grid(("column", "rows", "with", "left out of"), rows))
    for clipped in report.clipped:
        say("clipped", _format_clipped(clipped))
    for kept in report.kept_values:
        say("distinct", _format_kept(kept))
    for clamped in report.clamped:
        say("clamped", _format_clamped(clamped))
    print_promises(report.promises)


def _format_clipped(clipped: Clipped) -> str:
    """Return how many rows clipping leaves out of a question."""
    share = 100 * clipped.cut / clipped.rows if clipped.rows else 0.0
    asked = f"by {clipped.column}" if clipped.column else "for one total"
    return f"{clipped.cut} of {formats.counted(clipped.rows, 'row')} ({share:.3g} %) left out of events counted {asked}"


def _format_kept(kept: KeptValues) -> str:
    """Return how many distinct values are left once each member keeps a few."""
    share = 100 * kept.kept / kept.values if kept.values else 0.0
    asked = f"by {kept.column}, added up" if kept.column else "for one total"
    return f"{kept.kept} of {kept.values} values of {kept.distinct_of} ({share:.3g} %) are kept by some member {asked}"


def _format_clamped(clamped: Clamped) -> str:
    """Return how many rows, or members' totals, count with an end of their bounds."""
    cut = clamped.below + clamped.above
    share = 100 * cut / clamped.counted if clamped.counted else 0.0
    what = formats.counted(clamped.counted, clamped.what)
    if clamped.by is not None:
        what += f" by {clamped.by}" if clamped.by else " of all rows"
    of = f" in {clamped.of}" if clamped.of != "sums" else ""
    return (
        f"{cut} of {what} ({share:.3g} %) count with an end of the bounds of {clamped.column}{of}: {clamped.below} "
        f"with the lower, {clamped.above} with the upper{_format_amounts(clamped)}"
    )


def _format_amounts(clamped: Clamped) -> str:
    """Return which share of the sum clamping changes: few numbers may hold much of it."""
    size, parts = clamped.size, (clamped.raised_by, clamped.lowered_by)
    if not size:
        return ""
    raised, lowered = (100 * (part or 0) / size for part in parts)
    return (
        f"; of what these {clamped.what}s add up to, signs aside, the lower changes {raised:.3g} %, the upper "
        f"{lowered:.3g} %"
    )


def print_promises(promises: Sequence[Promise]) -> None:
    """Print which promises of the policy the data keep; true counts, for the owner alone."""
    for promise in promises:
        say("promise", _format_promise(promise))


def _format_promise(promise: Promise) -> str:
    """Return whether the data keep a promise of the policy."""
    if is_size(promise.key):
        return _format_size(promise)
    what = f"rows in one element of {promise.column}"
    if promise.key == ASSUMED_BOUND:
        what = f"elements of {promise.column}"
    elif promise.key.endswith("delta"):
        what = "values"
    elif promise.key == BLOCK:
        what = "blocks"
    held = f"{promise.key} {promise.promised}: no member has more than {promise.found} {what}"
    if promise.is_kept:
        return f"{held}; kept by these data, and to be kept by those to come"
    return (
        f"BROKEN, {held}, and {_format_breaking(promise.members)} more than {promise.promised}: the guarantee "
        "does not hold for them"
    )


def _format_size(promise: Promise) -> str:
    """Return whether a table is as small as the policy promises."""
    what = "member" if promise.key.endswith("members") else "row"
    held = f"{promise.key} {promise.promised}: the table has {formats.counted(promise.found, what)}"
    if promise.is_kept:
        return f"{held}; kept by these data, and to be kept by those to come"
    return f"BROKEN, {held}: sums may be inexact on an engine that sums in doubles"


def _format_breaking(members: int | None) -> str:
    return "some have" if members is None else formats.counted(members, "member")

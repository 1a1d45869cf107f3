"""The block `values` of a drafted policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from dp_service.terms import ValueType
from gris_cli.data.policy.draft_numbers import DraftValue
from gris_cli.data.policy.draft_yaml import comment, key
from pinot_connector import formats

_VALUES = (
    "What may be summed and averaged, of members beside a count of members, of rows beside one of rows. A row counts "
    "between row_lower and row_upper, and a member's total in one element between lower and upper: narrow bounds cut "
    "what large members add, wide bring noise. `rows` of a member with a value count in full. A grid offers medians, "
    "percentiles, about the smallest and largest: of rows, or of members' totals, around a statement that groups by "
    "the member; by a column once that column's line has a `domain`. DECIDE: the grid's ends should be what everybody "
    "knows."
)


def value_lines(values: Sequence[DraftValue]) -> Iterator[str]:
    """Yield the block of what is summed and has quantiles; nothing if there are no numbers."""
    if not values:
        return
    yield from comment(_VALUES, 4)
    yield "    values:"
    for each in values:
        yield from comment(_cuts(each) + _bins(each), 6)
        (lower, upper), (row_lower, row_upper) = each.totals, each.rows
        scale, begin, end, cells = each.grid
        yield (
            f"      {key(each.name)}: {{type: {each.type}{_quantum(each)}, lower: {lower}, upper: {upper}, "
            f"row_lower: {row_lower}, row_upper: {row_upper}, rows: {each.rows_of_member}, grid: {{scale: {scale}, "
            f"from: {_number(begin)}, to: {_number(end)}, cells: {cells}, rows: {each.rows_ranked}}}}}"
        )


def _bins(each: DraftValue) -> str:
    """Return bins that a question could group by: about twenty of a round width."""
    low, high = each.rows
    widths = (digit * 10**zeros for zeros in range(19) for digit in (1, 2, 5))
    width = next(width for width in widths if 20 * width >= high - low)
    return f" Its bins: GROUP BY FLOOR({each.name} / {width}) * {width}." if high - low > width else ""


def _cuts(each: DraftValue) -> str:
    (_, upper), (row_lower, row_upper) = each.totals, each.rows
    ends = (
        f"row_lower {row_lower} and row_upper {row_upper} cut" if row_lower else f"row_upper {row_upper} cuts"
    )
    missing = f" {share_text(each.missing).capitalize()} of rows have no value." if each.missing > 0 else ""
    return (
        f"DECIDE: upper {upper} cuts {share_text(each.cut)} of the sum of members' totals over all rows; "
        f"{ends} {share_text(each.rows_cut)} of the sum of rows.{missing}"
    )


def share_text(share: float) -> str:
    """Return a share in percent with one digit: a closer one would tell more of the data than a decision needs."""
    if share < 0.0005:
        return "next to nothing"
    return f"about {100 * share:.1g} %" if share < 0.095 else f"about {round(10 * share)}0 %"


def _quantum(each: DraftValue) -> str:
    return "" if each.quantum == 1 and each.type is ValueType.INT64 else f", quantum: {_number(each.quantum)}"


def _number(exact: Fraction) -> str:
    return formats.exact(exact)

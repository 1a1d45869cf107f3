"""Numbers, costs, budgets, days and intervals as people read them, on every surface."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from pinot_connector.budgets import Balance, Cost, Level, Mode, Share

if TYPE_CHECKING:
    from pinot_connector.catalog import BlocksEntry

_MOST_DIGITS = 12
# What a float adds beyond its twelfth digit is its own rounding.
_TWELVE_DIGITS = Context(prec=12)


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun, whose plural takes an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cost(value: Cost) -> str:
    """Returns a cost in the two units of a budget."""
    return f"{value.information:,} information and {counted(value.calls, 'call')}"


def exact(number: Fraction | datetime.date) -> str:
    """Returns a number that a policy states as the decimal that it is, and a day as YYYY-MM-DD."""
    if isinstance(number, datetime.date):
        return number.isoformat()
    return f"{Decimal(number.numerator) / Decimal(number.denominator):f}"


def number(value: float) -> str:
    """Returns a number with its thousands apart."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def confidence(number: float) -> str:
    """Returns a confidence in percent, exactly: it is below 1, and is not rounded to it."""
    return f"{(100 * Decimal(str(number))).normalize():f} %"


def percent(part: Fraction | None) -> str:
    """Returns a part of a whole; empty where there is none."""
    return "" if part is None else f"{float(100 * part):.3g} %"


def largest_cut(part: Fraction | None) -> str:
    """Returns which part of a number bounds cut at most, to stand behind how they bound; empty if it is not stated."""
    return "" if part is None else f"; bounds cut at most {part} of a number of rows"


def rounded_down_percent(part: float) -> str:
    """Returns a part of a whole in percent with two digits, never more than it is."""
    down = Context(prec=2, rounding=ROUND_FLOOR).create_decimal_from_float(100 * part)
    return f"{down.normalize():f} %"


def rounded_up(value: float, digits: int = 6) -> str:
    """Returns an epsilon or a delta with fewer digits, never less than it is."""
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(
        _TWELVE_DIGITS.create_decimal_from_float(value)
    )
    return f"{rounded.normalize():,f}" if value >= 0.001 or not value else f"{float(rounded):.{digits}g}"


def rounded_down(value: Fraction, digits: int = 3) -> str:
    """Returns a part of a promise with fewer digits, never more than it is."""
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )
    return f"{float(rounded):.{digits}g}"


def instant(time: datetime.datetime | None) -> str:
    """Returns a time, in UTC as the ledger counts."""
    return "never" if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


def refresh(time: datetime.datetime | None) -> str:
    """Returns when a budget is refreshed."""
    return "never refreshed" if time is None else f"refreshed {instant(time)}"


def path(segments: Iterable[str]) -> str:
    """Returns an account."""
    return "/".join(segments)


def share(value: Share) -> str:
    """Returns which part of a limit a question takes."""
    part = "" if value.of_limit is None else f" ({percent(value.of_limit)} of the limit of {value.limit:,})"
    return f"{value.cost:,} of {value.remaining:,} that are left{part}{_tracked(value.mode)}"


def level(value: Level) -> str:
    """Returns what is left of one level of a budget."""
    information = f"{value.remaining.information:,} of {value.limit.information:,} information"
    calls = f"{value.remaining.calls:,} of {counted(value.limit.calls, 'call')}"
    return f"{value.name}: {information}, {calls}, {refresh(value.window_end)}{_tracked(value.mode)}"


def left_of_blocks(value: Level, blocks: BlocksEntry | None) -> list[str]:
    """Returns what is left for questions about one block alone, where blocks differ; without `blocks` by their ids."""
    return [
        f"{'of any other block' if not each.blocks else f'of {_block(each.blocks[0], blocks)}'} alone: "
        f"{each.information:,} information, {counted(each.calls, 'call')}"
        for each in (value.remaining_of_blocks if blocks is None else value.left_of_each(blocks.every))
    ]


def _block(id_: str, blocks: BlocksEntry | None) -> str:
    return f"block {id_}" if blocks is None else blocks.named(id_)


def balance(value: Balance | None, delta: Fraction | None = None) -> str:
    """Returns which unit of a budget runs out first, and which calls would end together with the information.

    Args:
        value: the balance of what was spent.
        delta: what a call adds now; None: it is not known here, and what it would be is said as a multiple of it.
    """
    if value is None:
        return ""
    first = (
        f"{value.first} will run out first" if value.first else "information and calls will run out together"
    )
    if not (value.calls and value.first):
        return f"at this rate {first}"
    size = (
        f"{rounded_down(value.of_delta)} times the delta"
        if delta is None
        else f"delta {rounded_down(value.of_delta * delta)}"
    )
    return f"at this rate {first}; {counted(value.calls, 'call')} with {size} would last as long and promise the same"


def _tracked(mode: Mode) -> str:
    return "" if mode is Mode.ENFORCE else "; this limit is recorded and refuses nothing"


def decimals(quantum: Fraction) -> int:
    """Returns how many digits behind the point the numbers of a column have, such as two of cents."""
    digits = 0
    while digits < _MOST_DIGITS and (quantum * 10**digits).denominator > 1:
        digits += 1
    return digits


def digits_of(value: Fraction, ends: Sequence[Fraction], least: int) -> int:
    """Returns how many digits behind the point a value and the ends beside it have.

    They are `least`, or as many as show two of how far the ends reach; whole numbers of a column of whole numbers have
    none.
    """
    if not least and all(each.denominator == 1 for each in (value, *ends)):
        return 0
    width = max(ends) - min(ends) if len(ends) > 1 else 2 * abs(value - ends[0])
    if width <= 0:
        return max(least, decimals(value))
    while width * 10**least < 10:
        least += 1
    return least


def decimal(steps: int, digits: int) -> str:
    """Returns a number of so many steps of 10^-digits, with its thousands apart."""
    whole, rest = divmod(abs(steps), 10**digits)
    behind = f".{rest:0{digits}d}" if digits else ""
    return f"{'-' if steps < 0 else ''}{whole:,}{behind}"

"""How many accounts would use up a budget, by day since it was refreshed: the choice of limits by what is asked."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gris_data.errors import InputError
from gris_data.sheets import Cell, Column, Sheet, percent
from pinot_connector import formats
from pinot_connector.budgets import Cost, balance_of

_COLUMNS = ("account", "day", "information", "calls")
_MAX_DAYS = 400


@dataclass(frozen=True)
class Charge:
    """What one question took from an account, `day` whole days after the account's budget was refreshed."""

    account: str
    day: int
    information: int
    calls: int


@dataclass(frozen=True)
class Exhausted:
    """The shares of all accounts that spent more than `limit` of a unit by the end of each day, shape (days,)."""

    unit: str
    limit: int
    shares: NDArray[np.float64]


def read_charges(path: Path) -> list[Charge]:
    """Return the charges of a CSV file with the columns account, day, information and calls.

    Raises:
        InputError: A column is missing, or a number is none from 0 on, with its line.
    """
    with path.open(newline="", encoding="utf-8") as stream:
        lines = csv.DictReader(stream)
        if not set(_COLUMNS) <= set(lines.fieldnames or ()):
            raise InputError(f"CHARGES: the first line of {path} must name {', '.join(_COLUMNS)}")
        charges = [_charge(line, number) for number, line in enumerate(lines, start=2)]
    if not charges:
        raise InputError(f"CHARGES: {path} holds no charge")
    return charges


def _charge(line: dict[str, str], number: int) -> Charge:
    try:
        day, information, calls = (int(line[name]) for name in _COLUMNS[1:])
    except (TypeError, ValueError):
        raise InputError(
            f"CHARGES: line {number} must have whole numbers as day, information and calls"
        ) from None
    if not 0 <= day < _MAX_DAYS or information < 0 or calls < 0:
        raise InputError(
            f"CHARGES: line {number} must have a day from 0 to {_MAX_DAYS - 1} and costs from 0 on"
        )
    return Charge(line["account"], day, information, calls)


def exhausted(charges: Sequence[Charge], unit: str, limits: Iterable[int]) -> list[Exhausted]:
    """Return for each limit of a unit the share of accounts that spent more, day by day."""
    accounts = {account: row for row, account in enumerate(sorted({each.account for each in charges}))}
    spent = np.zeros((len(accounts), 1 + max(each.day for each in charges)), dtype=np.int64)
    for each in charges:
        spent[accounts[each.account], each.day] += getattr(each, unit)
    by_day = spent.cumsum(axis=1)
    return [Exhausted(unit, limit, (by_day > limit).mean(axis=0)) for limit in limits]


def pace_of(charges: Iterable[Charge], limit: Cost, delta: Fraction) -> str:
    """Return which unit of a limit all charges together would use up first, and which delta would balance them."""
    charges = list(charges)
    spent = Cost(sum(each.information for each in charges), sum(each.calls for each in charges), "")
    text = formats.balance(balance_of(spent, limit), delta)
    return text and f"of {formats.cost(limit)} with delta {float(delta):g}, {text}"


def usage_sheet(found: Sequence[Exhausted], pace: str = "") -> Sheet:
    """Return the shares after the first day, after a week, and after all days, with a sentence about the pace."""
    rows: list[tuple[Cell, ...]] = [
        (each.unit, each.limit, *(float(each.shares[min(day, each.shares.size - 1)]) for day in (0, 6, 399)))
        for each in found
    ]
    return Sheet(
        (
            Column("unit", "unit", is_text=True),
            Column("limit", "limit"),
            Column("first_day", "above it on the first day", percent),
            Column("first_week", "within a week", percent),
            Column("window", "in the end", percent),
        ),
        rows,
        (("", "shares of the accounts that asked anything"), ("", pace)),
    )

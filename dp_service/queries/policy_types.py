"""What the keys of a policy may hold: names, exact numbers, days, zones."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal, TypeVar
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from dp_service.queries.answer_columns import RESERVED_PREFIX

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# At most three digits of exponent: "1e-999999999" would be a number of a billion digits.
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAX_DAYS = 3_652_059
"""The years 1 to 9999 have no more days."""
_DECIMAL = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
# At most six digits each, as in 7/20.
_RATIO = re.compile(r"[0-9]{1,6}/[1-9][0-9]{0,5}")

MAXIMUM_EPSILON_PER = 10
MAXIMUM_DOMAIN_SIZE = 100_000
DEFAULT_DELAY_MINUTES = 5
OFFLINE_SUFFIX = "_OFFLINE"
"""How Pinot's name of the offline part of a table ends."""
REALTIME_SUFFIX = "_REALTIME"
MAXIMUM_ROWS_OF_MEMBER = 500_000
"""How many rows of a member count in full at most, so that queries compute its weight exactly."""
MAXIMUM_PERIODS = 100_000
MAXIMUM_NAMES = 500
"""How many elements of one column the first of two looks names at most.

The queries of all engines for so many names, each of the greatest length, fit into one message, so no name is one too
many.
"""
MAXIMUM_DELAY_MINUTES = 7 * 24 * 60
MAXIMUM_STATED = 9 * 10**10
"""The largest numbers of members and rows that a policy can state: 2^53 is 100,000 times as many.

A row counts on the grid of weights, and with a condition in a thousand parts (`values.bounds.Clamp.parts`).
"""
NAMES_SHARE = Fraction(3, 8)
"""The part of the units with which the first of two looks finds names."""
COUNT_SHARE = Fraction(1, 2)
"""The part of the units that counts take beside sums."""


def _identifier(name: str) -> str:
    """Return a name if every engine can take it in quotes."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(
            "expected a name of ASCII letters, digits and underscores that does not start with a digit"
        )
    if name.casefold().startswith(RESERVED_PREFIX):
        raise ValueError(
            f"expected a name that does not begin with {RESERVED_PREFIX}: queries name columns of their own so"
        )
    return name


def exact_decimal(value: object) -> Fraction:
    """Return the number that a decimal text denotes, exactly, without a float in between."""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError("expected a decimal number such as 0.15 or 1e-10")
    return Fraction(text)


def exact_bound(value: object) -> Fraction:
    """Return the number that a decimal text denotes, exactly; it may be negative."""
    text = str(value) if type(value) is int else value
    if isinstance(text, str) and text.startswith("-"):
        return -exact_decimal(text[1:])
    return exact_decimal(text)


def grid_end(value: object) -> Fraction | datetime.date:
    """Return the day that a text denotes, or the number, exactly."""
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return exact_bound(value)
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        raise ValueError("expected a day of the calendar as YYYY-MM-DD") from None


def _day(value: object) -> datetime.date:
    found = grid_end(value) if isinstance(value, str) and _DAY.fullmatch(value) else None
    if not isinstance(found, datetime.date):
        raise ValueError("expected a day as YYYY-MM-DD")
    return found


def exact_share(value: object) -> Fraction:
    """Return the number that a decimal text or a fraction such as 7/20 denotes, exactly."""
    if isinstance(value, str) and _RATIO.fullmatch(value):
        return Fraction(value)
    try:
        return exact_decimal(value)
    except ValueError:
        raise ValueError("expected a fraction such as 1/4, or a decimal number such as 0.15") from None


def power_of_two(value: object) -> Fraction:
    """Return a fraction such as 1/16, which tells less of the data than an exact one."""
    part = exact_share(value)
    if part.numerator != 1 or part.denominator < 2 or part.denominator & (part.denominator - 1):
        raise ValueError("expected 1 divided by a power of two, such as 1/16")
    return part


@cache
def _zones() -> frozenset[str]:
    """Return the names of all IANA time zones, without those that mean the machine's own."""
    return frozenset(available_timezones()) - {"localtime", "Factory"}


def _zone(name: str) -> str:
    # `ZoneInfo` also opens files that are no zones, such as `right/...`, which count leap seconds.
    if name not in _zones():
        raise ValueError("expected the name of an IANA time zone, such as Europe/Berlin")
    return name


Zone = Annotated[str, AfterValidator(_zone)]
PowerOfTwo = Annotated[Fraction, BeforeValidator(power_of_two)]
TimestampUnit = Literal["seconds", "milliseconds", "microseconds"]
"""The units that integers may count since 1970-01-01 in a column of timestamps."""
Identifier = Annotated[str, Field(max_length=128), AfterValidator(_identifier)]
Exact = Annotated[Fraction, BeforeValidator(exact_decimal)]
Bound = Annotated[Fraction, BeforeValidator(exact_bound)]
GridEnd = Annotated[Fraction | datetime.date, BeforeValidator(grid_end)]
Day = Annotated[datetime.date, BeforeValidator(_day)]
MaxK = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]


_Resolved = TypeVar("_Resolved", bound="Stated")


class Stated(BaseModel):
    """A block of a policy, of which no key may be unknown. As it is stated, it is the policy."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def resolved(self, into: type[_Resolved], **found: object) -> _Resolved:
        """Return what the block resolves to: the keys that both have, as they are stated, and what was found."""
        values = {**dict(self), **found}
        if missing := into.model_fields.keys() - values.keys():
            raise AssertionError(f"{into.__name__} needs {missing}")
        return into.model_construct(self.model_fields_set, **values)


class PublishedSchema(Stated):
    """A published domain: its file, relative to the policy or absolute, and the hash that the file ends with.

    The hash makes the domain a part of the policy's text: a domain that changes is another policy.
    """

    published: Annotated[str, Field(min_length=1, max_length=1024)]
    integrity: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]

"""Results: released values, their cost, and their confidence intervals."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.budgets import Charge, Cost, Level, Share, cost_of, narrowest, shares_of
from pinot_connector.days import date_of
from pinot_connector.engines.base import ColumnType, Element, ExpectedColumn, TimeUnit
from pinot_connector.errors import IntegrityError
from pinot_connector.json_values import to_json
from pinot_connector.releases import Noisy

Shown: TypeAlias = str | int | bool | datetime.date

_Key = TypeVar("_Key", bound=int)
_Meaning = TypeVar("_Meaning")


class Mechanism(Enum):
    """The mechanism that a release came from."""

    KNOWN_LAP = "KnownLap"
    KNOWN_GUMB = "KnownGumb"
    UNK_LAP = "UnkLap"
    UNK_GUMB = "UnkGumb"


class CountNoise(Enum):
    """The law of the noise that counts carry; `NONE`: counts are not part of the release."""

    NONE = "none"
    DISCRETE_LAPLACE = "discrete_laplace"
    DISCRETE_GAUSSIAN = "discrete_gaussian"


class IntervalKind(Enum):
    """What the confidence intervals are true for.

    `PLAIN`: the counts' noise is independent of what was chosen to be shown. `GIVEN_SHOWN`: an element is shown
    because of the noise in its count, and the interval takes that into account. `NONE`: there are no counts.
    """

    NONE = "none"
    PLAIN = "plain"
    GIVEN_SHOWN = "given_shown"


class Consistency(Enum):
    """Whether the same question on the same data gets the same answer (`KEYED`) or new noise (`FRESH`)."""

    KEYED = "keyed"
    FRESH = "fresh"


@dataclass(frozen=True)
class Parameters:
    """Everything that the policy resolved for a question.

    `delta` is None where the mechanism takes no call, `delta_l0` where the sensitivity is unrestricted, `d_bar` and
    `domain_size` where they have no meaning, `k` where all is shown. `noise_scale`, in counts, is the scale of
    Laplace noise or the sigma of Gaussian noise, and None without counts.
    """

    mechanism: Mechanism
    epsilon_per: Fraction
    delta: Fraction | None
    tau: int
    delta_l0: int | None
    d_bar: int | None
    k: int | None
    domain_size: int | None
    count_noise: CountNoise
    noise_scale: Fraction | None
    consistency: Consistency


@dataclass(frozen=True)
class Row:
    """One element with its noisy count and the ends of its interval, both inclusive; None without counts."""

    element: tuple[Shown, ...]
    noisy_count: int | None
    interval: tuple[int, int] | None


@dataclass(frozen=True)
class PrivateResult:
    """A release that has been paid for.

    `rows` are ranked. `count_alias` is what a question in SQL calls their counts, None where it gives no name. If
    `ended_in_bottom`, nothing below may be shown, and `bottom` is the noisy threshold where the mechanism releases
    one. `cost` is what the release costs, `charged` what it took from the budget this time: nothing if this account
    had paid for it. `data_version` is keyed and verifies no guess about the data. `requested_k` is the question's k
    where the policy shows at most `parameters.k` elements, which is less; None where it shows as many.
    """

    columns: tuple[ExpectedColumn, ...]
    count_alias: str | None
    rows: tuple[Row, ...]
    ended_in_bottom: bool
    bottom: int | None
    parameters: Parameters
    interval_kind: IntervalKind
    confidence: float
    cost: Cost
    charged: Cost
    remaining: tuple[Level, ...]
    data_version: str
    release_id: str
    query_id: str
    key_id: str
    requested_k: int | None = None

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that the release came from."""
        return self.parameters.mechanism

    def to_dict(self) -> dict[str, Any]:
        """Returns the result in terms of JSON: days as ISO 8601, exact numbers as "p/q"."""
        return {"mechanism": self.mechanism.value, **to_json(self)}


@dataclass(frozen=True)
class RenderedQuery:
    """The query that an engine of this dialect would run, for an operator to read."""

    dialect: str
    sql: str


@dataclass(frozen=True)
class Explanation:
    """What a question would cost at most and what would be done, before anything is asked or paid.

    `shares` are the cost's shares of every limit, by level and unit; empty if the budget was not read, or nothing has a
    limit. A question whose answers repeat, and which the account has paid for on the same data, costs nothing.
    `requested_k` is the question's k where the policy shows at most `parameters.k` elements, which is less.
    """

    worst_case_cost: Cost
    parameters: Parameters
    sentences: tuple[str, ...]
    queries: tuple[RenderedQuery, ...]
    shares: tuple[Share, ...] = ()
    requested_k: int | None = None

    @property
    def narrowest(self) -> Share | None:
        """The share that decides: of the level and unit that end first; None if none of them enforces a limit."""
        return narrowest(self.shares)

    def of_budget(self, levels: Iterable[Level]) -> Explanation:
        """Returns the same with the shares of a budget."""
        return replace(self, shares=shares_of(levels, self.worst_case_cost))

    def to_dict(self) -> dict[str, Any]:
        """Returns the explanation in terms of JSON."""
        return {
            "mechanism": self.parameters.mechanism.value,
            **to_json(self),
            "narrowest": to_json(self.narrowest),
        }


COLUMN_TYPES = {
    histogram_pb2.COLUMN_TYPE_STRING: ColumnType.STRING,
    histogram_pb2.COLUMN_TYPE_INT64: ColumnType.INT64,
    histogram_pb2.COLUMN_TYPE_BOOL: ColumnType.BOOL,
    histogram_pb2.COLUMN_TYPE_DATE: ColumnType.DATE,
    histogram_pb2.COLUMN_TYPE_TIMESTAMP: ColumnType.TIMESTAMP,
}
TIME_UNITS = {
    dp_pb2.TIME_UNIT_DAYS: TimeUnit.DAYS,
    dp_pb2.TIME_UNIT_SECONDS: TimeUnit.SECONDS,
    dp_pb2.TIME_UNIT_MILLISECONDS: TimeUnit.MILLISECONDS,
    dp_pb2.TIME_UNIT_MICROSECONDS: TimeUnit.MICROSECONDS,
}
MECHANISMS = {
    dp_pb2.MECHANISM_KNOWN_LAP: Mechanism.KNOWN_LAP,
    dp_pb2.MECHANISM_KNOWN_GUMB: Mechanism.KNOWN_GUMB,
    dp_pb2.MECHANISM_UNK_LAP: Mechanism.UNK_LAP,
    dp_pb2.MECHANISM_UNK_GUMB: Mechanism.UNK_GUMB,
}
INTERVAL_KINDS = {
    dp_pb2.INTERVAL_KIND_NONE: IntervalKind.NONE,
    dp_pb2.INTERVAL_KIND_PLAIN: IntervalKind.PLAIN,
    dp_pb2.INTERVAL_KIND_GIVEN_SHOWN: IntervalKind.GIVEN_SHOWN,
}
COUNT_NOISES = {
    dp_pb2.COUNT_NOISE_NONE: CountNoise.NONE,
    dp_pb2.COUNT_NOISE_DISCRETE_LAPLACE: CountNoise.DISCRETE_LAPLACE,
    dp_pb2.COUNT_NOISE_DISCRETE_GAUSSIAN: CountNoise.DISCRETE_GAUSSIAN,
}
CONSISTENCIES = {
    dp_pb2.CONSISTENCY_KEYED: Consistency.KEYED,
    dp_pb2.CONSISTENCY_FRESH: Consistency.FRESH,
}


def prepared(
    columns: tuple[ExpectedColumn, ...],
    count_alias: str | None,
    noisy: Noisy,
    requested_k: int | None = None,
) -> Callable[[Charge], PrivateResult]:
    """Prepares everything of a result that can fail, and returns the function that completes it after the charge.

    A release that cannot be shown must not be charged, so nothing may fail after the charge.

    Raises:
        IntegrityError: a message says something that this version does not know.
    """
    release = noisy.release
    rows = rows_of(columns, noisy)
    parameters = parameters_of(release.parameters)
    interval_kind = known(INTERVAL_KINDS, release.interval_kind)

    def completed(charge: Charge) -> PrivateResult:
        return PrivateResult(
            columns=columns,
            count_alias=count_alias,
            rows=rows,
            ended_in_bottom=release.ended_in_bottom,
            bottom=release.bottom if release.HasField("bottom") else None,
            parameters=parameters,
            interval_kind=interval_kind,
            confidence=release.confidence,
            cost=cost_of(release.cost),
            charged=charge.charged,
            remaining=charge.remaining,
            data_version=release.data_version,
            release_id=release.release_id,
            query_id=release.query_id,
            key_id=release.key_id,
            requested_k=requested_k,
        )

    return completed


def explanation_of(message: dp_pb2.EstimateCostResponse) -> Explanation:
    """Returns the explanation in a message of dp_service."""
    return Explanation(
        worst_case_cost=cost_of(message.worst_case_cost),
        parameters=parameters_of(message.parameters),
        sentences=tuple(message.explanation),
        queries=tuple(RenderedQuery(query.dialect, query.sql) for query in message.engine_queries),
        requested_k=message.requested_k or None,
    )


def rows_of(columns: tuple[ExpectedColumn, ...], noisy: Noisy) -> tuple[Row, ...]:
    """Returns ranked rows.

    Raises:
        IntegrityError: a value cannot be shown.
    """
    shown = [shown_values(column.type, values) for column, values in zip(columns, noisy.columns, strict=True)]
    elements = zip(*shown, strict=True)
    if not noisy.noisy_counts:
        return tuple(Row(element, None, None) for element in elements)
    intervals = zip(noisy.lower, noisy.upper, strict=True)
    return tuple(map(Row, elements, noisy.noisy_counts, intervals))


def shown_values(kind: ColumnType, values: Sequence[Element]) -> Sequence[Shown]:
    """Returns values as they are shown: numbers of days since 1970-01-01 as days.

    Raises:
        IntegrityError: a day outside the years 1 to 9999.
    """
    if kind is not ColumnType.DATE:
        return values
    try:
        return [date_of(int(days)) for days in values]
    except (ValueError, OverflowError):
        raise IntegrityError("dp_service sent a day outside the years 1 to 9999") from None


def parameters_of(message: dp_pb2.MechanismParameters) -> Parameters:
    """Returns what was resolved for a question.

    Raises:
        IntegrityError: the message holds something that this version does not know.
    """
    return Parameters(
        mechanism=known(MECHANISMS, message.mechanism),
        epsilon_per=exact(message.epsilon_per),
        delta=exact(message.delta) if message.delta else None,
        tau=message.tau,
        delta_l0=message.delta_l0 or None,
        d_bar=message.d_bar or None,
        k=message.k or None,
        domain_size=message.domain_size or None,
        count_noise=known(COUNT_NOISES, message.count_noise),
        noise_scale=exact(message.noise_scale) if message.noise_scale else None,
        consistency=known(CONSISTENCIES, message.consistency),
    )


def exact(text: str) -> Fraction:
    """Returns the number that a text denotes.

    Raises:
        IntegrityError: it denotes none.
    """
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise IntegrityError("dp_service sent something else than an exact number") from None


def known(meanings: Mapping[_Key, _Meaning], value: _Key) -> _Meaning:
    """Returns the meaning of a message's enum value.

    Raises:
        IntegrityError: this version knows none.
    """
    if value not in meanings:
        raise IntegrityError("dp_service says something that this version does not know")
    return meanings[value]

"""Buckets of time are those of Python's calendar, around changes of clocks and ends of years too."""

from __future__ import annotations

import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.errors import QuestionError
from dp_service.queries.time_buckets import (
    TimeBucket,
    bucket_of,
    buckets_between,
)

UTC = datetime.UTC
HOUR = datetime.timedelta(hours=1)


def at(text: str) -> datetime.datetime:
    """Return a timestamp in UTC."""
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


def name_of(length: BucketLength, day: datetime.date) -> object:
    """Name the bucket of a day by the calendar alone."""
    return {
        BucketLength.DAY: day,
        BucketLength.WEEK: day.isocalendar()[:2],
        BucketLength.MONTH: (day.year, day.month),
        BucketLength.QUARTER: (day.year, (day.month + 2) // 3),
        BucketLength.YEAR: day.year,
    }[length]


# Clocks that change at midnight, by half an hour or not at all, and two days that a zone skipped.
RANGES = [
    ("Europe/Berlin", "2024-03-28T05:00", "2024-04-03T07:00"),
    ("Europe/Berlin", "2024-10-25T23:00", "2024-10-29T00:00"),
    ("America/Sao_Paulo", "2018-11-01T00:00", "2018-11-07T00:00"),
    ("America/Havana", "2023-11-03T00:00", "2023-11-07T00:00"),
    ("Australia/Lord_Howe", "2024-04-05T00:00", "2024-04-08T00:00"),
    ("Pacific/Apia", "2011-12-28T00:00", "2012-01-02T00:00"),
    ("Asia/Kathmandu", "2020-12-25T00:00", "2021-01-06T00:00"),
    ("UTC", "2020-12-20T00:00", "2021-01-10T00:00"),
    ("America/New_York", "2024-02-27T00:00", "2024-03-12T00:00"),
]


@pytest.mark.parametrize("length", BucketLength)
@pytest.mark.parametrize(("zone", "start", "end"), RANGES)
def test_every_time_of_the_range_is_in_one_bucket_and_it_is_that_of_the_calendar(
    length: BucketLength, zone: str, start: str, end: str
) -> None:
    """Every half hour, and the last microsecond of every bucket."""
    found = buckets_between(length, at(start), at(end), zone)
    assert found[0].start == at(start)
    assert found[-1].end == at(end)
    assert all(one.end == other.start for one, other in pairwise(found))
    times = [at(start) + HOUR / 2 * step for step in range(int((at(end) - at(start)) / HOUR * 2))]
    times += [bucket.end - datetime.timedelta(microseconds=1) for bucket in found]
    for time in times:
        (bucket,) = (bucket for bucket in found if bucket.start <= time < bucket.end)
        local = time.astimezone(ZoneInfo(zone)).date()
        assert bucket.first_day == bucket_of(length, time, zone)
        assert name_of(length, bucket.first_day) == name_of(length, local)
    assert len(found) == len({name_of(length, time.astimezone(ZoneInfo(zone)).date()) for time in times})


def test_days_have_23_and_25_hours_where_clocks_change() -> None:
    """In Berlin in 2024 on 31 March and 27 October."""
    for day, hours in (("2024-03-31", 23), ("2024-10-27", 25), ("2024-06-01", 24)):
        first = datetime.date.fromisoformat(day)
        found = buckets_between(BucketLength.DAY, at(day) - 5 * HOUR, at(day) + 40 * HOUR, "Europe/Berlin")
        (bucket,) = (each for each in found if each.first_day == first)
        assert bucket.end - bucket.start == hours * HOUR


def test_a_day_that_a_zone_skipped_is_no_bucket() -> None:
    """Samoa had no 30 December 2011."""
    found = buckets_between(BucketLength.DAY, at("2011-12-29T00:00"), at("2012-01-01T00:00"), "Pacific/Apia")
    assert [str(bucket.first_day) for bucket in found] == [
        "2011-12-28",
        "2011-12-29",
        "2011-12-31",
        "2012-01-01",
    ]


def test_a_bucket_ends_with_the_range() -> None:
    """A month that the range begins in has only the times in it."""
    found = buckets_between(BucketLength.MONTH, at("2024-01-15T00:00"), at("2024-02-02T12:00"), "UTC")
    assert found == (
        TimeBucket(datetime.date(2024, 1, 1), at("2024-01-15T00:00"), at("2024-02-01T00:00")),
        TimeBucket(datetime.date(2024, 2, 1), at("2024-02-01T00:00"), at("2024-02-02T12:00")),
    )


def test_weeks_of_a_long_time_begin_on_mondays() -> None:
    """Over the end of years of 52 and 53 weeks."""
    found = buckets_between(BucketLength.WEEK, at("2015-01-01T00:00"), at("2027-01-01T00:00"), "UTC")
    assert {bucket.first_day.weekday() for bucket in found} == {0}
    assert [bucket.first_day.isocalendar()[:2] for bucket in found] == sorted(
        {(at("2015-01-01T00:00") + 24 * HOUR * day).isocalendar()[:2] for day in range(365 * 12 + 3)}
    )


@pytest.mark.parametrize(
    ("start", "end", "zone"),
    [
        ("2024-01-01T00:00", "2024-01-01T00:00", "UTC"),
        ("2024-01-02T00:00", "2024-01-01T00:00", "UTC"),
        ("1900-01-01T00:00", "2173-10-15T00:00", "UTC"),
        ("9999-12-30T00:00", "9999-12-31T23:00", "UTC"),
        ("9999-12-30T00:00", "9999-12-31T23:00", "Asia/Tokyo"),
    ],
)
def test_a_range_of_no_bucket_or_too_many_is_refused(start: str, end: str, zone: str) -> None:
    """As one that ends with all calendars."""
    with pytest.raises(QuestionError):
        buckets_between(BucketLength.DAY, at(start), at(end), zone)


def test_the_most_buckets_are_found() -> None:
    """10,000 days."""
    end = at("2000-01-01T00:00") + 10_000 * 24 * HOUR
    assert len(buckets_between(BucketLength.DAY, at("2000-01-01T00:00"), end, "UTC")) == 10_000

"""The range of time that a policy states for questions by buckets of time, or first times, which leave an end open.

Dashboards ask for series without a range. Its ends are the policy's, and so public; a question that states the same
ones itself is the same question. Its answer shows the buckets that these ends are in; other questions count all rows.
"""

from __future__ import annotations

from dataclasses import replace

from dp_service.queries.canonical import time_restriction
from dp_service.queries.filters import TimeRange, leave_one_range
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table


def with_usual_range(query: HistogramQuery, table: Table, closed_before: int | None) -> HistogramQuery:
    """Return a question with the ends of the policy's usual range where it needs such and has none.

    Args:
        query: The question.
        table: Its table.
        closed_before: The first value of the time column that the question must not see; None: it sees all.
    """
    time = table.time
    in_buckets = any(each.is_of_range for each in query.functions)
    if time is None or (time.begins is None and time.ends is None) or not in_buckets:
        return query
    if not leave_one_range(query.filters, time.name):
        # Several ranges, or others, are a range that the question states, in its own way.
        return query
    stated, hull = (
        query.time_range or TimeRange(None, None),
        time_restriction(query, table, closed_before).hull,
    )
    (has_start, has_end), start, end = time.ends_in(hull), stated.start, stated.end
    # A range that begins after the usual one has its own end to state.
    if start is None and time.begins and not has_start:
        start = time.begins if time.first_value_from(time.begins) < hull.end else None
    if end is None and time.ends and not has_end:
        end = time.ends if hull.start < time.first_value_from(time.ends) else None
    both = TimeRange(start, end)
    return query if both == stated else replace(query, time_range=both)

"""A policy to ask against, and shorthands to bring a question through the whole package."""

from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery

POLICY_TEXT = """
epsilon_per: 0.15
delta: 1e-10
tables:
  engagement:
    member: member_id
    time: {column: day, type: date, buckets: [month], parts: [weekday, month, quarter]}
    data_version: v1
    measures:
      distinct_members: true
      events: {tau: 5, tau_is: assumed}
    columns:
      article_id: {type: string, group_by: true, filter: [in, not_in]}
      country: {type: string, group_by: true, filter: [in, not_in], domain: [DE, FR, AT], delta: 1}
      score: {type: int64, group_by: true, filter: [in, not_in, range], domain: [1, -1, 0]}
      active: {type: bool, group_by: true, filter: [in, not_in], delta: 1, nulls: keep, null_value: false}
      cohort: {type: string, group_by: true, delta: 2}
      title: {type: string, filter: [not_in], nulls: keep, null_value: ''}
      shown: {type: string, group_by: true, nulls: keep, null_value: none}
      secret: {type: string}
      day: {type: date, group_by: true, filter: [in, not_in]}
  clicks:
    member: user
    consistency: fresh
    d_bar: 50
    time: {column: at, type: int64, unit: seconds}
    measures: {distinct_members: true}
    columns:
      user: {type: int64}
      item: {type: int64, group_by: true, filter: [in, not_in, range]}
      kind: {type: string, group_by: true, delta: 3}
  orders:
    member: customer
    time: {column: at, type: int64, unit: milliseconds, refresh: day, delay_minutes: 0}
    measures: {events: {tau: 3, tau_is: clipped}}
    columns:
      item: {type: string, group_by: true, filter: [in, not_in]}
      channel: {type: string, group_by: true, nulls: keep, null_value: unknown, domain: [shop, unknown, web], delta: 2}
  views:
    member: user
    measures: {distinct_members: true}
    columns:
      item: {type: string, group_by: true}
"""
POLICY: Policy = parse_policy(POLICY_TEXT)
NOW = 1_600_000_000


def resolved(sql: str, policy: Policy = POLICY) -> Resolution:
    """Return what a question in SQL resolves to."""
    return resolve(parse_sql(sql, policy), policy, now=NOW)


def fingerprint(query: HistogramQuery, policy: Policy = POLICY) -> bytes:
    """Return the canonical bytes of a structured question."""
    return canonical_bytes(canonicalise(query, policy.table(query.table), closed_before=None))

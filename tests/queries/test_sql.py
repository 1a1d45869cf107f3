"""SQL texts that are accepted: their structured form, and the query that each engine is asked."""

import datetime
import hashlib
import re
from dataclasses import dataclass

import pytest

from dp_service.queries.canonical import canonical_bytes
from dp_service.queries.render import render
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import Bound, HistogramQuery, In, Measure, NotIn, Range
from tests.support.queries.policies import POLICY, resolved

PINOT_PREFIX = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
)
NESTED_PREFIX = (
    "SET useMultistageEngine=true; SET useLiteMode=false; SET useBrokerPruning=false; SET mseMinGroupTrimSize=-1; "
    + PINOT_PREFIX
)
DAY = datetime.date


@dataclass(frozen=True)
class Accepted:
    """A text with what it must become; `pinot` None: as for DuckDB, after the prefix and without limits of length.

    `fingerprint` is the SHA-256 of the canonical bytes at the moment NOW, its first 16 hexadecimal characters.
    """

    sql: str
    form: HistogramQuery
    fingerprint: str
    duckdb: str
    pinot: str | None = None
    pinot_prefix: str = PINOT_PREFIX


ACCEPTED = {
    "top articles": Accepted(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement GROUP BY article_id LIMIT 10",
        HistogramQuery("engagement", ("article_id",), Measure.DISTINCT_MEMBERS, k=10),
        "a30e10ab9b95b7d1",
        r"""SELECT "article_id", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "article_id" <> 'null' AND length("article_id") <= 1024
            GROUP BY "article_id"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "article_id" ASC
            LIMIT 1001""",
    ),
    "the specification's example": Accepted(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement WHERE country = 'DE' "
        "AND day BETWEEN '2019-01-01' AND '2019-01-31' GROUP BY article_id ORDER BY 2 DESC LIMIT 200",
        HistogramQuery(
            "engagement",
            ("article_id",),
            Measure.DISTINCT_MEMBERS,
            (In("country", ("DE",)), Range("day", Bound(DAY(2019, 1, 1)), Bound(DAY(2019, 1, 31)))),
            k=200,
        ),
        "36757734d5921d07",
        r"""SELECT "article_id", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "article_id" <> 'null'
            AND "country" = 'DE'
            AND "day" >= DATE '2019-01-01'
            AND "day" <= DATE '2019-01-31'
            AND length("article_id") <= 1024
            GROUP BY "article_id"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "article_id" ASC
            LIMIT 2001""",
        r"""SELECT "article_id", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL
            AND "article_id" <> 'null' AND "country" = 'DE' AND "day" >= 17897 AND "day" <= 17927
            GROUP BY "article_id"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "article_id" ASC
            LIMIT 2001""",
    ),
    "a known domain, in any case of keywords": Accepted(
        "select country, count(distinct member_id) as n from engagement "
        "where title <> 'it''s \"50\\%\" -- /* // OPTION(a=b); SET x=1;' group by country "
        "order by n desc, country asc;",
        HistogramQuery(
            "engagement",
            ("country",),
            Measure.DISTINCT_MEMBERS,
            (NotIn("title", ('it\'s "50\\%" -- /* // OPTION(a=b); SET x=1;',)),),
        ),
        "2efb9ed8333df816",
        r"""SELECT "country", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "country" IN ('AT', 'DE', 'FR')
            AND COALESCE("title", '') <> 'it''s "50\%" -- /* // OPTION(a=b); SET x=1;'
            GROUP BY "country"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "country" ASC
            LIMIT 3""",
        r"""SELECT "country", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "country" IN ('AT', 'DE', 'FR')
            AND "title" <> 'it''s "50\%" -- /* // OPTION(a=b); SET x=1;'
            GROUP BY "country"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "country" ASC
            LIMIT 3""",
    ),
    "the order alone, of a product": Accepted(
        "SELECT score, shown FROM engagement WHERE active = TRUE AND (score > -1 AND (score <= 7)) "
        "GROUP BY shown, score ORDER BY COUNT(*) DESC, 2, score LIMIT 7",
        HistogramQuery(
            "engagement",
            ("score", "shown"),
            Measure.EVENTS,
            (
                In("active", (True,)),
                Range("score", Bound(-1, exclusive=True), None),
                Range("score", None, Bound(7)),
            ),
            k=7,
            omit_counts=True,
        ),
        "822b8f2b00abf9a2",
        r"""SELECT "score", COALESCE("shown", 'none') AS "shown", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND COALESCE("active", FALSE) = TRUE AND "score" IN (0, 1)
            AND length(COALESCE("shown", 'none')) <= 1024
            GROUP BY "score", COALESCE("shown", 'none')
            ORDER BY COUNT(*) DESC, "score" ASC, COALESCE("shown", 'none') ASC
            LIMIT 1001""",
        r"""SELECT "score", "shown", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "active" = TRUE AND "score" IN (0, 1)
            GROUP BY "score", "shown"
            ORDER BY COUNT(*) DESC, "score" ASC, "shown" ASC
            LIMIT 1001""",
    ),
    "by day": Accepted(
        'SELECT "day", COUNT(*) n FROM "engagement" WHERE score NOT IN (-1, 5, 5) AND NOT article_id IN (\'a\') '
        "GROUP BY day ORDER BY COUNT(*) DESC NULLS LAST LIMIT 3",
        HistogramQuery(
            "engagement",
            ("day",),
            Measure.EVENTS,
            (NotIn("score", (-1, 5, 5)), NotIn("article_id", ("a",))),
            k=3,
        ),
        "1c459be2aa4f1745",
        r"""SELECT "day", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "article_id" NOT IN ('a', 'null')
            AND "day" >= DATE '0001-01-01' AND "day" <= DATE '9999-12-31'
            AND "score" >= -9223372036854775807
            AND "score" NOT IN (-1, 5)
            GROUP BY "day"
            ORDER BY COUNT(*) DESC, "day" ASC
            LIMIT 1001""",
        r"""SELECT "day", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "article_id" NOT IN ('a', 'null')
            AND "day" >= -719162 AND "day" <= 2932896
            AND "score" >= -9223372036854775807
            AND "score" NOT IN (-1, 5)
            GROUP BY "day"
            ORDER BY COUNT(*) DESC, "day" ASC
            LIMIT 1001""",
    ),
    "a member column of which something is said": Accepted(
        "SELECT kind, COUNT(DISTINCT user) FROM clicks WHERE at >= 1546300800 AND item = 9223372036854775807 "
        "GROUP BY kind",
        HistogramQuery(
            "clicks",
            ("kind",),
            Measure.DISTINCT_MEMBERS,
            (Range("at", Bound(1546300800), None), In("item", (2**63 - 1,))),
        ),
        "f300d7b08ff3ff84",
        r"""SELECT "kind", COUNT(DISTINCT "user") AS "gris_count"
            FROM "clicks"
            WHERE "at" >= 1546300800
            AND "item" = 9223372036854775807
            AND "kind" <> 'null'
            AND "user" >= -9223372036854775807
            AND length("kind") <= 1024
            GROUP BY "kind"
            ORDER BY COUNT(DISTINCT "user") DESC, "kind" ASC
            LIMIT 51""",
    ),
    "events that are clipped, before today": Accepted(
        "SELECT item, channel, COUNT(*) FROM orders WHERE item <> 'x' GROUP BY item, channel LIMIT 5",
        HistogramQuery("orders", ("item", "channel"), Measure.EVENTS, (NotIn("item", ("x",)),), k=5),
        "7d7da014a8b8915a",
        r"""SELECT "item", "channel",
            CAST(SUM(CASE WHEN "gris_member_count" > 3 THEN 3 ELSE "gris_member_count" END) AS BIGINT) AS "gris_count"
            FROM (SELECT "item", COALESCE("channel", 'unknown') AS "channel", COUNT(*) AS "gris_member_count"
            FROM "orders"
            WHERE "customer" IS NOT NULL AND "at" >= -9223372036854775807 AND "at" <= 1599955199999
            AND COALESCE("channel", 'unknown') IN ('shop', 'unknown', 'web') AND "item" NOT IN ('null', 'x')
            AND length("item") <= 1024
            GROUP BY "item", COALESCE("channel", 'unknown'), "customer") AS "gris_members"
            GROUP BY "item", "channel"
            ORDER BY CAST(SUM(CASE WHEN "gris_member_count" > 3 THEN 3 ELSE "gris_member_count" END) AS BIGINT) DESC,
            "item" ASC, "channel" ASC
            LIMIT 1001""",
        r"""SELECT "item", "channel",
            SUM(CASE WHEN "gris_member_count" > 3 THEN 3 ELSE "gris_member_count" END) AS "gris_count"
            FROM (SELECT "item", "channel", COUNT(*) AS "gris_member_count"
            FROM "orders"
            WHERE "customer" IS NOT NULL AND "at" >= -9223372036854775807 AND "at" <= 1599955199999
            AND "channel" IN ('shop', 'unknown', 'web') AND "item" NOT IN ('null', 'x')
            GROUP BY "item", "channel", "customer") AS "gris_members"
            GROUP BY "item", "channel"
            ORDER BY SUM(CASE WHEN "gris_member_count" > 3 THEN 3 ELSE "gris_member_count" END) DESC,
            "item" ASC, "channel" ASC
            LIMIT 1001""",
        NESTED_PREFIX,
    ),
}


def one_line(sql: str) -> str:
    """Return a query that is broken into lines for people as it is sent."""
    return " ".join(sql.split())


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_text_becomes_the_structured_form(case: Accepted) -> None:
    """SQL is only another spelling of the structured form."""
    assert parse_sql(case.sql, POLICY) == case.form


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_each_engine_is_asked_a_query_written_afresh(case: Accepted) -> None:
    """Nothing of the text but its literals, quoted anew, reaches an engine."""
    resolution = resolved(case.sql)
    assert render(resolution, "duckdb") == one_line(case.duckdb)
    without_lengths = re.sub(r" AND length\(.*?\) <= 1024", "", one_line(case.duckdb))
    # Pinot stores no NULL: what it stores where a member is missing is left out.
    by_value = re.sub(r"(\"\w+\") IS NOT NULL", r"\1 <> 'null'", one_line(case.pinot or without_lengths))
    assert render(resolution, "pinot") == case.pinot_prefix + by_value


@pytest.mark.parametrize("case", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_text_has_the_fingerprint_that_it_always_had(case: Accepted) -> None:
    """Another fingerprint would be another release, with other noise and another charge, of every question."""
    digest = hashlib.sha256(canonical_bytes(resolved(case.sql).query)).hexdigest()
    assert digest[:16] == case.fingerprint


@pytest.mark.parametrize(
    ("plain", "parenthesised"),
    [
        ("score BETWEEN -1 AND 3", "score BETWEEN (-1) AND (3)"),
        ("score = 1", "((score)) = (1)"),
        ("score IN (1, 2)", "(score IN ((1), (2)))"),
        ("score > -1 AND score < 4", "(score > (-1)) AND ((score < 4))"),
    ],
)
def test_redundant_parentheses_say_nothing(plain: str, parenthesised: str) -> None:
    """Around values, columns and conditions alike."""
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
    assert parse_sql(f"{head} {plain} {tail}", POLICY) == parse_sql(f"{head} {parenthesised} {tail}", POLICY)


def test_the_longest_conjunction_is_parsed() -> None:
    """A text of a thousand conditions meets the limit of filters, not the end of the stack."""
    conditions = " AND ".join(f"score<>{i % 10}" for i in range(600))
    head, tail = "SELECT article_id, COUNT(*) FROM engagement WHERE", "GROUP BY article_id LIMIT 1"
    with pytest.raises(ValueError, match="at most 32 filters"):
        parse_sql(f"{head} {conditions} {tail}", POLICY)

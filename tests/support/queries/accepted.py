"""SQL that is accepted, and the questions that it asks."""

import datetime
from dataclasses import dataclass

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import AnyOf, Bound, In, Like, NotIn, Range
from dp_service.queries.structured import HistogramQuery

PINOT_PREFIX = (
    "SET minServerGroupTrimSize=-1; SET minSegmentGroupTrimSize=-1; SET minBrokerGroupTrimSize=-1; "
    "SET groupTrimThreshold=2000000000; SET numGroupsLimit=100000000; SET enableNullHandling=false; "
    "SET maxServerResponseSizeBytes=2147483647; SET ignoreMissingSegments=false; SET skipUnavailableServers=false; "
    "SET autoRewriteAggregationType=false; "
)
NESTED_PREFIX = (
    "SET useMultistageEngine=true; SET useLiteMode=false; SET usePhysicalOptimizer=false; "
    "SET useBrokerPruning=false; SET mseMinGroupTrimSize=-1; SET inferPartitionHint=false; " + PINOT_PREFIX
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
            LIMIT 1001""",
        r"""SELECT "article_id", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL
            AND "article_id" <> 'null' AND "country" = 'DE' AND "day" >= 17897 AND "day" <= 17927
            GROUP BY "article_id"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "article_id" ASC
            LIMIT 1001""",
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
    "a total of members": Accepted(
        "SELECT COUNT(DISTINCT member_id) AS n FROM engagement WHERE country = 'DE' ORDER BY n DESC LIMIT 7",
        HistogramQuery("engagement", (), Measure.DISTINCT_MEMBERS, (In("country", ("DE",)),), k=7),
        "e03155dc1101b96a",
        r"""SELECT COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "country" = 'DE'
            LIMIT 1""",
    ),
    "a total of events that are clipped": Accepted(
        "SELECT COUNT(*) FROM orders WHERE item = 'x'",
        HistogramQuery("orders", (), Measure.EVENTS, (In("item", ("x",)),)),
        "617fbb19cd587323",
        r"""SELECT COALESCE(CAST(SUM(CASE WHEN "gris_member_count" > 3 THEN 3
            ELSE "gris_member_count" END) AS BIGINT), 0) AS "gris_count"
            FROM (SELECT COUNT(*) AS "gris_member_count"
            FROM "orders"
            WHERE "customer" IS NOT NULL AND "at" >= -9223372036854775807 AND "at" <= 1599955199999
            AND "item" = 'x'
            GROUP BY "customer") AS "gris_members"
            LIMIT 1""",
        r"""SELECT COALESCE(SUM(CASE WHEN "gris_member_count" > 3 THEN 3 ELSE "gris_member_count" END), 0)
            AS "gris_count" FROM (SELECT COUNT(*) AS "gris_member_count"
            FROM "orders"
            WHERE "customer" IS NOT NULL AND "at" >= -9223372036854775807 AND "at" <= 1599955199999
            AND "item" = 'x'
            GROUP BY "customer") AS "gris_members"
            LIMIT 1""",
        NESTED_PREFIX,
    ),
    "alternatives and a pattern": Accepted(
        "SELECT cohort, COUNT(*) FROM engagement WHERE NOT (active AND article_id NOT LIKE '%it''s_%\\\\') "
        "GROUP BY cohort LIMIT 5",
        HistogramQuery(
            "engagement",
            ("cohort",),
            Measure.EVENTS,
            (AnyOf((NotIn("active", (True,)), Like("article_id", "%it's_%\\\\"))),),
            k=5,
        ),
        "7aa254b95dd02d78",
        r"""SELECT "cohort", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "cohort" <> 'null'
            AND ((regexp_full_match("article_id", '.*?it['']s..*\\', 's') AND "article_id" <> 'null')
            OR COALESCE("active", FALSE) = FALSE)
            AND length("cohort") <= 1024
            GROUP BY "cohort"
            ORDER BY COUNT(*) DESC, "cohort" ASC
            LIMIT 1001""",
        r"""SELECT "cohort", COUNT(*) AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "cohort" <> 'null'
            AND ((REGEXP_EXTRACT("article_id", '(?s-i)\A(?:(?>.*?it['']s.).*\\)\z') <> '' AND "article_id" <> 'null')
            OR "active" = FALSE)
            GROUP BY "cohort"
            ORDER BY COUNT(*) DESC, "cohort" ASC
            LIMIT 1001""",
    ),
    "a domain that conditions restrict": Accepted(
        "SELECT country, COUNT(DISTINCT member_id) FROM engagement WHERE country ILIKE '%r' OR country = 'AT' "
        "GROUP BY country",
        HistogramQuery(
            "engagement",
            ("country",),
            Measure.DISTINCT_MEMBERS,
            (AnyOf((Like("country", "%r", folds=True), In("country", ("AT",)))),),
        ),
        "a3f491a60213f6d2",
        r"""SELECT "country", COUNT(DISTINCT "member_id") AS "gris_count"
            FROM "engagement"
            WHERE "member_id" IS NOT NULL AND "country" IN ('AT', 'FR')
            GROUP BY "country"
            ORDER BY COUNT(DISTINCT "member_id") DESC, "country" ASC
            LIMIT 2""",
    ),
}

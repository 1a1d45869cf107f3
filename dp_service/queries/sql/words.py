"""The words of SQL: those with a meaning here, those of other dialects, and what is said of functions.

A message may repeat a word of SQL. Any other word of a refused text may be somebody's literal without its quotes.
"""

from __future__ import annotations

import re

from dp_service.queries.time_parts import TimePart

KEYWORDS = re.compile(
    r"""
      ALL | ANALYSE | ANALYZE | AND | ANTI | ANY | ARRAY | AS | ASC | ASOF | ASYMMETRIC
    | AUTHORIZATION | BETWEEN | BINARY | BOTH | BY | CASE | CAST | CHECK | CLUSTER | COLLATE
    | COLLATION | COLUMN | CONCURRENTLY | CONNECT | CONSTRAINT | CREATE | CROSS | CUBE
    | CURRENT | DAY | DEFAULT | DEFERRABLE | DESC | DESCRIBE | DISTINCT | DISTRIBUTE | DO
    | ELSE | END | ESCAPE | EXCEPT | EXCLUDE | EXISTS | EXPLAIN | FALSE | FETCH | FILTER | FINAL
    | FOR | FOREIGN | FORMAT | FREEZE | FROM | FULL | GENERATED | GLOB | GRANT | GROUP
    | GROUPING | HAVING | HOUR | IGNORE | ILIKE | IN | INITIALLY | INNER | INTERSECT
    | INTERVAL | INTO | IS | ISNULL | JOIN | LAMBDA | LATERAL | LEADING | LEFT | LIKE | LIMIT
    | LOCK | MAP | MATCH_CONDITION | MATCH_RECOGNIZE | MINUS | MINUTE | MONTH | NATURAL
    | NOT | NOTNULL | NULL | NULLS | OFFSET | ON | ONLY | OPTION | OR | ORDER | OUTER | OVER
    | OVERLAPS | PIVOT | PIVOT_LONGER | PIVOT_WIDER | PLACING | POSITIONAL | PREWHERE
    | PRIMARY | QUALIFY | RECURSIVE | REFERENCES | RESPECT | RETURNING | RIGHT | RLIKE | ROLLUP
    | ROW | ROWS | SAMPLE | SECOND | SELECT | SEMI | SET | SETS | SETTINGS | SHOW | SIMILAR | SOME
    | SORT | START | STRUCT | SUMMARIZE | SYMMETRIC | TABLE | TABLESAMPLE | THEN | TO | TOP
    | TOTALS | TRAILING | TRUE | TRY_CAST | UNION | UNIQUE | UNPIVOT | USING | VALUES
    | VARIADIC | VERBOSE | VIEW | WHEN | WHERE | WINDOW | WITH | WITHIN | XOR | YEAR
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Reserved words of SQL and its dialects, and those that begin a clause in one of them."""

NO_NAMES = re.compile(
    r"""
      ALL | AND | AS | ASC | BETWEEN | BY | CASE | CROSS | DESC | DISTINCT | ELSE | END | EXCEPT | EXISTS | FETCH | FOR
    | FROM | FULL | GROUP | HAVING | ILIKE | IN | INNER | INTERSECT | INTO | IS | JOIN | LEFT | LIKE | LIMIT | NATURAL
    | NOT | NULL | OFFSET | ON | OR | ORDER | OUTER | QUALIFY | RIGHT | SELECT | THEN | UNION | USING | WHEN | WHERE
    | WINDOW | WITH | XOR
    """,
    re.VERBOSE,
)
"""Words that are no name of a column without double quotes, whatever a policy lists."""

COUNTS_OF_MEMBERS = frozenset({"DISTINCTCOUNT", "APPROX_COUNT_DISTINCT", "DISTINCTCOUNTHLL"})
"""Functions that count distinct members or values, exactly or not: here they count exactly before noise is added."""
TRUNCATIONS = frozenset({"DATE_TRUNC", "DATETRUNC"})
"""The names of the function that divides times into buckets."""
PARTS = {
    "HOUR": TimePart.HOUR,
    "ISODOW": TimePart.WEEKDAY,
    **dict.fromkeys(("DAY", "DAYOFMONTH", "DAY_OF_MONTH"), TimePart.DAY),
    **dict.fromkeys(("WEEK", "WEEKOFYEAR", "WEEK_OF_YEAR"), TimePart.WEEK),
    **dict.fromkeys(("MONTH", "MONTHOFYEAR", "MONTH_OF_YEAR"), TimePart.MONTH),
    "QUARTER": TimePart.QUARTER,
}
"""Parts of a time, as functions and as words in EXTRACT."""
TWO_READINGS = dict.fromkeys(
    ("DOW", "DAYOFWEEK", "DAY_OF_WEEK", "WEEKDAY"),
    "a number of a weekday has two readings: write EXTRACT(ISODOW FROM column), of which Monday is 1 and Sunday is 7",
)
"""Parts that databases count in different ways, and what is written instead."""
PERCENTILE = re.compile(r"PERCENTILE(?:EST|TDIGEST|SMARTTDIGEST|KLL)?(?P<number>[0-9]{1,2})?")
"""Apache Pinot's names of a percentile in percent, as one function with its number in the name."""
QUANTILES = frozenset(
    {"QUANTILE", "QUANTILE_CONT", "QUANTILE_DISC", "APPROX_QUANTILE", "APPROX_PERCENTILE"}
    | {"PERCENTILE_CONT", "PERCENTILE_DISC", "PERCENTILE_APPROX"}
)
"""Functions of a column and a share between 0 and 1; those called PERCENTILE_CONT and _DISC also WITHIN GROUP."""
PARTS_OF_TEXTS = frozenset(
    {"LOWER", "LCASE", "UPPER", "UCASE", "LEFT", "SUBSTR", "SUBSTRING", "SPLIT_PART", "SPLITPART"}
)
"""Functions of a text whose result is grouped by."""
AGGREGATES = frozenset({"SUM", "AVG", "MEAN"})
"""Functions of a value column."""
_READ = frozenset(
    {
        *AGGREGATES,
        *PARTS_OF_TEXTS,
        "COUNT",
        "MIN",
        "MAX",
        "MEDIAN",
        "PERCENTILES",
        "CAST",
        "CASE",
        "WIDTH_BUCKET",
    }
    | {"IF", "IFF", "IIF", "COUNT_IF", "COUNTIF", "SUM_IF", "SUMIF", "AVG_IF", "AVGIF", "FLOOR"}
    | {"FUNNEL_COUNT", "STEPS", "CORRELATE_BY", "SETTINGS", "DATE_DIFF", "DATEDIFF"}
)
FUNNEL = "FUNNEL_COUNT"
"""Apache Pinot's function of members and steps, with the two of its arguments."""
DIFFERENCES = frozenset({"DATE_DIFF", "DATEDIFF"})
"""Functions of a length and two times."""
EXTRACTIONS = frozenset({"EXTRACT", "DATE_PART", "DATEPART"})
"""Functions of a part's name and a time."""

_ROUNDED = "leave it out and round what comes back"
_LEFT_OUT = "leave it out: an answer has no NULL but where it says so"
_MONTHS = "write DATE_TRUNC('month', column) to group, or a range of days to filter"
_YEARS = (
    "write DATE_TRUNC('year', column) to group, or column >= '2026-01-01' AND column < '2027-01-01' to filter"
)
_DAYS = "write DATE_TRUNC('day', column) to group, or a range of days to filter"
_TODAY = "write the day itself, as in DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00', or leave it out"
_OF_CASE = (
    "write COUNT(*) FILTER (WHERE condition) or SUM(CASE WHEN condition THEN value ELSE 0 END) with one "
    "condition"
)
_SKETCH = (
    "it returns a sketch of the data; write PERCENTILE(value, 50), which returns a cell of a public grid"
)
_SEVERAL = "it is of columns with several values in a row, which no policy lists"
_SUBQUERY = "a condition compares a column with values: ask for these first, and write them as a list"
_WINDOW = "order and compare the rows of the answer afterwards; LIMIT shows the first of a list"
_TEXTS = (
    "group by the column as it is, by LOWER(column), LEFT(column, n) or SPLIT_PART(column, '@', 2), or look the text "
    "up in a file that the policy names"
)
_BINS = "write FLOOR(column / 10) * 10, WIDTH_BUCKET(column, low, high, n) or DATE_TRUNC('day', column)"
_PATTERN = "write LIKE with % and _"
_SPREAD = "ask for COUNT, SUM, AVG or percentiles"
_CATALOGUE = "tables and columns are in the catalogue, which is free"
TOTALS = "ask for totals in a question of their own, with their own GROUP BY"

_FUNNELS = (
    "write FUNNEL_COUNT(STEPS(condition, condition, ..), CORRELATE_BY(member)): steps in any order of time"
)
_COHORTS = "write DATE_TRUNC('month', MIN(time)), DATE_DIFF('month', MIN(time), time), COUNT(DISTINCT member)"
REFUSED: dict[str, str] = {
    **dict.fromkeys(("ROUND", "CEIL", "CEILING", "TRUNC", "TRUNCATE", "FORMAT", "ABS"), _ROUNDED),
    **dict.fromkeys(("COALESCE", "IFNULL", "NVL", "ZEROIFNULL", "TRY_CAST", "CONVERT"), _LEFT_OUT),
    **dict.fromkeys(("TO_CHAR", "STRFTIME", "DATE_FORMAT", "MONTHNAME"), _MONTHS),
    "YEAR": _YEARS,
    **TWO_READINGS,
    **dict.fromkeys(("DAYNAME", "DATE", "EPOCH"), _DAYS),
    **dict.fromkeys(("DATETIMECONVERT", "TIMECONVERT", "TODATETIME", "FROMDATETIME", "TIMESTAMP"), _DAYS),
    **dict.fromkeys(("TIME_BUCKET", "DATE_BIN", "TIMESTAMP_TRUNC", "FROM_UNIXTIME", "AGO"), _DAYS),
    **dict.fromkeys(("DATE_ADD", "DATEADD", "DATE_SUB", "AGE"), _DAYS),
    **dict.fromkeys(("NOW", "GETDATE", "CURDATE", "SYSDATE", "LOCALTIME", "TODAY"), _TODAY),
    **dict.fromkeys(("TO_DATE", "TO_TIMESTAMP", "MAKE_DATE", "STRPTIME"), _TODAY),
    **dict.fromkeys(("NULLIF", "CASEWHEN", "GREATEST", "LEAST"), _OF_CASE),
    **dict.fromkeys(("CONCAT", "TRIM", "LENGTH", "REPLACE", "RIGHT"), _TEXTS),
    **dict.fromkeys(("SPLIT", "REGEXP_EXTRACT", "STRPOS", "POSITION"), _TEXTS),
    **dict.fromkeys(("MOD", "POWER", "SQRT", "LN", "LOG", "EXP"), _BINS),
    **dict.fromkeys(("REGEXP_LIKE", "REGEXP_MATCHES", "CONTAINS", "STARTS_WITH", "TEXT_MATCH"), _PATTERN),
    **dict.fromkeys(("JSON_MATCH", "ANY", "ALL", "SOME", "EXISTS", "IN_SUBQUERY", "LOOKUP"), _SUBQUERY),
    **dict.fromkeys(("INSUBQUERY", "INPARTITIONEDSUBQUERY", "IN_PARTITIONED_SUBQUERY"), _SUBQUERY),
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE"), _WINDOW),
    **dict.fromkeys(("FIRST_VALUE", "LAST_VALUE", "PERCENT_RANK", "CUME_DIST"), _WINDOW),
    **dict.fromkeys(("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"), _SPREAD),
    **dict.fromkeys(("CORR", "COVAR_POP", "COVAR_SAMP", "MODE", "SKEWNESS"), _SPREAD),
    **dict.fromkeys(("REGR_SLOPE", "KURTOSIS", "ANY_VALUE", "ARRAY_AGG", "STRING_AGG", "LIST"), _SPREAD),
    **dict.fromkeys(("GROUP_CONCAT", "LISTAGG", "HISTOGRAM", "FIRST", "LAST", "PRODUCT"), _SPREAD),
    **dict.fromkeys(("ROLLUP", "CUBE", "GROUPING"), TOTALS),
    **dict.fromkeys(("PERCENTILERAWEST", "PERCENTILERAWTDIGEST", "PERCENTILERAWKLL"), _SKETCH),
    **dict.fromkeys(("PERCENTILEMV", "PERCENTILEESTMV", "PERCENTILETDIGESTMV", "PERCENTILEKLLMV"), _SEVERAL),
    **dict.fromkeys(("MINMV", "MAXMV", "SUMMV", "COUNTMV", "DISTINCTCOUNTMV"), _SEVERAL),
    **dict.fromkeys(("VERSION", "CURRENT_SCHEMA", "CURRENT_DATABASE", "CURRENT_USER"), _CATALOGUE),
    **dict.fromkeys(("FUNNEL", "WINDOW_FUNNEL", "WINDOWFUNNEL"), _FUNNELS),
    **dict.fromkeys(("RETENTION", "COHORT"), _COHORTS),
    "COUNT_BIG": "write COUNT(*)",
    "OPTION": "OPTION(max_error=16) stands behind the whole statement, and the service decides all else",
}
"""Functions that are refused by name, and what is written instead."""

WITHOUT_PARENTHESES = {
    **dict.fromkeys(
        ("CURRENT_DATE", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_TIME", "INTERVAL"), _TODAY
    ),
    "ARRAY": "a list stands behind = ANY, as = ANY(ARRAY['a', 'b'])",
}
"""What is refused by name where a value or a column is expected, and what is written instead."""


def is_function(word: str) -> bool:
    """Return whether a name in capitals is that of a function that can be asked for."""
    return (
        word in _READ
        or word in COUNTS_OF_MEMBERS
        or word in TRUNCATIONS
        or word in EXTRACTIONS
        or word in PARTS
        or word in QUANTILES
        or PERCENTILE.fullmatch(word) is not None
    )


def is_read(word: str) -> bool:
    """Return whether a word, in any case of letters, is one that a question is written with."""
    upper = word.upper()
    return (
        NO_NAMES.fullmatch(upper) is not None
        or is_function(upper)
        or upper in ("TRUE", "FALSE", "DATE", "TIMESTAMP", "EXPLAIN", "PLAN", "FILTER")
    )


def is_word_of_sql(word: str) -> bool:
    """Return whether a word is one that SQL gives a meaning, in any case of letters."""
    upper = word.upper()
    return (
        KEYWORDS.fullmatch(upper) is not None
        or upper in ("DATE", "TIMESTAMP", "FIRST", "NEXT", "LAST", "PERCENT")
        or is_function(upper)
        or upper in REFUSED
        or upper in WITHOUT_PARENTHESES
    )

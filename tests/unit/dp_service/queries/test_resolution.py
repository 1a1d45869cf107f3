"""What a question resolves to: mechanism, sensitivity, domain, how many elements, and every refusal."""

import datetime

import pytest

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries import domains
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.filters import Bound, In, NotIn, Range, TimeRange
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.render import UnknownDialectError, render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import ColumnType, Consistency, CountNoise, MechanismName
from tests.support.queries.policies import POLICY, POLICY_TEXT, resolved


def ask(*dimensions: str, table: str = "engagement", k: int | None = None, **more: object) -> Resolution:
    """Resolve a question for distinct members."""
    query = HistogramQuery(table, dimensions, Measure.DISTINCT_MEMBERS, k=k, **more)  # type: ignore[arg-type]
    return resolve(query, POLICY, now=0)


@pytest.mark.parametrize(
    ("dimensions", "mechanism", "delta_l0"),
    [
        (("country",), MechanismName.KNOWN_LAP, 1),
        (("score",), MechanismName.KNOWN_GUMB, None),
        (("cohort",), MechanismName.UNK_LAP, 2),
        (("article_id",), MechanismName.UNK_GUMB, None),
        (("country", "score"), MechanismName.KNOWN_GUMB, None),
        (("country", "cohort"), MechanismName.UNK_LAP, 2),
        (("active", "cohort", "country"), MechanismName.UNK_LAP, 2),
        (("cohort", "article_id"), MechanismName.UNK_GUMB, None),
    ],
)
def test_the_mechanism_follows_from_what_is_known_of_the_dimensions(
    dimensions: tuple[str, ...], mechanism: MechanismName, delta_l0: int | None
) -> None:
    """A product is known if all its columns are, restricted if all are, and then by the product of the Deltas."""
    resolution = ask(*dimensions, k=3)
    assert (resolution.parameters.mechanism, resolution.parameters.delta_l0) == (mechanism, delta_l0)


def of_two_columns(first: str, second: str, *dimensions: str) -> Resolution:
    """Resolve a question about a table with the text columns `w` and `cohort`, of which the policy says this."""
    text = (
        "epsilon_per: 0.15\ndelta: 1e-10\ntables:\n  t:\n    member: m\n    measures: {distinct_members: true}\n"
        f"    columns:\n      w: {{type: string, group_by: true, {first}}}\n"
        f"      cohort: {{type: string, group_by: true, {second}}}\n"
    )
    query = HistogramQuery("t", dimensions or ("w", "cohort"), Measure.DISTINCT_MEMBERS, k=3)
    return resolve(query, parse_policy(text), now=0)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_domain_says_of_delta_the_query_enforces(dialect: str) -> None:
    """One of 50 values is asked for, so that a member is in one element: with no such condition it is in 50."""
    resolution = of_two_columns("domain: [a], delta: 50", "delta: 1")
    assert (MechanismName.UNK_LAP, 1) == (resolution.parameters.mechanism, resolution.parameters.delta_l0)
    quote = DIALECTS[dialect].quote
    assert f"{quote}w{quote} = 'a'" in render(resolution, dialect)


def test_a_domain_is_enforced_where_nothing_is_known_of_sensitivity() -> None:
    """A list hides what it leaves out, beside whatever column."""
    resolution = of_two_columns("domain: [a, b]", "filter: [in]")
    assert MechanismName.UNK_GUMB is resolution.parameters.mechanism
    assert "\"w\" IN ('a', 'b')" in render(resolution, "duckdb")
    assert (("a", "b"), None) == resolution.parameters.within


def numbers(first: int, number: int) -> str:
    """Return a domain of so many texts."""
    return f"domain: [{', '.join(f'v{i}' for i in range(first, first + number))}]"


@pytest.fixture
def short_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a query carry a hundred values: to read a hundred thousand takes seconds."""
    assert domains.MAXIMUM_ELEMENTS == 100_000
    monkeypatch.setattr(domains, "MAXIMUM_ELEMENTS", 100)


@pytest.mark.usefixtures("short_queries")
def test_a_domain_that_is_too_long_for_a_query_lowers_no_delta() -> None:
    """Domains of 102 values are not all written down; what is not is bounded by the stated Delta alone."""
    resolution = of_three_columns(f"{numbers(0, 52)}, delta: 70", f"{numbers(0, 50)}, delta: 60")
    # The shorter one is carried, the longer one counts with what is stated.
    assert 70 * 50 * 2 == resolution.parameters.delta_l0
    assert (False, True) == tuple(values is not None for values in resolution.parameters.within[:2])
    assert "v51" not in render(resolution, "duckdb")


@pytest.mark.usefixtures("short_queries")
def test_a_domain_that_is_too_long_and_states_no_delta_leaves_the_key_unrestricted() -> None:
    """Nothing else bounds in how many elements a member is."""
    resolution = of_three_columns(numbers(0, 60), f"{numbers(0, 50)}, delta: 60")
    assert (MechanismName.UNK_GUMB, None) == (resolution.parameters.mechanism, resolution.parameters.delta_l0)


def of_three_columns(first: str, second: str) -> Resolution:
    """Resolve a question by `w` and `cohort`, of which the policy says this, and `z`, of which a member has two."""
    second = f"{second}}}\n      z: {{type: string, group_by: true, delta: 2"
    return of_two_columns(first, second, "w", "cohort", "z")


@pytest.mark.parametrize(
    ("dimension", "expected"),
    [
        ("country", CountNoise.LAPLACE),
        ("score", CountNoise.GAUSSIAN),
        ("cohort", CountNoise.LAPLACE),
        ("article_id", CountNoise.GAUSSIAN),
    ],
)
def test_gaussian_counts_are_for_mechanisms_whose_counts_are_drawn_apart(
    dimension: str, expected: CountNoise
) -> None:
    """KnownLap and UnkLap are their Laplace noise; and unless the policy says so, no count is Gaussian."""
    gaussian = parse_policy("count_noise: gaussian" + POLICY_TEXT)
    query = HistogramQuery("engagement", (dimension,), Measure.DISTINCT_MEMBERS, k=2)
    assert resolve(query, gaussian, now=0).parameters.count_noise is expected
    assert resolve(query, POLICY, now=0).parameters.count_noise is CountNoise.LAPLACE


def test_deltas_multiply() -> None:
    """A member with two values in one column and three in another can be in six elements."""
    stated = POLICY_TEXT.replace("title: {type: string,", "title: {type: string, group_by: true, delta: 3,")
    query = HistogramQuery("engagement", ("cohort", "title"), Measure.DISTINCT_MEMBERS)
    assert resolve(query, parse_policy(stated), now=0).parameters.delta_l0 == 6


def test_a_known_domain_is_the_product_in_element_order() -> None:
    """The first dimension varies slowest; texts go by code point, numbers by size."""
    resolution = ask("country", "score", k=9)
    assert resolution.parameters.domain == tuple((c, s) for c in ("AT", "DE", "FR") for s in (-1, 0, 1))
    assert (resolution.parameters.d_bar, resolution.row_limit) == (None, 9)


def test_texts_are_in_order_of_code_points() -> None:
    """An engine that orders by UTF-16 would put U+10000 before U+FFFD."""
    domain = '["\\U00010000", "\\uFFFD", b, B]'
    policy = parse_policy(POLICY_TEXT.replace("[DE, FR, AT]", domain))
    query = HistogramQuery("engagement", ("country",), Measure.DISTINCT_MEMBERS)
    assert resolve(query, policy, now=0).parameters.domain == (("B",), ("b",), ("\ufffd",), ("\U00010000",))


def test_a_product_of_domains_has_a_limit() -> None:
    """100,000 combinations are answered, one more column is not."""
    column = f"{{type: int64, group_by: true, domain: {list(range(317))}}}"
    policy = parse_policy(POLICY_TEXT + f"      a: {column}\n      b: {column}\n")
    alone = HistogramQuery("views", ("a",), Measure.DISTINCT_MEMBERS, k=1)
    both = HistogramQuery("views", ("a", "b"), Measure.DISTINCT_MEMBERS, k=1)
    assert resolve(alone, policy, now=0).row_limit == 317
    with pytest.raises(QuestionError, match="at most 100000 combinations"):
        resolve(both, policy, now=0)


@pytest.mark.parametrize(
    ("dimension", "table", "k", "d_bar"),
    [
        ("article_id", "engagement", 1, 1000),
        ("article_id", "engagement", 100, 1000),
        # No more than max_k are shown, so no more are fetched.
        ("article_id", "engagement", 101, 1000),
        ("article_id", "engagement", 100_000, 1000),
        ("cohort", "engagement", None, 1000),
        ("cohort", "engagement", 101, 1000),
        ("item", "clicks", 50, 50),
        ("kind", "clicks", 50, 50),
    ],
)
def test_d_bar_is_declared_or_follows_k_only_where_the_price_does(
    dimension: str, table: str, k: int | None, d_bar: int
) -> None:
    """For UNK_LAP every k must be the same release, so d_bar may not depend on it."""
    resolution = ask(dimension, table=table, k=k)
    assert (resolution.parameters.d_bar, resolution.row_limit) == (d_bar, d_bar + 1)


@pytest.mark.parametrize(
    ("dimension", "table", "k", "expected"),
    [
        ("article_id", "engagement", None, "the price grows with it"),
        ("score", "engagement", None, "the price grows with it"),
        ("cohort", "engagement", 1001, "at most 1000 elements"),
        ("kind", "clicks", 51, "at most 50 elements"),
    ],
)
def test_a_k_that_cannot_be_shown_is_refused(
    dimension: str, table: str, k: int | None, expected: str
) -> None:
    """k is needed where it is paid for, and is at most what the mechanism can show."""
    with pytest.raises(QuestionError, match=expected) as refusal:
        ask(dimension, table=table, k=k)
    assert refusal.value.field == "k"


@pytest.mark.parametrize("dimension", ["score", "country"])
def test_more_than_a_known_domain_has_is_all_of_it(dimension: str) -> None:
    """Programs put a LIMIT under everything; it is the question for all three, at the price of all three."""
    more, all_of_it = (ask(dimension, table="engagement", k=k) for k in (10, 3))
    assert more.parameters.k == 3
    assert more == all_of_it


def with_max_k(header: str = "", table: str = "") -> Policy:
    """Return the policy with a `max_k` in its header, and more in the table `engagement`."""
    text = POLICY_TEXT.replace("tables:", f"{header}tables:")
    return parse_policy(text.replace("    data_version: v1\n", f"    data_version: v1\n{table}"))


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (with_max_k(), 100),
        (with_max_k("max_k: 40\n"), 40),
        (with_max_k("max_k: 40\n", "    d_bar: 30\n"), 30),
    ],
)
def test_a_limit_above_max_k_is_the_question_for_max_k(policy: Policy, shown: int) -> None:
    """LIMIT is an upper bound: whatever a BI tool sends is one question, and the service reports what was requested."""
    text = "SELECT article_id, COUNT(DISTINCT member_id) FROM engagement GROUP BY article_id LIMIT {}"
    within, above, far_above = (resolved(text.format(limit), policy) for limit in (shown, shown + 1, 50_000))
    assert shown == within.parameters.k
    assert within.parameters == above.parameters == far_above.parameters
    assert [None, shown + 1, 50_000] == [each.requested_k for each in (within, above, far_above)]


@pytest.mark.parametrize(("limit", "shown", "requested"), [(2, 2, None), (3, 2, 3), (50_000, 2, 50_000)])
def test_max_k_holds_over_a_known_domain_too(limit: int, shown: int, requested: int | None) -> None:
    """There the price grows with k as well."""
    resolution = resolve(
        HistogramQuery("engagement", ("score",), Measure.DISTINCT_MEMBERS, k=limit),
        with_max_k("max_k: 2\n"),
        now=0,
    )
    assert (shown, requested) == (resolution.parameters.k, resolution.requested_k)


@pytest.mark.parametrize(("dimension", "k"), [("cohort", 500), ("country", 3)])
def test_where_the_price_does_not_depend_on_k_max_k_says_nothing(dimension: str, k: int) -> None:
    """One list is released, and every k shows a part of it."""
    query = HistogramQuery("engagement", (dimension,), Measure.DISTINCT_MEMBERS, k=k)
    resolution = resolve(query, with_max_k("max_k: 1\n"), now=0)
    assert (k, None) == (resolution.parameters.k, resolution.requested_k)


def test_everything_that_policy_says_is_carried() -> None:
    """A resolution is complete: nothing downstream asks the policy again."""
    query = HistogramQuery("engagement", ("day", "country"), Measure.EVENTS, k=3, omit_counts=True)
    resolution = resolve(query, POLICY, now=0)
    assert resolution.parameters.tau == 5
    assert ask("country").parameters.tau == 1
    assert (resolution.parameters.k, resolution.parameters.with_counts) == (3, False)
    known = HistogramQuery("engagement", ("score",), Measure.EVENTS, k=2, omit_counts=True)
    assert resolve(known, POLICY, now=0).parameters == ReleaseParameters(
        mechanism=MechanismName.KNOWN_GUMB,
        epsilon_per=POLICY.currency.epsilon_per,
        delta=POLICY.currency.delta,
        tau=5,
        delta_l0=None,
        d_bar=None,
        k=2,
        with_counts=False,
        count_noise=CountNoise.LAPLACE,
        consistency=Consistency.KEYED,
        domain=((-1,), (0,), (1,)),
    )
    assert resolution.columns == (("day", ColumnType.DATE), ("country", ColumnType.STRING))
    assert (resolution.parameters.consistency, resolution.fixed_data_version) == (Consistency.KEYED, "v1")
    clicks = ask("kind", table="clicks")
    assert (clicks.parameters.consistency, clicks.fixed_data_version) == (Consistency.FRESH, None)
    assert resolution.paid_by.unit_id == POLICY.currency.unit_id


@pytest.mark.parametrize(
    "condition",
    [
        In("score", ("1",)),
        In("score", (True,)),
        NotIn("article_id", (1,)),
        In("active", (1,)),
        Range("score", Bound(datetime.date(2019, 1, 1)), None),
        Range("day", None, Bound(17897)),
    ],
)
def test_a_value_of_another_type_than_the_column_is_refused(condition: In | NotIn | Range) -> None:
    """Nothing is converted silently: engines would do it differently."""
    with pytest.raises(
        QuestionError, match=f"{condition.column}: expected (texts|integers|truth values|days) .in SQL"
    ) as refusal:
        ask("country", filters=(condition,))
    assert refusal.value.field == "filters"


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (HistogramQuery("nowhere", ("a",), Measure.EVENTS), Rule.TABLE),
        (HistogramQuery("engagement", ("nothing",), Measure.EVENTS), Rule.COLUMN),
        (HistogramQuery("engagement", ("member_id",), Measure.EVENTS), Rule.MEMBER_COLUMN),
        (HistogramQuery("clicks", ("user",), Measure.DISTINCT_MEMBERS), Rule.MEMBER_COLUMN),
        (HistogramQuery("engagement", ("secret",), Measure.EVENTS), Rule.GROUP_BY),
        (HistogramQuery("clicks", ("kind",), Measure.EVENTS), Rule.MEASURE),
        (HistogramQuery("views", ("item",), Measure.EVENTS), Rule.MEASURE),
        (
            HistogramQuery(
                "views",
                ("item",),
                Measure.DISTINCT_MEMBERS,
                time_range=TimeRange(datetime.datetime(2019, 1, 1, tzinfo=datetime.UTC), None),
            ),
            Rule.TIME_COLUMN,
        ),
        (HistogramQuery("views", ("item",), Measure.DISTINCT_MEMBERS, (In("item", ("a",)),)), Rule.FILTER),
        (
            HistogramQuery("views", ("item",), Measure.DISTINCT_MEMBERS, (In("user", ("a",)),)),
            Rule.MEMBER_COLUMN,
        ),
        (HistogramQuery("engagement", ("day",), Measure.EVENTS, (In("cohort", ("a",)),)), Rule.FILTER),
        (HistogramQuery("engagement", ("day",), Measure.EVENTS, (In("title", ("a",)),)), Rule.FILTER),
    ],
)
def test_what_the_policy_does_not_list_is_refused_by_rule(question: HistogramQuery, rule: Rule) -> None:
    """Every refusal names its rule."""
    with pytest.raises(RefusedByPolicyError) as refusal:
        resolve(question, POLICY, now=0)
    assert refusal.value.rule is rule


def test_a_refusal_does_not_tell_whether_a_column_exists() -> None:
    """Columns outside the policy are refused with one message whatever the engine may hold."""
    messages = set()
    for name in ("salary", "nothing"):
        with pytest.raises(RefusedByPolicyError) as refusal:
            ask(name)
        messages.add(str(refusal.value).replace(name, "NAME"))
    assert messages == {
        "the policy lists no column with that name for the table engagement; "
        "it lists active, article_id, cohort, country, day, score, shown, title"
    }


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            HistogramQuery("engagment", ("a",), Measure.EVENTS),
            'no table "engagment"; did you mean engagement\\?',
        ),
        (HistogramQuery("nowhere", ("a",), Measure.EVENTS), "it lists clicks, engagement, orders, views"),
        (HistogramQuery("a' OR 1", ("a",), Measure.EVENTS), "no table with that name; it lists"),
        (
            HistogramQuery("engagement", ("Country",), Measure.EVENTS),
            'no column "Country" .* did you mean country\\?',
        ),
        (
            HistogramQuery("engagement", ("title",), Measure.EVENTS),
            "title: .* grouping .* allows active, article_id",
        ),
        (
            HistogramQuery("engagement", ("member_id",), Measure.EVENTS),
            "member_id: the member column may be counted",
        ),
        (
            HistogramQuery("engagement", ("country",), Measure.EVENTS, (In("title", ("a",)),)),
            "title: the policy does not allow =, IN, LIKE and IS NULL on this column; it allows <>, NOT IN",
        ),
        (
            HistogramQuery("engagement", ("country",), Measure.EVENTS, (In("secret", ("a",)),)),
            "secret: .* it allows no conditions",
        ),
        (
            HistogramQuery("clicks", ("kind",), Measure.EVENTS),
            r"not offer COUNT\(\*\) for the table clicks; it offers COUNT\(DISTINCT user\)",
        ),
    ],
)
def test_a_refusal_names_what_was_asked_and_what_may_be(question: HistogramQuery, message: str) -> None:
    """In the asker's words and the names of the policy, which the catalogue shows to everyone."""
    with pytest.raises(RefusedByPolicyError, match=message):
        resolve(question, POLICY, now=0)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            In("country", ("Germany",)),
            "country: expected a value of the column's domain, which has AT, DE, FR",
        ),
        (In("country", ("a", "b")), "country: expected a value of the column's domain"),
        (In("score", (7,)), "score: expected a value of the column's domain, which has -1, 0, 1"),
    ],
)
def test_values_outside_a_listed_domain_are_refused_before_they_cost_anything(
    condition: In, message: str
) -> None:
    """The column and its domain are named, and the value, a literal, is not repeated."""
    with pytest.raises(QuestionError, match=message) as refusal:
        ask("article_id", filters=(condition,), k=3)
    assert "Germany" not in str(refusal.value)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (
            In("country", ("AT", "Germany", "Germany")),
            "country: 1 of 2 values are not in the column's domain",
        ),
        (In("score", (7, 8, 0)), "score: 2 of 3 values .*; the domain has -1, 0, 1"),
    ],
)
def test_values_that_no_answer_could_show_are_refused_where_the_column_is_grouped_by(
    condition: In, message: str
) -> None:
    """The answer would not have them, as if their count were 0; as a mere condition they mean what they say."""
    with pytest.raises(QuestionError, match=message) as refusal:
        ask(condition.column, "cohort", filters=(condition,), k=3)
    assert "Germany" not in str(refusal.value)
    ask("cohort", filters=(condition,), k=3)
    ask(condition.column, filters=(NotIn(condition.column, condition.values),), k=3)


@pytest.mark.parametrize(
    "conditions",
    [
        (In("country", ("Germany",)), In("country", ("AT", "Germany"))),
        (In("secret", ("a",)), NotIn("secret", ("a",))),
        (In("cohort", ("a",)), In("secret", ("a",))),
    ],
    ids=["other values", "another operator", "another column"],
)
def test_two_conditions_are_refused_alike_in_either_order(conditions: tuple[In | NotIn, ...]) -> None:
    """So two spellings of a question are refused with the same words, of whatever the conditions differ in."""
    messages = set()
    for filters in (conditions, conditions[::-1]):
        with pytest.raises((QuestionError, RefusedByPolicyError)) as refusal:
            ask("country", "cohort", filters=filters, k=3)
        messages.add(str(refusal.value))
    assert len(messages) == 1


def test_a_question_in_sql_without_limit_is_told_what_to_add() -> None:
    """Who asks in SQL knows LIMIT, and not the field of a message."""
    text = "SELECT article_id, COUNT(*) FROM engagement GROUP BY article_id"
    with pytest.raises(QuestionError, match=r"add ORDER BY \.\. DESC LIMIT n") as refusal:
        resolved(text)
    assert refusal.value.field == "sql"
    with pytest.raises(QuestionError, match="at most 1000 elements"):
        resolved(f"{text} LIMIT 100000".replace("article_id", "cohort"))


def test_an_unknown_dialect_is_refused() -> None:
    """Only engines whose quoting is known are written for."""
    with pytest.raises(UnknownDialectError, match="duckdb, pinot"):
        render(ask("country"), "mysql")

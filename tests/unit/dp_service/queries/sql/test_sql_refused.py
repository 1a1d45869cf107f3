"""SQL texts that are refused, each with its reason; no reason repeats a literal."""

import pytest

from dp_service.queries.errors import QuestionError, RefusedByPolicyError, Rule
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql, with_places
from tests.support.queries.policies import POLICY
from tests.support.queries.refused import BY_POLICY, MALFORMED, where


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_text_outside_the_subset_is_refused_with_its_reason(text: str, reason: str) -> None:
    """Whatever is not expressly accepted is refused, and named."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=reason):
        parse_sql(text, POLICY)


@pytest.mark.parametrize(("text", "rule"), BY_POLICY.values(), ids=BY_POLICY.keys())
def test_a_question_that_the_policy_forbids_is_refused_by_rule(text: str, rule: Rule) -> None:
    """The error names the rule, and nothing of what the engine might hold beyond the policy."""
    with pytest.raises(RefusedByPolicyError) as refusal:
        resolve(parse_sql(text, POLICY), POLICY, now=0)
    assert refusal.value.rule is rule


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT COUNT(*),\n  nope FROM engagement GROUP BY nope", "line 2, column 3"),
        (
            "SELECT COUNT(DISTINCT member_id),\n member_id FROM engagement GROUP BY member_id",
            "line 2, column 2",
        ),
        ("SELECT COUNT(*) FROM engagement\nWHERE nope = 1", "line 2, column 7"),
    ],
)
def test_a_column_that_may_not_be_asked_for_is_pointed_at(text: str, place: str) -> None:
    """Where it stands, on whatever line, though the message does not repeat it."""
    with pytest.raises(RefusedByPolicyError, match=f"^{place}: ") as refusal:  # noqa: PT012 - both refuse
        query = parse_sql(text, POLICY)
        with_places(text, POLICY, lambda: resolve(query, POLICY, now=0))
    assert "nope" not in str(refusal.value)


@pytest.mark.parametrize(
    "condition",
    [
        "article_id = 'XYZZY' OR 1 = 'XYZZY'",
        "day >= 'XYZZY'",
        "score = 'XYZZY'",
        "article_id = XYZZY",
        "article_id = 'XYZZY' AND",
        "article_id = U&'XYZZY'",
        "salary = 'XYZZY'",
        "country = 'XYZZY'",
        "country IN ('XYZZY', 'YZZYX')",
        "member_id = 'XYZZY'",
        "article_id = 'XYZZY' AND article_id = 'YZZYX'",
        "article_id = '\0XYZZY'",
    ],
)
def test_no_error_repeats_what_was_asked(condition: str) -> None:
    """Errors end up in logs and must not carry anyone's filters, not even as the cause of an exception."""
    with pytest.raises((QuestionError, RefusedByPolicyError)) as refusal:
        resolve(parse_sql(where(condition), POLICY), POLICY, now=0)
    error = refusal.value
    assert "xyzzy" not in str(error).lower()
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None

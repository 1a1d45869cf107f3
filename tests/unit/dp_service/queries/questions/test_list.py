"""SQL as tools and people write it: each text is answered as what it means, or refused with what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from pinot_connector.liveness import is_liveness_check

HERE = Path(__file__).parent
TEXTS: list[dict[str, Any]] = yaml.safe_load((HERE / "texts.yaml").read_text())
POLICY = parse_policy((HERE / "policy.yaml").read_text())
NOW = 1_790_000_000
VERDICTS = {"same_as", "answered", "free", "later", "refused"}
SHOWN = ("dimensions", "measure", "aggregates", "quantiles", "having", "ordered_by")


def of_verdict(verdict: str) -> list[dict[str, Any]]:
    """Return the texts that have a verdict, but those that are not answered yet."""
    return [each for each in TEXTS if verdict in each and "open" not in each]


def title(entry: dict[str, Any]) -> str:
    """Return a name of a test: the text in one line."""
    return f"{entry['tool']}: {' '.join(entry['text'].split())[:70]}"


def asked(text: str) -> HistogramQuery:
    """Return the question of a text that the policy allows."""
    query = parse_sql(text, POLICY)
    assert resolve(query, POLICY, now=NOW)
    return query


def meaning(query: HistogramQuery) -> tuple[object, ...]:
    """Return what a question asks and shows, whatever its order of columns and names."""
    # A number of elements that no list has, and one of a total, say nothing.
    k = query.k if query.dimensions and (query.k or 0) < 100_000 else None
    form = canonical_bytes(resolve(query, POLICY, now=NOW).query)
    return (form, k, *(getattr(query, name) for name in SHOWN))


def test_each_text_has_one_verdict_and_stands_once() -> None:
    """Which texts have a sound meaning was decided before they were read."""
    assert len({each["text"] for each in TEXTS}) == len(TEXTS)
    assert all(len(VERDICTS & set(each)) == 1 for each in TEXTS)


@pytest.mark.parametrize("entry", of_verdict("same_as"), ids=title)
def test_a_text_asks_what_it_means(entry: dict[str, Any]) -> None:
    """The same question as the plain text, so the same release: one is a free repeat of the other."""
    assert meaning(asked(entry["same_as"])) == meaning(asked(entry["text"]))


@pytest.mark.parametrize("entry", of_verdict("answered"), ids=title)
def test_a_text_that_no_plain_one_says_is_answered(entry: dict[str, Any]) -> None:
    """Conditions joined by OR, patterns, orders."""
    assert asked(entry["text"])


@pytest.mark.parametrize("entry", of_verdict("refused"), ids=title)
def test_a_text_without_a_private_meaning_is_refused_with_a_way_out(entry: dict[str, Any]) -> None:
    """The message has the construct and what to write instead."""
    with pytest.raises((QuestionError, RefusedByPolicyError)) as refusal:
        asked(entry["text"])
    message = str(refusal.value).lower()
    assert [] == [word for word in entry["refused"] if str(word).lower() not in message]


@pytest.mark.parametrize("entry", of_verdict("free"), ids=title)
def test_what_needs_no_release_is_known_as_such(entry: dict[str, Any]) -> None:
    """Columns alone, values of listed domains, and the price; clients answer SELECT 1 themselves."""
    if entry["free"] in ("columns", "elements"):
        assert asked(entry["text"]).free == entry["free"]
    elif entry["free"] == "price":
        assert asked(entry["text"]).explained
    else:
        assert is_liveness_check(entry["text"])


@pytest.mark.parametrize("entry", [each for each in TEXTS if {"later", "open"} & set(each)], ids=title)
def test_what_is_not_answered_yet_is_refused_where_it_stands(entry: dict[str, Any]) -> None:
    """By line and column, and never as another question."""
    with pytest.raises((QuestionError, RefusedByPolicyError), match=r"line \d+, column \d+|expected"):
        asked(entry["text"])

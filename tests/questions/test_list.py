"""The list itself: each text has one verdict, and what it is the same as is a question that the policy allows."""

from pathlib import Path

import yaml

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql

HERE = Path(__file__).parent
TEXTS = yaml.safe_load((HERE / "texts.yaml").read_text())


def test_each_text_has_one_verdict_and_what_it_is_the_same_as_is_allowed() -> None:
    """Otherwise the two would be equal in that neither is answered."""
    policy = parse_policy((HERE / "policy.yaml").read_text())
    verdicts = {"same_as", "answered", "free", "later", "refused"}
    assert len({each["text"] for each in TEXTS}) == len(TEXTS)
    assert all(len(each) == 3 and len(verdicts & set(each)) == 1 for each in TEXTS)
    for plain in {each["same_as"] for each in TEXTS if "same_as" in each}:
        assert resolve(parse_sql(plain, policy), policy, now=1_790_000_000)

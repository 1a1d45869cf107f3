"""What the comments of a drafted policy advise can be followed: each advice leads to a policy that is sound."""

from __future__ import annotations

import re

import duckdb
import pytest

from dp_service.queries.policy import Policy, parse_policy
from dp_service.releases.kinds import require_usable
from gris_cli.__main__ import main

COLUMNS = (
    "1000 + hash(i) % 300 * 7 AS customer_id, TIMESTAMP '2026-01-01' + INTERVAL (i % 90) DAY AS at, "
    "'P-' || hash(i, 1) % 1200 AS product, CASE WHEN i % 3 > 0 THEN (5 + i % 100)::DOUBLE / 4 END AS price, "
    "uuid()::VARCHAR AS session_id"
)

BOUNDS = [
    ("most_units: 50", "most_units: 100"),
    (r"units: 10\b", "units: 20"),
    ("longest_list: 75", "longest_list: 150"),
    ("product: 16", "product: 64"),
    (r" rows: \d+", " rows: 1"),
    (r"lower: 0, upper: \d+, row_lower", "lower: 0, upper: 8, row_lower"),
    (r"row_upper: \d+", "row_upper: 8"),
    (r", to: 2026-\d\d-01", ", refresh: day"),
]
"""Edits that comments on bounds suggest, as a pattern and its replacement."""

COMMON = [
    ("zone: UTC", "zone: Europe/Berlin"),
    ("product: {", "product: {domain: [P-1, P-2], "),
    ("product: {", "product: {null_value: NONE, "),
    ("product: {", "product: {nulls: keep, "),
    ("# session_id:", "session_id:"),
]
NAMES = [
    ("product: {", "product: {delta: 1, "),
    ("zone: UTC", "zone: UTC, refresh: day"),
    ("tau: 5", "tau: 50"),
]

KEYS = {
    "contributions",
    "values",
    "domain",
    "buckets",
    "zone",
    "from",
    "to",
    "drop",
    "refresh: day",
    "null_value: NONE",
    "nulls: keep",
    "rows",
    "delta: 1",
    "--learn-before",
}
"""What comments quote as text of a policy: each is a key that the draft has, or is followed below."""


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the drafts, by rows and by names, of orders of customers who have many products each."""
    folder = tmp_path_factory.mktemp("drafts")
    data = folder / "orders.parquet"
    with duckdb.connect() as connection:
        connection.sql(f"SELECT {COLUMNS} FROM range(12000) AS given(i)").write_parquet(str(data))  # noqa: S608
    for name, flags in {"rows": [], "names": ["--names-only"]}.items():
        assert main(["draft", "--data", str(data), "--out", str(folder / name), *flags]) == 0
    return {name: (folder / name).read_text() for name in ("rows", "names")}


def served_after(text: str, pattern: str, new: str) -> Policy:
    """Edit a draft outside of its comments, and return the policy; one that cannot be served is an error."""
    lines = text.splitlines()
    followed = [
        line if line.lstrip().startswith("#") and not pattern.startswith("#") else re.sub(pattern, new, line)
        for line in lines
    ]
    assert followed != lines
    policy = parse_policy("\n".join(followed))
    require_usable(policy)
    return policy


@pytest.mark.parametrize(("pattern", "new"), COMMON + BOUNDS)
def test_advice_of_a_draft_by_rows_can_be_followed(drafts: dict[str, str], pattern: str, new: str) -> None:
    """Each suggested edit leaves a policy that can be served."""
    assert served_after(drafts["rows"], pattern, new).tables


@pytest.mark.parametrize(("pattern", "new"), COMMON + NAMES)
def test_advice_of_a_draft_by_names_can_be_followed(drafts: dict[str, str], pattern: str, new: str) -> None:
    """Each suggested edit leaves a policy that can be served."""
    assert served_after(drafts["names"], pattern, new).tables


@pytest.mark.parametrize("name", ["rows", "names"])
def test_comments_quote_known_keys_alone(drafts: dict[str, str], name: str) -> None:
    """A new key in a comment needs an edit above that follows it."""
    text = drafts[name]
    comments = " ".join(line.lstrip(" #") for line in text.splitlines() if line.lstrip().startswith("#"))
    quoted = {each for each in re.findall(r"`([^`]+)`", comments) if not each.startswith("gris ")}
    assert quoted <= KEYS

"""`gris check` says of which question of a table the noise is largest, by the policy alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dp_service.queries.policy import parse_policy
from gris_cli.__main__ import main
from gris_cli.policy.worst_case import worst_cases


def text_of(measures: str, typical: int = 32) -> str:
    """Return a policy of one table whose members typically have so many pages."""
    return f"""
epsilon_per: 1
delta: 1e-9
count_noise: gaussian
tables:
  t:
    member: m
    contributions: {{bound: in_query, units: 20}}
    measures: {measures}
    columns:
      page: {{type: string, group_by: true, typical: {typical}}}
      land: {{type: string, group_by: true, domain: [AT, DE], typical: 1}}
      wide: {{type: string, group_by: true, domain: [{", ".join(f"w{place}" for place in range(400))}], typical: 2}}
"""


@pytest.mark.parametrize(
    ("measures", "typical", "columns"),
    [
        ("{distinct_members: true}", 32, ("page", "wide")),
        # Delta * ceil(rows / Delta)^2 is largest at one of its ends.
        ("{rows: 100}", 32, ()),
        ("{rows: 3}", 32, ("page", "wide")),
    ],
)
def test_the_largest_noise_is_of_a_total_or_of_most_elements(
    measures: str, typical: int, columns: tuple[str, ...]
) -> None:
    """Of rows, few elements have a large share of a member's each."""
    policy = parse_policy(text_of(measures, typical))
    (case,) = worst_cases(policy.tables[0], policy)
    assert set(case.columns) == set(columns)
    assert case.information == 20


def test_noise_grows_with_what_is_typical() -> None:
    """Four times as many elements of a member are twice the noise."""
    few, many = (parse_policy(text_of("{distinct_members: true}", typical)) for typical in (8, 32))
    (of_few,), (of_many,) = (list(worst_cases(each.tables[0], each)) for each in (few, many))
    assert of_many.mean_error == pytest.approx(2 * of_few.mean_error, rel=0.01)


def test_each_measure_has_a_worst_case_in_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As text and as JSON."""
    path = tmp_path / "policy.yaml"
    path.write_text(text_of("{distinct_members: true, rows: 100}"))
    assert main(["check", str(path), "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert [each["measure"] for each in table["worst_cases"]] == ["distinct_members", "events"]
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.count("worst case") == 2

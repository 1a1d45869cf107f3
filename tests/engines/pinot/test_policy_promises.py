"""`gris check --pinot-broker`: a real Pinot finds what DuckDB finds in the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deploy.pinot.cluster import PinotCluster
from examples.load import TABLES
from gris_cli.__main__ import main

POLICY = """
epsilon_per: 1
delta: 1e-2
blocks: {name: app, values: [RUMORS_LINE_BOT, DEVELOPMENT_BACKEND]}
tables:
  cofacts_feedback:
    member: member_id
    block: app
    measures: {distinct_members: true, events: {tau: 1, tau_is: assumed}}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true, delta: 1}
      cohort: {type: string, group_by: true, delta: 1}
      score: {type: int64, group_by: true, domain: [1, -1, 0], delta: 2}
      app: {type: string, group_by: true, filter: [in], delta: 1000}
      day: {type: date, group_by: true, delta: 3}
"""


def test_the_promises_of_a_policy_are_counted_on_pinot(
    loaded_pinot: PinotCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, because some are broken; what is kept and what is not is what the Parquet file says too."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    check = ["check", str(path), "--json"]
    assert main([*check, "--data", f"cofacts_feedback={TABLES['cofacts_feedback']}"]) == 1
    in_file = json.loads(capsys.readouterr().out)["data"][0]["promises"]
    urls = ("--pinot", loaded_pinot.controller_url, "--pinot-broker", loaded_pinot.broker_url)
    assert main([*check, *urls]) == 1
    (on_pinot,) = json.loads(capsys.readouterr().out)["promises"]
    assert "cofacts_feedback" == on_pinot["table"]
    compared = ("key", "promised", "found", "column", "is_kept")
    assert [[each[key] for key in compared] for each in in_file] == [
        [each[key] for key in compared] for each in on_pinot["promises"]
    ]
    assert {True, False} == {each["is_kept"] for each in on_pinot["promises"]}
    assert [2] == [each["found"] for each in on_pinot["promises"] if each["key"] == "block"]
    assert main([*check[:-1], *urls]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert "cofacts_feedback, as the engine has it; true counts, for the owner alone" in printed
    assert "and some have more than 1" in printed


ASSUMED = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  cofacts_feedback:
    member: member_id
    measures: {distinct_members: true}
    contributions: {bound: assumed, delta: 3, units: 20}
    columns:
      member_id: {type: string}
      article_id: {type: string, group_by: true}
      score: {type: int64, group_by: true}
"""


def test_an_assumed_bound_of_several_columns_is_counted_on_pinot(
    loaded_pinot: PinotCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Articles and scores together, which Pinot counts as one text; more than articles alone."""
    path = tmp_path / "policy.yaml"
    path.write_text(ASSUMED)
    check = ["check", str(path), "--json"]
    assert main([*check, "--data", f"cofacts_feedback={TABLES['cofacts_feedback']}"]) == 1
    (in_file,) = json.loads(capsys.readouterr().out)["data"][0]["promises"]
    urls = ("--pinot", loaded_pinot.controller_url, "--pinot-broker", loaded_pinot.broker_url)
    assert main([*check, *urls]) == 1
    (on_pinot,) = json.loads(capsys.readouterr().out)["promises"][0]["promises"]
    assert ("contributions.delta", "article_id, score") == (on_pinot["key"], on_pinot["column"])
    assert in_file["found"] == on_pinot["found"]

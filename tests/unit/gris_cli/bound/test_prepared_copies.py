"""Tables that a policy says are bounded copies, beside their files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from gris_cli.__main__ import main

POLICY = """\
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  visits:
    member: who
    contributions: {bound: prepared, delta: 2, units: 20, min_count: 1, elements: [what], period: all}
    measures: {distinct_members: true}
    columns:
      who: {type: int64}
      what: {type: int64, group_by: true}
"""
BUDGET = "accounts: [{path: [demo], limit: {information: 3000, calls: 100}}]\n"


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return a folder with a policy, budgets, a table, and two bounded copies of it."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "budget.yaml").write_text(BUDGET)
    rows = "SELECT range % 7 AS who, range % 3 AS what FROM range(100)"
    duckdb.execute("COPY (FROM (" + rows + ")) TO ?", [str(tmp_path / "visits.parquet")])
    for typical in (1, 2):
        columns = ("--member", "who", "--elements", "what", "--table", "visits", "--typical", str(typical))
        out = tmp_path / f"bounded{typical}.parquet"
        assert main(["bound", "--input", str(tmp_path / "visits.parquet"), *columns, "--out", str(out)]) == 0
    capsys.readouterr()
    return tmp_path


REFUSED = {
    "visits.parquet": "a prepared bounded copy by what, and visits.parquet is none that gris bound made",
    "bounded1.parquet": "bounded1.parquet is another bounded copy than the policy says the table is: typical is 1 in",
}


def test_a_policy_is_sound_beside_the_copy_that_it_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made with the same arguments."""
    data = f"visits={folder / 'bounded2.parquet'}"
    assert main(["check", str(folder / "policy.yaml"), "--data", data]) == 0
    assert "true counts, for the owner alone" in capsys.readouterr().out


@pytest.mark.parametrize("file", REFUSED)
def test_a_file_that_is_no_such_copy_is_wrong_usage(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """For the check and for services that start, by the table, the file and what differs."""
    policy, data = str(folder / "policy.yaml"), f"visits={folder / file}"
    budget = ("--budget-config", str(folder / "budget.yaml"))
    ports = ("--dp-port", "0", "--budget-port", "0", "--admin-port", "0")
    for command in (("check", policy), ("serve", "--policy", policy, *budget, *ports)):
        assert main([*command, "--data", data]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "--data visits: " in said
        assert REFUSED[file] in said


@pytest.mark.usefixtures("starts_processes")
def test_a_question_of_a_file_that_is_no_such_copy_is_wrong_usage(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With exit code 2, as for other files that cannot be used."""
    files = ("--policy", str(folder / "policy.yaml"), "--budget-config", str(folder / "budget.yaml"))
    question = ("--data", f"visits={folder / 'visits.parquet'}", "--table", "visits", "--by", "what")
    kept = ("--directory", str(folder / "kept"), "--account", "demo")
    assert main(["ask", "--embedded", *files, *kept, *question]) == 2
    assert f"usage: --data: the policy says that the table is {REFUSED['visits.parquet']}" in " ".join(
        capsys.readouterr().err.split()
    )

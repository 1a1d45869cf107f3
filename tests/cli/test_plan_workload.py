"""`gris plan workload`: what it says of queries is what the service says, and how far budgets go."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from gris_cli.__main__ import main
from gris_data.errors import InputError
from gris_lab.workload import MONTH_DAYS, Lasting, Limit, Renewed, carried, queries_of
from pinot_connector.budgets import Cost
from pinot_connector.results import explanation_of
from tests.support.command_line import run_json, run_text
from tests.support.dp_server import serving

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "examples" / "policy.yaml"
DASHBOARD = """-- A dashboard.

-- Articles of the quarter
SELECT article_id, COUNT(DISTINCT member_id) FROM cofacts_feedback
WHERE day >= '2019-01-01' GROUP BY article_id ORDER BY 2 DESC LIMIT 20;
/* Readers by program */ SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY app;
select app as program, count(distinct member_id) as readers from cofacts_feedback group by 1;
SELECT COUNT(DISTINCT member_id) FROM cofacts_feedback WHERE cohort IN ('a;b', 'it''s --') -- not its end;
;
  SELECT member_id, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP BY member_id;
SELECT 1;
EXPLAIN SELECT COUNT(DISTINCT member_id) FROM cofacts_feedback;
SELECT cohort FROM cofacts_feedback LIMIT 0;
SELECT cohort, MEDIAN(score) FROM cofacts_feedback GROUP BY cohort
"""

SOME = "SELECT app FROM cofacts_feedback LIMIT 0"


def planned(capsys: pytest.CaptureFixture[str], folder: Path, sql: str, *flags: object) -> Any:
    """Return what the command prints of a file with this text."""
    file = folder / "dashboard.sql"
    file.write_text(sql)
    return run_json(capsys, "plan", "workload", file, *(flags or ("--policy", POLICY)))


async def estimates(texts: list[str]) -> list[dp_pb2.Estimate]:
    """Return what dp_service itself says of questions."""
    key = NoiseKey(bytes(32))
    served = ServedPolicy(usable_policy(POLICY.read_bytes(), "policy", key))
    servicer = DpServicer(served, KeySet(key), Environment(lambda: 1_800_000_000.0, bytes))
    async with serving(servicer) as dp:
        asked = [dp_pb2.EstimateCostRequest(question=question_pb2.Question(sql=each)) for each in texts]
        return [(await dp.EstimateCost(each)).estimate for each in asked]


async def test_price_and_words_are_those_of_the_service(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing is priced or said a second time: cost and statements are those of EstimateCost."""
    rows = planned(capsys, tmp_path, DASHBOARD)["queries"]
    texts = [each.text for each in queries_of(DASHBOARD)]
    for number, estimate in zip((0, 1, 3), await estimates([texts[0], texts[1], texts[3]]), strict=True):
        said = json.loads(json.dumps(explanation_of(estimate).to_dict()))
        assert {name: value for name, value in said.items() if name != "queries"} == rows[number][
            "explanation"
        ]
        assert said["worst_case_cost"] == rows[number]["cost"]


def test_what_asks_the_same_is_paid_once_and_what_is_free_is_free(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two panels write one question in two ways; EXPLAIN and LIMIT 0 cost nothing, and SELECT 1 asks nothing."""
    found = planned(capsys, tmp_path, DASHBOARD)
    rows = {row["line"]: row for row in found["queries"]}
    assert [4, 6, 7, 8, 10, 12, 13, 14] == list(rows)
    assert (6, None) == (rows[7]["repeats"], rows[7]["cost"])
    assert [False, True, True] == [rows[line]["free"] for line in (7, 12, 13)]
    assert ("Articles of the quarter", "Readers by program", "") == tuple(
        rows[line]["title"] for line in (4, 6, 8)
    )
    (cost,) = found["costs"]
    assert (41 + 4 + 1, 1) == (cost["information"], cost["calls"])


def test_where_answers_do_not_repeat_the_same_question_is_paid_each_time(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With fresh consistency the service draws new noise, and takes a new charge."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        POLICY.read_text().replace("  cofacts_feedback:\n", "  cofacts_feedback:\n    consistency: fresh\n")
    )
    rows = planned(capsys, tmp_path, DASHBOARD, "--policy", policy)["queries"]
    assert (None, 4) == (rows[2]["repeats"], rows[2]["cost"]["information"])
    said = run_text(capsys, "plan", "workload", tmp_path / "dashboard.sql", "--policy", policy)
    assert "free, but for line 4, 6, 7, 8, which is paid each time" in said


def test_nothing_of_a_file_is_passed_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A comment that does not end hides no query: it is refused at its place; a mark of UTF-8 refuses none."""
    asked = "SELECT COUNT(DISTINCT member_id) FROM cofacts_feedback"
    rows = planned(capsys, tmp_path, f"\ufeff{asked};\n/* open\n{asked};")["queries"]
    assert [True, False] == [row["answered"] for row in rows]
    assert "line 2, column 1: a comment that does not end" in rows[1]["refusal"]["message"]


def test_a_refusal_has_the_service_s_words_at_its_place_in_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Line and column are the file's, also behind other statements; literals are not repeated."""
    rows = planned(capsys, tmp_path, DASHBOARD)["queries"]
    member, median = (row["refusal"] for row in rows if not row["answered"])
    assert member["message"].startswith("line 10, column 10: member_id: the member column may be counted")
    assert ("refused_by_policy", "member_column") == (member["code"], member["rule"])
    assert "invalid_question" == median["code"] or median["rule"]
    assert median["message"].startswith("line 14, column 16: ")
    said = run_text(capsys, "plan", "workload", tmp_path / "dashboard.sql", "--policy", POLICY)
    assert "line 10 is refused" in said
    assert "answered 6 of 8" in said
    assert "it's" not in said


def test_one_statement_that_is_no_sql_leaves_the_others_as_they_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A template that was not filled in, a text that does not end."""
    asked = "SELECT COUNT(DISTINCT member_id) FROM cofacts_feedback"
    rows = planned(capsys, tmp_path, f"{asked} WHERE day > {{{{ x }}}};\n{asked};\n{asked} WHERE app = 'a")
    assert [False, True, False] == [row["answered"] for row in rows["queries"]]
    assert "fill it in before it is sent" in rows["queries"][0]["refusal"]["message"]
    assert rows["queries"][2]["refusal"]["message"].startswith("line 3, column 68: a text that does not end")


def test_each_block_of_members_pays_for_its_own_queries(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Two about France, one about Germany, and one about everybody: 2 + 1 units of the former, 1 + 1 of the latter."""
    policy = tmp_path / "policy.yaml"
    text = POLICY.read_text().replace(
        "tables:\n", "blocks: {name: country, values: [France, Germany]}\ntables:\n", 1
    )
    policy.write_text(text.replace("  online_retail:\n", "  online_retail:\n    block: country\n"))
    asked = "SELECT COUNT(DISTINCT member_id) FROM online_retail"
    where = (
        "",
        " WHERE country = 'France'",
        " WHERE country = 'Germany'",
        " WHERE country = 'France' AND day > '2011-01-01'",
    )
    found = planned(capsys, tmp_path, ";".join(asked + each for each in where), "--policy", policy)
    assert [2, 3] == sorted(each["information"] for each in found["costs"])
    assert 1000 == found["budgets"][0]["fits"]
    said = run_text(capsys, "plan", "workload", tmp_path / "dashboard.sql", "--policy", policy)
    assert "at most 3 information and 0 calls each time that the data are new; of the block" in said


CURRENCY = ""


def cost(information: int, calls: int, *blocks: str) -> Cost:
    """Return a cost."""
    return Cost(information, calls, CURRENCY, blocks)


@pytest.mark.parametrize(
    ("costs", "window", "expected"),
    [
        # 3000 / 46 = 65; ten refreshes a month are six accounts.
        ([cost(46, 1)], MONTH_DAYS, (65, Renewed(Fraction(65), 6))),
        # Calls end first.
        ([cost(1, 7)], MONTH_DAYS, (42, Renewed(Fraction(42), 4))),
        # Of two blocks the dearer one decides.
        ([cost(10, 0, "a"), cost(100, 0, "b")], MONTH_DAYS, (30, Renewed(Fraction(30), 3))),
        ([cost(46, 1)], Fraction(1), (65, Renewed(65 * MONTH_DAYS, 197))),
        ([cost(46, 1)], Fraction(0), (65, Lasting(Fraction("6.5")))),
        ([cost(4000, 1)], MONTH_DAYS, (0, Renewed(Fraction(0), 0))),
    ],
)
def test_a_budget_goes_as_far_as_its_scarcer_unit(
    costs: list[Cost], window: Fraction, expected: tuple[int, Renewed | Lasting]
) -> None:
    """How often all queries fit, how often a month, for how many accounts and months at ten refreshes a month."""
    found = carried(costs, Limit("b", 3000, 300, "", window), Fraction(10))
    assert expected == (found.fits, found.goes)


def test_what_a_purpose_may_take_pays_for_its_queries_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It has a line of its own, where a query is for it."""
    budget, policy = tmp_path / "budget.yaml", tmp_path / "policy.yaml"
    budget.write_text(
        "accounts:\n"
        "  - path: [a]\n"
        "    limit: {information: 920, calls: 99}\n"
        "    purposes: {pay: {information: 92, calls: 9}, sales: {information: 1, calls: 1}}\n"
    )
    policy.write_text(POLICY.read_text().replace("    member:", "    purpose: pay\n    member:"))
    flags = ("--policy", policy, "--budget-config", budget)
    pay, whole = planned(capsys, tmp_path, DASHBOARD, *flags)["budgets"]
    assert (("purpose pay at a", 2), ("a", 20)) == (
        (pay["name"], pay["fits"]),
        (whole["name"], whole["fits"]),
    )


def test_every_limit_of_a_budget_file_has_a_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Also those that never end, or slide."""
    budget = tmp_path / "budget.yaml"
    budget.write_text(
        "accounts:\n"
        "  - {path: [a], limit: {information: 920, calls: 99}, window: never}\n"
        "  - {path: [a, b], limit: {information: 92, calls: 9}, window: sliding, days: 30, mode: track}\n"
    )
    flags = ("--policy", POLICY, "--budget-config", budget, "--refreshes-per-month", "0.5")
    never, sliding = planned(capsys, tmp_path, DASHBOARD, *flags)["budgets"]
    assert ("a", 20, 40) == (never["name"], never["fits"], never["months"])
    assert ("a/b (recorded alone)", 2, 4) == (sliding["name"], sliding["fits"], sliding["accounts"])
    said = run_text(capsys, "plan", "workload", tmp_path / "dashboard.sql", *flags)
    assert "a │ 920 │ 99 │ never │ 20 │ │ │ 40" in said


def test_queries_of_an_audience_are_asked_as_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A table that it is not offered is unknown; without an audience nobody is answered."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        POLICY.read_text()
        + "\naudiences:\n  buyers:\n    tables: {online_retail: {where: {country: France}}}\n"
    )
    rows = planned(capsys, tmp_path, DASHBOARD, "--policy", policy, "--audience", "buyers")["queries"]
    assert not rows[0]["answered"]
    assert main(["plan", "workload", str(tmp_path / "dashboard.sql"), "--policy", str(policy)]) == 2
    assert "--audience" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sql", "flags", "named"),
    [
        (
            "-- nothing; here\n; SELECT 1",
            ("--policy", str(POLICY)),
            "dashboard.sql: expected 1 to 1,000 statements",
        ),
        (";".join([SOME] * 1001), ("--policy", str(POLICY)), "got 1,001"),
        (SOME, ("--policy", "/nowhere.yaml"), "--policy: /nowhere.yaml: No such file"),
        (SOME, ("--policy", str(ROOT / "examples" / "budget.yaml")), "--policy"),
        (SOME, ("--policy", str(POLICY), "--refreshes-per-month", "0"), "--refreshes-per-month"),
        (SOME, ("--policy", str(POLICY), "--data", "x=y.parquet"), "x"),
        (SOME, ("--policy", str(POLICY), "--budget-config", str(POLICY)), "--budget-config"),
        (
            SOME,
            ("--policy", str(POLICY), "--budget-config", "b.yaml", "--calls", "3"),
            "--budget-config says --information and --calls",
        ),
    ],
)
def test_what_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, sql: str, flags: tuple[str, ...], named: str
) -> None:
    """The flag or the file, and what was expected."""
    file = tmp_path / "dashboard.sql"
    file.write_text(sql)
    assert main(["plan", "workload", str(file), *flags]) == 2
    assert named in " ".join(capsys.readouterr().err.split())


def test_a_file_that_is_no_text_or_too_long_is_refused(tmp_path: Path) -> None:
    """Its size is that of the longest question, and its text is UTF-8."""
    with pytest.raises(InputError, match="at most 262,144 bytes"):
        queries_of("SELECT 1;" * 40_000)
    file = tmp_path / "dashboard.sql"
    file.write_bytes(b"SELECT '\xff'")
    assert main(["plan", "workload", str(file), "--policy", str(POLICY)]) == 2


def test_what_is_free_takes_from_no_budget(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """There is nothing to divide a budget by."""
    found = planned(capsys, tmp_path, SOME)
    assert ([], []) == (found["costs"], found["budgets"])


@pytest.mark.usefixtures("starts_processes")
def test_on_the_owner_s_data_each_paid_query_is_answered_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the service's own noise, which nobody can ask for again; a table without data has a reason instead."""
    monkeypatch.chdir(tmp_path)
    counted = "SELECT COUNT(DISTINCT member_id) FROM "
    sql = ";".join((DASHBOARD, f"{counted}online_retail", f"\n{counted}cofacts_feedback"))
    readers = ROOT / "examples" / "cofacts" / "feedback.parquet"
    flags = ("--policy", POLICY, "--data", f"cofacts_feedback={readers}")
    trials = {row["line"]: row for row in planned(capsys, tmp_path, sql, *flags)["trials"]}
    # What is free or refused is not asked.
    assert {4, 6, 8, 15, 16} == set(trials)
    assert (4, 0) == (trials[6]["found"], trials[6]["asked"])
    assert 20 == trials[4]["asked"]
    assert trials[4]["found"] <= 20
    # 40 on either side of 24,587, whose noise is above 1,000 once in 10^32 times.
    assert 40 / 25_600 < trials[16]["within"] < 40 / 23_500
    assert "the engine has no such table: online_retail" in trials[15]["problem"]
    assert trials[15]["within"] is None
    assert {"dashboard.sql"} == {each.name for each in tmp_path.iterdir() if each.suffix}
    said = run_text(capsys, "plan", "workload", tmp_path / "dashboard.sql", *flags)
    assert "one answer of each, for the owner alone" in said


def test_json_is_one_object(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With no SQL of engines in it."""
    assert "queries" not in json.dumps(planned(capsys, tmp_path, DASHBOARD)["queries"])

"""`gris plan brief`: its numbers are those of the accountant and of the service, and its page is one file."""

from __future__ import annotations

import html.parser
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_service.accounting.composition import guarantee
from gris_cli.__main__ import main
from tests.support.browser import running_browser
from tests.support.command_line import run_json

ROOT = Path(__file__).resolve().parents[2]
POLICY, BUDGET = ROOT / "examples" / "policy.yaml", ROOT / "examples" / "budget.yaml"


class _Cells(html.parser.HTMLParser):
    """Reads the cells of all tables, and the names of all elements."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.elements: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.lasttag == "td":
            self.cells[-1] += data


def briefed(capsys: pytest.CaptureFixture[str], out: Path, *words: object) -> Any:
    """Write the page, and return what the command prints for programs."""
    return run_json(capsys, "plan", "brief", *(words or (POLICY, BUDGET)), "--out", out)


def worth(information: int, calls: int) -> float:
    """Return the epsilon of a budget in the example's currency."""
    found = guarantee(
        Fraction("0.15"), Fraction("1e-11"), information=information, calls=calls, slack=Fraction("1e-9")
    )
    return found.epsilon


def test_odds_are_those_of_the_accountant(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of the cheapest and the dearest answer, of a thirtieth of each budget, of each budget, and of the shared one."""
    rows = briefed(capsys, tmp_path / "brief.html")["odds"]
    spent = ((1, 0), (21, 1), (34, 4), (100, 10), (300, 30), (1000, 100), (3000, 300))
    largest = (9000, 900)
    for row, (information, calls) in zip(rows, (*spent, largest, largest), strict=True):
        assert row["epsilon"] == pytest.approx(worth(information, calls), rel=1e-9)
        assert row["odds"] == pytest.approx(math.exp(row["epsilon"]))
        assert row["half"] == pytest.approx(row["odds"] / (1 + row["odds"]))
    assert 0.0731 == pytest.approx(rows[1]["hundredth"], abs=1e-4)


def test_prices_are_the_service_s_and_fit_as_often_as_they_can(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A total is one unit, the ten largest articles 21 and a call; calls end first where a question has one."""
    rows = {row["question"]: row for row in briefed(capsys, tmp_path / "brief.html")["questions"]}
    total, articles = (
        rows["members of cofacts_feedback"],
        rows["the 10 largest article_id of cofacts_feedback"],
    )
    cohorts = rows["the 10 largest cohort of cofacts_feedback"]
    assert (1, 0, 1000, 3000, 9000) == tuple(
        total[each] for each in ("information", "calls", "a third", "as stated", "threefold")
    )
    assert (21, 1, 47, 142) == tuple(
        articles[each] for each in ("information", "calls", "a third", "as stated")
    )
    assert (1, 1, 300) == tuple(cohorts[each] for each in ("information", "calls", "as stated"))
    # Nobody may group by members.
    assert not any("member_id" in each for each in rows)


def test_the_page_has_every_number_and_loads_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """One file without scripts, pictures or links to elsewhere; names are text, whatever they are."""
    policy = tmp_path / "<b>&policy.yaml"
    policy.write_text(POLICY.read_text())
    out = tmp_path / "brief.html"
    found = briefed(capsys, out, policy, BUDGET)
    read = _Cells()
    read.feed(out.read_text())
    names = ("odds", "attacks", "questions", "deployments")
    assert len(read.cells) == sum(len(row) for name in names for row in found[name])
    assert "one month, budget as stated: 3,000 units and 300 calls" in read.cells
    assert "(34.9, 7e-09)" in read.cells
    assert not {"script", "img", "link", "a", "b"} & set(read.elements)
    assert "&lt;b&gt;&amp;policy.yaml" in out.read_text()


def test_a_month_has_all_windows_that_it_touches(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A budget of each day is 31 of them a month, one that is never renewed is itself; the deepest accounts count."""
    budget, out = tmp_path / "budget.yaml", tmp_path / "brief.html"
    top = "accounts:\n  - {path: [a], limit: {information: 7, calls: 7}}\n"
    for window, months in (("day", 31), ("week", 6), ("month", 1), ("never", 1)):
        budget.write_text(
            f"{top}  - {{path: [a, b], limit: {{information: 30, calls: 3}}, window: {window}}}\n"
        )
        odds = briefed(capsys, out, POLICY, budget)["odds"]
        assert odds[-3]["epsilon"] == pytest.approx(worth(30 * months, 3 * months), rel=1e-9)
        assert ("day" in str([each["answers"] for each in odds])) is (window != "never")
        assert odds[-1]["epsilon"] == pytest.approx(worth(7, 7), rel=1e-9)
        assert "one month, all accounts of a together: 7 units and 7 calls" == odds[-1]["answers"]


def test_accounts_share_the_widest_limit_above_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What each is shown tells what the others' answers cost; without such a limit nothing is said of others."""
    budget, out = tmp_path / "budget.yaml", tmp_path / "brief.html"
    entry = "  - {{path: {}, limit: {{information: {}, calls: 3}}}}\n"
    paths = (["b"], ["a", "*"], ["a", "b", "*"], ["a"])
    budget.write_text("accounts:\n" + "".join(entry.format(path, 10 + n) for n, path in enumerate(paths)))
    shared = briefed(capsys, out, POLICY, budget)["odds"][-1]
    assert "one month, all accounts of a together: 13 units and 3 calls" == shared["answers"]
    assert "the last row holds for all of that" in out.read_text()
    budget.write_text("accounts:\n" + entry.format(["b"], 7) + entry.format(["a", "c"], 7))
    assert "together" not in str(briefed(capsys, out, POLICY, budget)["odds"])
    assert "the last row holds" not in out.read_text()


def test_a_limit_that_is_recorded_alone_bounds_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The budget is the one above it that is enforced; without one there is nothing to tell."""
    budget, out = tmp_path / "budget.yaml", tmp_path / "brief.html"
    tracked = "  - {path: [a, b], limit: {information: 7, calls: 7}, mode: track}\n"
    budget.write_text(
        f"accounts:\n{tracked}  - {{path: [a], limit: {{information: 30, calls: 3}}, window: month}}\n"
    )
    odds = briefed(capsys, out, POLICY, budget)["odds"]
    assert odds[-2]["epsilon"] == pytest.approx(worth(30, 3), rel=1e-9)
    budget.write_text(f"accounts:\n{tracked}")
    assert main(["plan", "brief", str(POLICY), str(budget), "--out", str(out)]) == 2
    assert "expected a limit that is enforced" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("/nowhere.yaml", BUDGET), "POLICY: /nowhere.yaml: No such file"),
        ((POLICY, "/nowhere.yaml"), "BUDGET: /nowhere.yaml: No such file"),
        ((POLICY, POLICY), "BUDGET"),
        ((POLICY, BUDGET, "--audience", "x=y"), "--audience"),
        ((POLICY, BUDGET, "--audience", "x"), "--audience: the policy states no audiences, got x"),
        ((POLICY, BUDGET, "--out", "/nowhere/brief.html"), "--out: /nowhere/brief.html: No such file"),
        ((POLICY, BUDGET, "--out", "/nowhere/brief.pdf"), "expected a name that ends in .html"),
    ],
)
def test_what_cannot_be_read_or_written_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[object, ...], named: str
) -> None:
    """By its argument or flag."""
    assert main(["plan", "brief", "--out", str(tmp_path / "brief.html"), *map(str, words)]) == 2
    assert named in " ".join(capsys.readouterr().err.split())


def test_the_mean_of_answers_is_by_the_noise_of_the_policy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Of Gaussian totals, which cost more units, it is nearer to the count than of one unit's Laplace noise."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("""
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  visits:
    member: person
    measures: {distinct_members: true}
    contributions: {bound: in_query, delta_0: 2, units: 14}
    columns:
      person: {type: int64}
      ward: {type: string, group_by: true}
""")
    out = tmp_path / "brief.html"
    found = briefed(capsys, out, policy, BUDGET)["attacks"][0]["chance"]
    explained = run_json(
        capsys, "plan", "workload", _written(tmp_path, "SELECT COUNT(DISTINCT person) FROM visits"),
        "--policy", policy,
    )  # fmt: skip
    scale = explained["queries"][0]["explanation"]["parameters"]["bounded"]["noise_scale"]
    # The sum of 30 whole draws is below 15 either way: halfway from 14.
    assert found == pytest.approx(math.erf(14.5 / math.sqrt(60) / float(Fraction(scale))), rel=1e-6)
    assert found > 0.5
    laplace = briefed(capsys, out)["attacks"][0]["chance"]
    assert 0.11 == pytest.approx(laplace, abs=0.01)


@pytest.mark.parametrize(("units", "answers"), [(0, 0), (1, 0), (2, 2), (12, 12), (31, 30)])
def test_the_mean_is_of_as_many_answers_as_the_budget_pays_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, units: int, answers: int
) -> None:
    """At most 30; where one or none is paid for, no mean is shown."""
    budget = _budget(tmp_path, f"limit: {{information: {units}, calls: 0}}")
    attacks = briefed(capsys, tmp_path / "brief.html", POLICY, budget)["attacks"]
    assert [f"the mean of {answers} answers"] * (answers > 0) == [
        each["attack"].partition(" to ")[0] for each in attacks if "mean" in each["attack"]
    ]


def test_a_budget_that_is_never_refreshed_is_said_to_be_for_good(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No figure is of a day or a month, but those that others published."""
    budget, out = (
        _budget(tmp_path, "limit: {information: 100, calls: 10}, window: never"),
        tmp_path / "a.html",
    )
    found = briefed(capsys, out, POLICY, budget)
    assert "for good, budget as stated: 100 units and 10 calls" == found["odds"][-2]["answers"]
    assert "for good, never refreshed" in found["deployments"][-1]["note"]
    ours = out.read_text().partition("What have others published?")[0]
    assert "10 calls for an account, which is never refreshed" in ours
    assert "in all, as stated" in ours
    assert not {"month", "day,", "daily"} & set(ours.replace("<", " ").replace(">", " ").split())


def test_bounds_are_named_and_beside_them_what_a_service_without_tables_states(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With a table in the cache the adaptive bound is the smallest, and odds are by it."""
    run_json(capsys, "plan", "table", "--information", 60, "--directory", tmp_path / "cache" / "gris")
    budget, out = _budget(tmp_path, "limit: {information: 60, calls: 30}"), tmp_path / "a.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        row = briefed(capsys, out, POLICY, budget)["odds"][-2]
    assert "one month, budget as stated: 60 units and 30 calls" == row["answers"]
    assert "adaptive" == row["bound"]
    assert row["epsilon_without_table"] == pytest.approx(worth(60, 30))
    assert row["epsilon"] < row["epsilon_without_table"]
    assert row["odds"] == pytest.approx(math.exp(row["epsilon"]))
    assert "dp_service states it only where it is given the table" in out.read_text()


def test_an_owner_is_shown_the_audiences_that_there_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With the values that have to be given."""
    policy = tmp_path / "policy.yaml"
    tables = "tables: {online_retail: {where: {country: $land}}}"
    policy.write_text(f"{POLICY.read_text()}\naudiences:\n  staff: {{}}\n  buyers:\n    {tables}\n")
    for words, got in ((), "none"), (("--audience", "buyers"), "buyers"), (("--audience", "x,a=b"), "x,a=b"):
        asked = (str(policy), str(BUDGET), "--out", str(tmp_path / "a.html"), *words)
        assert main(["plan", "brief", *asked]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert (
            f"--audience: the policy answers audiences alone: expected buyers,land=VALUE or staff; got {got}"
            in said
        )


def test_a_limit_that_no_bound_reaches_is_named_as_it_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By its level and unit, and not by a third of it."""
    budget = _budget(tmp_path, "limit: {information: 9223372036854775807, calls: 1}")
    assert main(["plan", "brief", str(POLICY), str(budget), "--out", str(tmp_path / "a.html")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "BUDGET: the limit of a, information: expected at most 3,002,399,751,580,330" in said
    assert "got 9,223,372,036,854,775,807" in said


@pytest.mark.usefixtures("starts_processes")
def test_the_page_is_no_wider_than_a_window(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Remarks and names wrap; on paper it is one sheet."""
    out = tmp_path / "brief.html"
    briefed(capsys, out)
    with running_browser() as browser:
        page = browser.new_page(viewport={"width": 900, "height": 1200})
        page.goto(out.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 900
        assert b"/Count 1" in page.pdf(prefer_css_page_size=True)


def _budget(folder: Path, entry: str) -> Path:
    path = folder / "budget.yaml"
    path.write_text(f"accounts:\n  - {{path: [a], {entry}}}\n")
    return path


def _written(folder: Path, sql: str) -> Path:
    path = folder / "queries.sql"
    path.write_text(sql)
    return path

"""`gris value publish`: a bound is bought once, recorded, and counts for everyone under a policy that names it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.published_bounds import NO_DELTA, BoundFile
from dp_service.queries.published_files import PublishedFileError
from gris_cli.__main__ import main
from tests.support import publishing
from tests.support.budget_process import Service

POLICY = """
epsilon_per: 2
delta: 1e-10
count_noise: gaussian
tables:
  sales:
    member: who
    measures: {distinct_members: true}
    columns:
      who: {type: string}
      shop: {type: string, group_by: true, domain: [a, b]}
    contributions: {bound: in_query, delta_0: 1, units: 20}
    quantiles:
      paid: {type: int64, member_value: total, max_rows: 100000, grid: {scale: geometric, from: 1, to: 5000, cells: 60}}
      seen: {type: int64, member_value: largest, grid: {scale: linear, from: 0, to: 10, cells: 10}}
"""
SUMMED = POLICY.replace("units: 20}", "units: 20, sums: {max_members: 10000, max_rows: 100000}}")
PUBLISHED = "{published: paid.json, integrity: 'HASH'}"


def summing(upper: str) -> str:
    """Return the policy with sums up to a bound."""
    return f"{SUMMED}    values:\n      paid: {{type: int64, lower: 0, upper: {upper}}}\n"


BUDGET = """
create_at_first_use: true
accounts:
  - path: [bounds]
    limit: {information: 100, calls: 100}
  - path: [bounds, "*"]
    limit: {information: 1, calls: 0}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two purchases of each of 2,000 members, whose totals are 1 to 2,000; rows without a value, and a policy."""
    rows = "SELECT 'm' || i AS who, 'a' AS shop, unnest([i // 2, i - i // 2, NULL]) AS paid, 3 AS seen"
    return publishing.write_data(tmp_path, "sales", f"{rows} FROM range(1, 2001) AS t(i)", POLICY)


def publish(folder: Path, *more: str, column: str = "paid") -> int:
    """Publish a bound of the sales."""
    return publishing.publish("value", folder, "sales", column, *more, out="paid.json")


def under(folder: Path, text: str) -> Policy:
    """Read a policy beside the file."""
    return read_policy(text.encode(), str(folder / "policy.yaml")).policy


def test_a_bound_is_recorded_and_counts_for_everyone(
    folder: Path, ledger: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """One unit and no call; the policy's upper bound is the end of the cell, and its statement has the price."""
    account = ("--account", "bounds/paid", "--budget", ledger.address)
    assert publish(folder, *account, "--json") == 0
    stated = json.loads(capsys.readouterr().out)
    assert (stated["price"]["information"], stated["price"]["calls"]) == (1, 0)
    bound = BoundFile.read((folder / "paid.json").read_bytes())
    # 1,900 of 2,000 members' totals are at most 1,900; a rank is off by 20 members once in e^10 times.
    assert bound.lower <= 2000
    assert 1600 <= bound.upper <= 2500
    assert (bound.q, bound.rho, bound.delta) == (Fraction(19, 20), Fraction(1, 2), NO_DELTA)
    assert stated["integrity"].encode() in (folder / "paid.json").read_bytes()
    policy = under(folder, summing(PUBLISHED.replace("HASH", stated["integrity"])))
    (value,) = policy.table("sales").values
    assert (value.bounds.totals.low, value.bounds.totals.high) == (0, int(bound.upper))
    assert value.publication is not None
    assert policy.publications == {value.publication}
    assert policy.statement == f"{stated['integrity'][7:23]}:1/2:1/{10**30}"
    assert under(folder, summing("9")).statement == ""
    before = (folder / "paid.json").read_bytes()
    # A bound that a policy names is never overwritten.
    assert publish(folder, *account) == 2
    assert "there already" in capsys.readouterr().err
    assert (folder / "paid.json").read_bytes() == before
    assert main(["value", "inspect", str(folder / "paid.json"), "--json"]) == 0
    (folder / "paid.json").unlink()
    # The account has no room for another one.
    assert publish(folder, *account) == 4
    assert not (folder / "paid.json").exists()


@pytest.mark.slow
def test_each_publication_has_noise_of_its_own(folder: Path) -> None:
    """A refresh is another release, whose key nobody keeps: the same data give other cells."""
    (folder / "policy.yaml").write_text(POLICY.replace("epsilon_per: 2", "epsilon_per: 0.01"))
    found = set()
    for _ in range(6):
        assert publish(folder, "--unrecorded") == 0
        found.add(BoundFile.read((folder / "paid.json").read_bytes()).upper)
        (folder / "paid.json").unlink()
    assert len(found) > 1


def test_a_policy_names_the_file_of_its_own_column_by_its_hash(folder: Path) -> None:
    """A file with another hash, of another table or refresh, that is edited, or that is not there."""
    assert publish(folder, "--unrecorded") == 0
    content = (folder / "paid.json").read_bytes()
    integrity = json.loads(content)["integrity"]
    good = summing(PUBLISHED.replace("HASH", integrity))
    assert under(folder, good).publications
    other = f"sha256:{'0' * 64}"
    for text, message in (
        (good.replace(integrity, other), "paid.json with the integrity that the policy states"),
        (good.replace("paid.json", "none.json"), "No such file"),
        (good.replace("sales:", "visits:"), "expected the bound of visits.paid"),
        (good.replace("lower: 0", "lower: 5000"), "more than lower"),
        (good.replace(integrity, "sha256:0"), "integrity: expected sha256: and 64 hex"),
    ):
        with pytest.raises(PolicyError, match=r"values\.paid\.upper") as error:
            under(folder, text)
        assert message in str(error.value)
    with pytest.raises(PolicyError, match="a check of the text alone does not read"):
        read_policy(good.encode(), "policy", reads_files=False)
    (folder / "paid.json").unlink()
    assert publish(folder, "--unrecorded") == 0
    with pytest.raises(PolicyError, match="with the integrity that the policy states"):
        under(folder, good)
    for broken in (
        content[:40],
        content.replace(b'"v1"', b'"v2"'),
        b"{}",
        content.replace(b'"19/20"', b'"x"'),
    ):
        with pytest.raises(PublishedFileError):
            BoundFile.read(broken)


@pytest.mark.parametrize(
    ("more", "column", "message"),
    [
        ((), "paid", "give either --account"),
        (("--unrecorded", "--quantile", "1"), "paid", "--quantile"),
        (("--unrecorded", "--quantile", "0"), "paid", "--quantile"),
        (("--unrecorded",), "seen", "member_value: total and a geometric grid"),
        (("--unrecorded",), "who", "lists no quantiles of a column"),
        (("--unrecorded", "--table", "other"), "paid", "--table"),
        (("--unrecorded", "--data-version", "a" * 64), "paid", "--data-version"),
        (("--unrecorded", "--data", "nowhere.parquet"), "paid", "--data"),
    ],
)
def test_what_cannot_be_published_is_refused_by_flag(
    folder: Path, more: tuple[str, ...], column: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is paid, and no file is left."""
    assert publish(folder, *more, column=column) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "paid.json").exists()

"""docs/your-own-data.md: its commands, one after the other, as somebody types them who has nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.documentation.commands import run
from tests.support.pages import DOCS, blocks, section
from tests.support.paths import ROOT
from tests.support.ports import free_port
from tests.support.world import copy

PAGE = "your-own-data.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the example budgets and the file that the page makes."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    made, *_ = blocks((DOCS / PAGE).read_text(), "sh")
    run(made, tmp_path)
    return tmp_path


def commands(heading: str) -> list[str]:
    """Return the commands below a heading of the page."""
    return blocks(section(PAGE, heading), "sh")


@pytest.mark.slow
@pytest.mark.usefixtures("starts_processes")
def test_pages_can_be_followed_one_after_the_other(tmp_path: Path) -> None:
    """README, recipes, and the page on own data to its end, in one checkout; the reader's file is theirs afterwards.

    Of the page: draft, check, one question, and then services that others ask; the ledger's administration verifies
    them.
    """
    folder = tmp_path
    (folder / "examples").symlink_to(ROOT / "examples")
    orders = "SELECT 'c' || i % 5000 AS customer_id, 'p' || sqrt(i % 1600)::INTEGER AS product"
    copy(f"{orders} FROM range(20000) AS rows(i)", folder / "orders.parquet")
    before = (folder / "orders.parquet").read_bytes()
    (own,) = (each for each in blocks((ROOT / "README.md").read_text(), "sh") if "orders.parquet" in each)
    (recipes,) = blocks((DOCS / "recipes.md").read_text(), "sh")
    assert "product" in run(own.removeprefix(". .venv/bin/activate\n"), folder)
    run(recipes, folder)
    made, *_ = blocks((DOCS / PAGE).read_text(), "sh")
    run(made, folder)
    (draft,) = commands("## 1. Write a first policy")
    (check,) = commands("## 2. Compare it with the data")
    (ask,) = commands("## 3. Ask")
    serve, others = commands("## 4. Serve it")
    assert "customer_number, by its name" in run(draft, folder)
    assert "200,000 rows; true counts" in run(check, folder)
    assert " information and 1 call" in run(ask, folder)
    ports = {name: str(free_port()) for name in ("dp", "budget", "admin")}
    flags = " ".join(f"--{name}-port {port}" for name, port in ports.items())
    # The services are in sessions of their own: `gris serve` has to end them, whatever comes of the rest.
    ending = "trap 'kill $!; wait $! || true' EXIT"
    waiting = "until grep -qs Ctrl-C served; do sleep 0.1; done"
    served = f"{serve.strip()} {flags} >served &\n{ending}\n{waiting}\n{others}"
    addresses = {
        variable: f"127.0.0.1:{ports[name]}"
        for name, variable in (("dp", "GRIS_DP"), ("budget", "GRIS_BUDGET"), ("admin", "GRIS_BUDGET_ADMIN"))
    }
    printed = run(served, folder, addresses)
    assert "app" in printed
    assert "0 differences" in printed
    announced = (folder / "served").read_text()
    for variable, address in addresses.items():
        assert f"export {variable}={address}" in announced
    with pytest.raises(AssertionError, match=r"orders\.parquet is there and was not made here"):
        run("python -m examples.orders.make orders.parquet", folder)
    assert before == (folder / "orders.parquet").read_bytes()


@pytest.mark.usefixtures("starts_processes")
def test_csv_is_a_table_as_the_page_says(folder: Path) -> None:
    """It is drafted and checked."""
    (folder / "purchases.csv").write_text(
        "customer_number,product,bought_on\n1,a,2026-01-31\n2,b,2026-02-01\n"
    )
    (both,) = commands("## What if my data are CSV?")
    assert "2 rows; true counts" in run(both, folder)
    assert "bought_on: {type: date" in (folder / "from_csv.yaml").read_text()


@pytest.mark.usefixtures("starts_processes")
def test_a_folder_is_drafted_and_checked_as_the_page_says(tmp_path: Path) -> None:
    """As one table, with what its folders say."""
    rows = "SELECT i AS customer_number, 'a' AS product, 'FR' AS country FROM range(30) AS rows(i)"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY ({rows}) TO '{tmp_path / 'sales'}' (FORMAT parquet, PARTITION_BY (country))"
        )
    (both,) = commands("## What if my data are many files?")
    assert "30 rows; true counts" in run(both, tmp_path)
    assert "country: {type: string" in (tmp_path / "sales.yaml").read_text()


@pytest.mark.usefixtures("starts_processes")
def test_columns_are_renamed_as_the_page_says(tmp_path: Path) -> None:
    """The draft then names it."""
    names = '1 AS "Customer No.", true AS paid'
    copy(f"SELECT {names}", tmp_path / "sales 2026.parquet")
    (rename,) = commands("## What if names of columns have spaces?")
    printed = run(rename, tmp_path)
    assert "member: customer_no" in printed
    assert "paid: {type: bool" in printed


def test_the_page_states_the_ports_that_serve_takes() -> None:
    """A port that was changed would be looked for in vain."""
    from gris_cli.local_services import ADMIN_PORT, BUDGET_PORT, DP_PORT  # noqa: PLC0415 - only this test needs them

    text = section(PAGE, "## 4. Serve it")
    for flag, port in (("dp", DP_PORT), ("budget", BUDGET_PORT), ("admin", ADMIN_PORT)):
        assert f"| {port} | `--{flag}-port` |" in text

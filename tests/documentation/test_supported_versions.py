"""The page of versions, the changelog and what they are about say the same."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version

import pytest
import yaml

from budget_service.stores.postgres.schema import SCHEMA_VERSION as POSTGRES
from budget_service.stores.redis.schema import SCHEMA_VERSION as REDIS
from budget_service.stores.sqlite.file import SCHEMA_VERSION as SQLITE
from deploy.release.project import ROOT

PAGE = {
    cells[0]: cells[1:]
    for line in (ROOT / "docs" / "supported-versions.md").read_text().splitlines()
    if line.startswith("| ") and (cells := [each.strip() for each in line.strip("|").split("|")])
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_python_is_that_of_the_package_and_of_the_workflow() -> None:
    """Classifiers, the least version, and what the workflow runs."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    required, tested, how = PAGE["Python"]
    assert PROJECT["requires-python"] == f">={required}"
    named = re.findall(r"3\.\d+", f"{tested} {how}")
    assert workflow["test-fast"]["strategy"]["matrix"]["python"] == named
    all_tests = workflow["test"]["strategy"]["matrix"]["python"]
    assert all_tests == [tested, *re.findall(r"`make test` on (3\.\d+)", how)]
    kind = "Programming Language :: Python :: 3."
    assert [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith(kind)] == named


@pytest.mark.parametrize(
    ("part", "extra", "package"),
    [
        ("DuckDB", "duckdb", "duckdb"),
        ("Spark", "spark", "pyspark"),
        ("SQLAlchemy", "sqlalchemy", "sqlalchemy"),
    ],
)
def test_packages_are_those_that_are_required_and_installed(part: str, extra: str, package: str) -> None:
    """The least version of the extra, and the one that the tests have now."""
    required, tested, _ = PAGE[part]
    [stated] = re.findall(rf"{package}>=([\d.]+)", " ".join(PROJECT["optional-dependencies"][extra]))
    assert re.findall(r"\d+\.[\d.]+", required)[0] == stated
    assert re.findall(r"\d+\.\d+", tested)[0] == ".".join(version(package).split(".")[:2])


def test_the_chart_and_the_store_refuse_what_is_older() -> None:
    """Helm an older Kubernetes; a service an older PostgreSQL, as its page says."""
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text())
    assert chart["kubeVersion"].startswith(f">={PAGE['Kubernetes'][0]}.")
    required, tested, _ = PAGE["PostgreSQL, as ledger or release store"]
    stores = (ROOT / "docs" / "stores.md").read_text()
    assert f"PostgreSQL {required} or newer (tested with {tested})" in stores


@pytest.mark.parametrize(
    ("page", "before"), [("CHANGELOG.md", "Ledger schemas: "), ("docs/upgrading.md", "(now ")]
)
def test_the_schemas_of_ledgers_are_those_of_the_stores(page: str, before: str) -> None:
    """A person decides by them whether there is a way back."""
    assert f"{before}SQLite {SQLITE}, Redis {REDIS}, PostgreSQL {POSTGRES}" in (ROOT / page).read_text()

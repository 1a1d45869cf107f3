"""The same question before and after its column's domain is published: what it finds and what it costs.

    python -m examples.published_domain --directory /tmp/published

Which articles do most members give an opinion on? At first the articles are unknown: UnkGumb stops where the noise
hides an article, and each question costs calls. Then `gris domain publish` names the articles that are safe to name,
once, and its price goes to an account of its own. With that domain in the policy the question is KnownGumb's: it
returns all that were asked for, and costs no calls.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gris_cli.__main__ import main as gris
from gris_cli.examples import COFACTS, find_examples
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.questions import structured_question
from pinot_connector.results import PrivateResult
from pinot_connector.sync_client import PrivateClient

COLUMN = "article_id"
QUESTION = structured_question(COFACTS, COLUMN, k=50)
DATA_VERSION = "2019-04-14"
BUDGET = """
accounts:
  - path: [demo]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [demo, "*"]
    limit: {information: 3000, calls: 300}
  # What published domains cost everyone who sees them. A root of its own: these units are of Gaussian noise.
  - path: [domains]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [domains, "*"]
    limit: {information: 300, calls: 100}
"""


@dataclass(frozen=True)
class Comparison:
    """The question before and after, and how many elements the domain has."""

    before: PrivateResult
    after: PrivateResult
    size: int


def compare(directory: Path, method: str = "mad2r") -> Comparison:
    """Ask, publish, and ask again; ledger, noise key and domain are kept in `directory`."""
    examples = find_examples(None)
    directory.mkdir(parents=True, exist_ok=True)
    budget = directory / "budget.yaml"
    budget.write_text(BUDGET, encoding="utf-8")
    policy = directory / "policy.yaml"
    policy.write_text(examples.policy.read_text(encoding="utf-8"), encoding="utf-8")
    with EmbeddedServices(policy=policy, budget_config=budget, directory=directory) as services:
        before = _asked(services, examples.tables[COFACTS])
        domain = directory / f"{COLUMN}.domain.json"
        _publish(domain, examples.tables[COFACTS], policy, services.budget_address, method)
    name_in_policy(policy, domain)
    with EmbeddedServices(policy=policy, budget_config=budget, directory=directory) as services:
        after = _asked(services, examples.tables[COFACTS])
    return Comparison(before, after, len(json.loads(domain.read_bytes())["elements"]))


def name_in_policy(policy: Path, domain: Path) -> None:
    """Let the policy take the column's domain from the file."""
    integrity = json.loads(domain.read_bytes())["integrity"]
    column = f"      {COLUMN}:\n"
    named = f"{column}        domain: {{published: {domain.name}, integrity: '{integrity}'}}\n"
    text = policy.read_text(encoding="utf-8")
    if text.count(column) != 1:
        raise ValueError(f"expected the column {COLUMN} once in {policy}")
    policy.write_text(text.replace(column, named), encoding="utf-8")


def _asked(services: EmbeddedServices, data: Path) -> PrivateResult:
    with (
        closing(DuckDBEngine({COFACTS: data})) as engine,
        PrivateClient(
            dp=services.dp_address, budget=services.budget_address, account="demo/analyst", engine=engine
        ) as client,
    ):
        return client.ask(QUESTION)


def _publish(out: Path, data: Path, policy: Path, budget: str, method: str) -> None:
    flags = {
        "--data": data,
        "--table": COFACTS,
        "--column": COLUMN,
        "--member": "member_id",
        "--data-version": DATA_VERSION,
        "--policy": policy,
        "--method": method,
        "--budget": budget,
        "--account": "domains/cofacts",
        "--out": out,
    }
    code = gris(["domain", "publish", *(str(part) for pair in flags.items() for part in pair)])
    if code:
        sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path(".gris") / "published")
    found = compare(parser.parse_args(arguments).directory)
    print(f"\n{'top 50 articles':<24}{'elements':>9}{'information':>13}{'calls':>7}")
    for label, result in (("before: UnkGumb", found.before), ("after: KnownGumb", found.after)):
        print(f"{label:<24}{len(result.rows):>9}{result.cost.information:>13}{result.cost.calls:>7}")
    print(f"the domain has {found.size} articles")


if __name__ == "__main__":
    main()

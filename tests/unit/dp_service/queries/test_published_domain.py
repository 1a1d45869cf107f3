"""Published domains in a policy: named by file and hash, known from then on, refused if anything is wrong."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.columns import Column
from dp_service.queries.errors import PolicyError, QuestionError
from dp_service.queries.filters import In, Value
from dp_service.queries.policy import read_policy
from dp_service.queries.publications import publication_of
from dp_service.queries.published import (
    DomainFile,
    in_order,
)
from dp_service.queries.published_files import PublishedFileError, integrity_of, written
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import ColumnType, MechanismName
from tests.support import publishing

DOMAIN = publishing.domain_file("c", "1/10", "1/1000000000").model_copy(
    update={"elements": ("a", "null", "ä", "😀")}
)


def policy_of(folder: Path, domain: DomainFile, *, column: str = "", integrity: str = "") -> Column:
    """Read a policy that names a domain file, and return its column."""
    (folder / "c.json").write_bytes(written(domain))
    named = f"{{published: c.json, integrity: '{integrity or integrity_of(written(domain))}'}}"
    text = (
        "epsilon_per: 0.15\ndelta: 1e-10\ntables:\n  t:\n    member: m\n    measures: {distinct_members: true}\n"
        f"    columns:\n      c: {{type: {domain.type}, group_by: true, {column} domain: {named}}}\n"
    )
    (folder / "policy.yaml").write_text(text)
    return read_policy(text.encode(), str(folder / "policy.yaml")).policy.table("t").column("c")


@pytest.mark.parametrize(
    "values",
    [
        ("a", "null", "ä", "😀"),
        (-(2**63), 0, 2**63 - 1),
        (False, True),
        (datetime.date(2019, 4, 14), datetime.date(2020, 1, 1)),
        (),
    ],
    ids=str,
)
def test_a_file_gives_back_what_was_written(values: tuple[Value, ...]) -> None:
    """Every type, and a domain without elements."""
    kinds = {str: ColumnType.STRING, int: ColumnType.INT64, bool: ColumnType.BOOL}
    kind = kinds.get(type(values[0]), ColumnType.DATE) if values else ColumnType.STRING
    domain = DOMAIN.model_copy(update={"type": kind, "elements": values})
    assert domain == DomainFile.read(written(domain))


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        (ColumnType.INT64, ["10", "-1", "9"], (-1, 9, 10)),
        (ColumnType.BOOL, ["true", "false"], (False, True)),
        (ColumnType.DATE, ["2020-01-01"], (datetime.date(2020, 1, 1),)),
        (ColumnType.STRING, ["b", "ä", "a"], ("a", "b", "ä")),
    ],
)
def test_canonical_texts_become_values_in_element_order(
    kind: ColumnType, texts: list[str], values: tuple[Value, ...]
) -> None:
    """Numbers by size and not by text."""
    assert values == in_order(texts, kind)


def test_a_column_with_a_published_domain_is_known(tmp_path: Path) -> None:
    """Its questions are KnownGumb's, ask for these elements alone, and cost no calls."""
    policy_of(tmp_path, DOMAIN)
    policy = read_policy((tmp_path / "policy.yaml").read_bytes(), str(tmp_path / "policy.yaml")).policy
    resolution = resolve(HistogramQuery("t", ("c",), Measure.DISTINCT_MEMBERS, k=2), policy, now=0)
    assert MechanismName.KNOWN_GUMB is resolution.parameters.mechanism
    assert (("a",), ("ä",), ("😀",)) == resolution.parameters.domain
    sql = render(resolution, "duckdb")
    assert all(f"'{element}'" in str(sql) for element in ("a", "ä", "😀"))


def test_what_stands_for_null_is_no_element_where_nulls_are_dropped(tmp_path: Path) -> None:
    """The person who published the domain may not have known the policy's null value."""
    assert ("a", "ä", "😀") == policy_of(tmp_path, DOMAIN).domain
    assert DOMAIN.elements == policy_of(tmp_path, DOMAIN, column="nulls: keep,").domain


def test_a_delta_above_a_domain_speaks_of_values_outside_too(tmp_path: Path) -> None:
    """How many are published is no reason to refuse a policy, and no reason to forget what it says of the others."""
    column = policy_of(tmp_path, DOMAIN, column="delta: 50,")
    assert (3, 50) == (column.of_member_within, column.of_member)


def test_a_policy_keeps_what_each_publication_cost(tmp_path: Path) -> None:
    """By the hash of its file, also of a column that no question may use: it is in the policy all the same."""
    column = policy_of(tmp_path, DOMAIN)
    expected = publication_of(integrity_of(written(DOMAIN)), Fraction(1, 10), Fraction(1, 10**9))
    assert expected == column.publication
    path = tmp_path / "policy.yaml"
    path.write_text(path.read_text().replace("group_by: true", "group_by: false"))
    policy = read_policy(path.read_bytes(), str(path)).policy
    assert {expected} == policy.publications
    assert str(expected) == policy.statement


def test_a_policy_with_more_domains_than_a_charge_can_carry_is_refused(tmp_path: Path) -> None:
    """A statement has 4096 bytes at most; the problem says how many it would have."""
    columns = []
    for number in range(150):
        content = written(DOMAIN.model_copy(update={"column": f"c{number}"}))
        (tmp_path / f"{number}.json").write_bytes(content)
        named = f"{{published: {number}.json, integrity: '{integrity_of(content)}'}}"
        columns.append(f"      c{number}: {{type: string, domain: {named}}}\n")
    header = "epsilon_per: 0.15\ndelta: 1e-10\ntables:\n  t:\n    member: m\n    measures: {distinct_members: true}\n"
    # 16 characters of id, the numbers, two colons and a comma.
    fit = 4096 // len(f"{'0' * 16}:1/10:1/1000000000,")
    text = header + "    columns:\n" + "".join(columns[:fit])
    assert read_policy(text.encode(), str(tmp_path / "policy.yaml")).policy.statement
    with pytest.raises(
        PolicyError, match=r"policy.yaml:3: tables: expected fewer published .* 4096; \d+ columns"
    ):
        read_policy((text + columns[fit]).encode(), str(tmp_path / "policy.yaml"))


@pytest.mark.parametrize(
    ("domain", "said"),
    [
        (DOMAIN.model_copy(update={"rho": Fraction(0)}), "rho: expected a number above 0"),
        (DOMAIN.model_copy(update={"rho": Fraction(10**25)}), "rho: expected a number above 0, of at most"),
        (
            DOMAIN.model_copy(update={"delta": Fraction(0)}),
            "delta: expected a number strictly between 0 and 1",
        ),
        (
            DOMAIN.model_copy(update={"delta": Fraction(1)}),
            "delta: expected a number strictly between 0 and 1",
        ),
        (DOMAIN.model_copy(update={"table": "other"}), "expected the domain of t.c"),
        (DOMAIN.model_copy(update={"column": "other"}), "expected the domain of t.c"),
        (DOMAIN.model_copy(update={"elements": ()}), "found none that is safe to name; without `domain`"),
        (DOMAIN.model_copy(update={"elements": tuple(f"{i:06}" for i in range(100_001))}), "got 100001"),
    ],
)
def test_a_domain_that_the_policy_cannot_use_is_refused_with_its_place(
    tmp_path: Path, domain: DomainFile, said: str
) -> None:
    """Line, key and what was expected."""
    with pytest.raises(PolicyError, match=rf"policy.yaml:8: tables.t.columns.c.domain.published: .*{said}"):
        policy_of(tmp_path, domain)


def test_a_domain_may_have_as_many_elements_as_a_policy_may_list(tmp_path: Path) -> None:
    """Of 100,000 none is left out."""
    elements = tuple(f"{number:06}" for number in range(100_000))
    assert elements == policy_of(tmp_path, DOMAIN.model_copy(update={"elements": elements})).domain


def test_another_file_than_the_policy_names_is_refused(tmp_path: Path) -> None:
    """The hash in the policy decides which publication is meant."""
    with pytest.raises(PolicyError, match="with the integrity that the policy states"):
        policy_of(tmp_path, DOMAIN, integrity=f"sha256:{'0' * 64}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The message names it."""
    policy_of(tmp_path, DOMAIN)
    (tmp_path / "c.json").unlink()
    with pytest.raises(PolicyError, match=r"c\.json: No such file"):
        read_policy((tmp_path / "policy.yaml").read_bytes(), str(tmp_path / "policy.yaml"))


def changed(**change: Any) -> bytes:
    """Return a file with other fields, and the hash that it had."""
    return json.dumps({**json.loads(written(DOMAIN)), **change}).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (written(DOMAIN)[:-9], "a whole JSON text"),
        (b"", "a whole JSON text"),
        (b"\xff", "a whole JSON text"),
        (b"[" * 100_000, "a whole JSON text"),
        (b"[]", "the file"),
        (changed(elements=["a", "b"]), "integrity"),
        (changed(rho="1/1000"), "integrity"),
        (changed(rho=0.1), "rho"),
        (changed(more=1), "more"),
        (changed(format="gris/domain/v2"), "format"),
        (changed(dp_delta=float("nan")), "dp_delta"),
    ],
)
def test_a_file_that_was_cut_or_edited_is_refused(content: bytes, said: str) -> None:
    """The first thing that is wrong is named."""
    with pytest.raises(PublishedFileError, match=said):
        DomainFile.read(content)


@pytest.mark.parametrize(
    "elements", [("b", "a"), ("a", "a"), (1,), ("x" * 1025,), ("a\0",), ("\ud800",)], ids=repr
)
def test_elements_out_of_order_repeated_or_of_another_type_are_refused(elements: tuple[Any, ...]) -> None:
    """Even with a hash that fits."""
    with pytest.raises(PublishedFileError, match="elements"):
        DomainFile.read(written(DOMAIN.model_copy(update={"elements": elements})))


@pytest.mark.parametrize("values", [("a", "unknown"), ("unknown",)])
def test_a_value_that_was_not_published_cannot_be_asked_for_by_name(
    tmp_path: Path, values: tuple[str, ...]
) -> None:
    """The data may have it, and the answer would not; where only other columns are shown, it counts."""
    path = publishing.policy_of(tmp_path, *(publishing.domain_file(each, "1/10", "1e-9") for each in "cd"))
    policy = read_policy(path.read_bytes(), str(path)).policy
    query = HistogramQuery("t", ("c",), Measure.DISTINCT_MEMBERS, (In("c", values),), k=3)
    with pytest.raises(
        QuestionError, match=r"c: 1 of \d values are not .*; the domain has a, b, c"
    ) as refusal:
        resolve(query, policy, now=0)
    assert "unknown" not in str(refusal.value)
    counted = render(resolve(replace(query, dimensions=("d",)), policy, now=0), "duckdb")
    assert "'unknown'" in counted

"""Seeds and ids: what must change them changes them, and nothing else does."""

from __future__ import annotations

import dataclasses
import hashlib
from fractions import Fraction
from typing import Any, TypeAlias

import pytest

from dp_service.parameters.aggregates import QuantilesReleased, SummedValue, SumsReleased
from dp_service.parameters.contributions import BoundedContributions, NamesLook
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.release_ids import (
    keyed_data_version,
    query_id,
    release_id,
    release_seed,
    release_specification,
)
from dp_service.terms import (
    AggregateFunction,
    BoundedBy,
    Bounding,
    Consistency,
    CountNoise,
    GridScale,
    GridSpec,
    MechanismName,
    MemberValue,
)
from tests.support.queries.as_in_plans import carried
from tests.unit.dp_service.identities import GUMBEL, KEY, OTHER_KEY

Changes: TypeAlias = list[dict[str, Any]]

NAMES = NamesLook(typical=4, units=Fraction(7), most_names=75)
BOUNDS_OF_RELEASE = BoundedContributions(
    BoundedBy.IN_QUERY, typical=32, periods=1, of_events=False, units=20, min_count=1, salt="5a17"
)
SUMMED = SummedValue("amount", Fraction(1), 0, 10, Fraction(1, 4), count_share=Fraction(1, 4))
SUMS = SumsReleased(Fraction(1, 2), (SUMMED,), asked=())
QUANTILES = QuantilesReleased(
    "amount",
    Fraction(1),
    GridSpec(GridScale.LINEAR, 0, 100, 10),
    MemberValue.TOTAL,
    (Fraction(1, 2),),
    smallest=False,
    largest=False,
    asked=(),
)
LAPLACE = dataclasses.replace(GUMBEL, mechanism=MechanismName.UNK_LAP, delta_l0=1)


def specification(parameters: ReleaseParameters, question: bytes = b"question") -> bytes:
    """Return the specification of a release of one question."""
    return release_specification(question, parameters, drawn_by=(1, 1))


RELEASE: Changes = [
    {"mechanism": MechanismName.KNOWN_GUMB},
    {"epsilon_per": Fraction("0.30")},
    {"delta": Fraction("1e-9")},
    {"tau": 2},
    {"d_bar": 1001},
    {"delta_l0": 1},
    {"k": 11},
    {"with_counts": False},
    {"count_noise": CountNoise.GAUSSIAN},
    {"consistency": Consistency.FRESH},
    {"domain": (("a",),)},
    {"contributions": BOUNDS_OF_RELEASE},
    {"sums": SUMS},
    {"quantiles": QUANTILES},
]


@pytest.mark.parametrize("change", RELEASE)
def test_every_parameter_is_part_of_the_specification(change: dict[str, Any]) -> None:
    """Two releases with different parameters share no noise: together they would give away the true count."""
    assert specification(GUMBEL) != specification(dataclasses.replace(GUMBEL, **change))


def test_a_release_without_counts_does_not_pay_for_one_with_them() -> None:
    """The price differs, so the question does: otherwise k + 1 units would buy what costs 2k + 1."""
    cheap, dear = specification(dataclasses.replace(GUMBEL, with_counts=False)), specification(GUMBEL)
    assert query_id(KEY, cheap, "v") != query_id(KEY, dear, "v")


def test_k_and_counts_are_no_part_of_a_laplace_release() -> None:
    """The Laplace mechanisms release one list; any k of it is free after the first."""
    other = dataclasses.replace(LAPLACE, k=3, with_counts=False)
    assert specification(LAPLACE) == specification(other)


BOUNDED = dataclasses.replace(
    GUMBEL,
    mechanism=MechanismName.BOUND_GAUSS,
    delta_l0=32,
    d_bar=None,
    count_noise=CountNoise.GAUSSIAN,
    contributions=BOUNDS_OF_RELEASE,
)
BOUNDS: Changes = [
    {"bounded_by": BoundedBy.ASSUMED},
    {"typical": 31},
    {"periods": 2},
    {"of_events": True},
    {"units": 21},
    {"min_count": 2},
    {"min_count": None},
    {"salt": "5a18"},
    {"shifted": True},
    {"names": NAMES},
    {"values_of": "page"},
    {"bounding": Bounding.WEIGHTS},
]


@pytest.mark.parametrize("change", BOUNDS)
def test_everything_about_a_bound_is_part_of_the_specification(change: dict[str, Any]) -> None:
    """Releases that are bounded otherwise share no noise, and k is no part of them."""
    changed = dataclasses.replace(BOUNDS_OF_RELEASE, **change)
    assert specification(BOUNDED) != specification(dataclasses.replace(BOUNDED, contributions=changed))
    assert specification(BOUNDED) == specification(dataclasses.replace(BOUNDED, k=3, with_counts=False))


NAMED: Changes = [{"typical": 5}, {"units": Fraction(8)}, {"most_names": 76}]
SUMMING: Changes = [{"share": Fraction(1, 4)}, {"columns": (SUMMED, SUMMED)}]
SUMMED_AS: Changes = [
    {"name": "other"},
    {"quantum": Fraction(1, 2)},
    {"low": 1},
    {"high": 11},
    {"share": Fraction(1, 2)},
    {"count_share": None},
    {"count_share": Fraction(1, 8)},
    {"function": AggregateFunction.ROWS},
    {"rows": 3},
    {"typical": 4},
    {"is_centred": False},
]
RANKED: Changes = [
    {"column": "other"},
    {"quantum": Fraction(1, 2)},
    {"grid": GridSpec(GridScale.LINEAR, 0, 100, 20)},
    {"quantiles": (Fraction(1, 4),)},
    {"smallest": True},
    {"largest": True},
]
# The parts of a release with what is changed in each. What else they have is no part of the release itself: which of
# its elements and numbers are shown, and what the question and its query say already.
PARTS: list[tuple[Any, Changes, set[str]]] = [
    (GUMBEL, RELEASE, {"within", "clips", "listing", "funnel"}),
    (BOUNDS_OF_RELEASE, BOUNDS, {"largest_cut"}),
    (NAMES, NAMED, set()),
    (SUMS, SUMMING, {"asked", "ordered_by"}),
    (SUMMED, SUMMED_AS, {"condition", "keeps_nulls", "is_raised"}),
    (QUANTILES, RANKED, {"rule", "asked", "ordered_by"}),
]


@pytest.mark.parametrize(("part", "changes", "others"), PARTS, ids=lambda each: type(each).__name__)
def test_no_field_of_a_release_is_forgotten(part: Any, changes: Changes, others: set[str]) -> None:
    """Each is changed in a case, or said to be no part of the release."""
    tried = {name for change in changes for name in change}
    assert tried | others == {each.name for each in dataclasses.fields(part)}
    assert not tried & others


def specified(part: Any) -> list[tuple[str, object]]:
    """Return what a part of a release adds to the release's specification."""
    return list(part.specified())


@pytest.mark.parametrize(
    ("part", "change"),
    [(part, change) for part, changes, _ in PARTS[2:] for change in changes],
)
def test_everything_about_a_part_is_part_of_the_specification(part: Any, change: dict[str, Any]) -> None:
    """Also whether rows without a value count, and which part of the units the column's own count takes."""
    changed = dataclasses.replace(part, **change)
    assert specified(part) != specified(changed)
    assert carried(changed) == changed


def test_releases_without_a_bound_keep_the_specification_that_they_had() -> None:
    """Whatever was paid for before there were bounds is free after it: these are digests of that time."""
    digests = [hashlib.sha256(specification(each)).hexdigest()[:16] for each in (GUMBEL, LAPLACE)]
    assert digests == ["437b872908d4de76", "099931523014ce84"]


def test_the_domain_is_part_of_the_specification_by_value_and_type() -> None:
    """An integer 1, a text "1" and True are different domains."""
    known = [dataclasses.replace(LAPLACE, domain=((value,),)) for value in (1, "1", True)]
    assert len({specification(each) for each in known}) == 3


def test_versions_and_question_are_part_of_the_specification() -> None:
    """A new version of a mechanism or of a sampler makes new releases, as another question does."""
    first = release_specification(b"question", GUMBEL, drawn_by=(1, 1))
    assert first != release_specification(b"question", GUMBEL, drawn_by=(2, 1))
    assert first != release_specification(b"question", GUMBEL, drawn_by=(1, 2))
    assert first != release_specification(b"another", GUMBEL, drawn_by=(1, 1))


def test_seed_and_release_id_depend_on_every_part() -> None:
    """Key, specification, data version, counts and fresh bytes each make another release."""
    seeds = {
        release_seed(KEY, b"s", "v", b"d"),
        release_seed(OTHER_KEY, b"s", "v", b"d"),
        release_seed(KEY, b"t", "v", b"d"),
        release_seed(KEY, b"s", "w", b"d"),
        release_seed(KEY, b"s", "v", b"e"),
        release_seed(KEY, b"s", "v", b"d", b"f" * 32),
        release_seed(KEY, b"sv", "", b"d"),
    }
    assert len(seeds) == 7
    assert len({release_id(seed) for seed in seeds}) == 7


def test_a_query_id_depends_on_every_part() -> None:
    """A question that is drawn anew is another one: under another key, of other data, and each time in fresh mode."""
    ids = {
        query_id(KEY, b"s", "v"),
        query_id(OTHER_KEY, b"s", "v"),
        query_id(KEY, b"t", "v"),
        query_id(KEY, b"s", "w"),
        query_id(KEY, b"s", "v", b"1" * 32),
        query_id(KEY, b"s", "v", b"2" * 32),
        query_id(KEY, b"sv", ""),
    }
    assert len(ids) == 7


def test_the_shown_data_version_is_keyed() -> None:
    """Without the key nobody can verify a guess of segment checksums."""
    assert keyed_data_version(KEY, "t", "crc") != keyed_data_version(OTHER_KEY, "t", "crc")
    assert keyed_data_version(KEY, "t", "crc") != keyed_data_version(KEY, "u", "crc")


def test_ids_are_fixed_by_test_vectors() -> None:
    """Another version or another language gives the same seed and the same ids."""
    seed = release_seed(KEY, b"specification", "version", bytes(32))
    assert seed.hex() == SEED_VECTOR
    assert release_id(seed) == RELEASE_ID_VECTOR
    assert query_id(KEY, b"specification", "version") == QUERY_ID_VECTOR
    assert keyed_data_version(KEY, "table", "version") == DATA_VERSION_VECTOR


# Computed apart from the project, from the description in noise.md and the labels in the code.
SEED_VECTOR = "ec8ca888776d6b8f9ebc8753d013a725a1849f39a1fba843cd35b1ec3e074610"
RELEASE_ID_VECTOR = "3f9e40ab941ca6c35316b185edd7bdb54c1b58f74f81469fc1d4eabdf4637154"
QUERY_ID_VECTOR = "57109ae17197a322dd314f06c93c536e69637f7e440e12824291b8e68bea7622"
DATA_VERSION_VECTOR = "878e349008f9cf4e92a9e33d84af7ba5"

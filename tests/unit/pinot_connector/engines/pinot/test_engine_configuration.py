"""Settings under which Pinot counts something else than was asked for are refused by name."""

from collections.abc import Callable
from typing import Any

import pytest

from pinot_connector.engines.pinot.configuration import (
    require_exact_cluster,
    require_exact_table,
    require_known_version,
    require_multistage_version,
    require_short_texts,
)
from pinot_connector.errors import EngineRefused


def is_refused(check: Callable[[Any], None], settings: Any) -> bool:
    """Tell whether a check refuses these settings."""
    try:
        check(settings)
    except EngineRefused:
        return True
    return False


@pytest.mark.parametrize("version", ["0.11.0-1b4d6b6b", "0.12.1", "1.0.0", "1.5.1-SNAPSHOT", "10.2"])
def test_a_pinot_that_says_what_it_covers_is_accepted(version: str) -> None:
    """Versions are compared as numbers."""
    assert not is_refused(require_known_version, {"pinot-controller": version})


@pytest.mark.parametrize("components", [{"pinot-controller": "0.9.3"}, {"pinot-controller": "new"}, {}])
def test_a_pinot_of_unknown_or_old_version_is_refused(components: dict[str, str]) -> None:
    """An answer whose extent is not known cannot be called whole."""
    with pytest.raises(EngineRefused):
        require_known_version(components)


@pytest.mark.parametrize("version", ["1.0.0", "1.5.1-SNAPSHOT", "10.2"])
def test_a_pinot_from_one_on_has_the_multi_stage_engine(version: str) -> None:
    """Versions are compared as numbers."""
    assert not is_refused(require_multistage_version, {"pinot-controller": version})


@pytest.mark.parametrize("version", ["0.11.0-1b4d6b6b", "0.12.1"])
def test_an_older_pinot_is_refused_with_the_measure_that_it_cannot_answer(version: str) -> None:
    """The message names the measure, the version there is and the one that is needed."""
    with pytest.raises(
        EngineRefused, match=r"Pinot 0\.1\d cannot .* measure events .* in_query.* Pinot 1\.0 or later"
    ):
        require_multistage_version({"pinot-controller": version})


@pytest.mark.parametrize("value", ["true", "TRUE", True])
@pytest.mark.parametrize(
    "name",
    ["enable.distinct.count.bitmap.override", "pinot.broker.use.approximate.function"],
)
def test_a_cluster_setting_that_changes_answers_is_refused(name: str, value: Any) -> None:
    """The message names the setting, for the operator."""
    with pytest.raises(EngineRefused, match=name):
        require_exact_cluster({name: value})
    require_exact_cluster({name: "false"})


@pytest.mark.parametrize(
    "name", ["pinot.all.use.approximate.function", "Pinot.Broker.USE.approxi-mate.func_tion"]
)
def test_a_cluster_setting_is_refused_by_every_name_that_brokers_read(name: str) -> None:
    """Brokers ignore case, dashes and underscores, and take `pinot.all.` for their own."""
    with pytest.raises(EngineRefused, match=name):
        require_exact_cluster({"other": "1", name: "true"})


def test_a_query_setting_of_a_table_that_nobody_judged_is_refused() -> None:
    """Newer versions of Pinot end queries by what they scan; those that every query overrides may stay."""
    overridden = {
        "timeoutMs": 1,
        "disableGroovy": True,
        "maxServerResponseSizeBytes": 9,
        "maxQueryResponseSizeBytes": 9,
    }
    assert not is_refused(require_exact_table, {"OFFLINE": {"query": {**overridden, "maxDocsScanned": None}}})
    with pytest.raises(EngineRefused, match=r"query\.maxDocsScanned"):
        require_exact_table({"OFFLINE": {"query": {**overridden, "maxDocsScanned": 5}}})


def test_the_override_that_new_clusters_are_made_with_is_harmless_by_itself() -> None:
    """Since 1.4 the controller itself writes it; what a broker makes of LIMIT is seen in its plans."""
    assert not is_refused(require_exact_cluster, {"pinot.broker.enable.query.limit.override": "true"})


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("useApproximateFunction", {"query": {"useApproximateFunction": True}}),
        ("expressionOverrideMap", {"query": {"expressionOverrideMap": {"a": "b"}}}),
        ("isSegmentPartitioned", {"fieldConfigList": [{}, {"properties": {"isSegmentPartitioned": "true"}}]}),
    ],
)
def test_a_table_setting_that_changes_answers_is_refused(name: str, config: dict[str, Any]) -> None:
    """The message names the setting, for the operator."""
    with pytest.raises(EngineRefused, match=name):
        require_exact_table({"OFFLINE": config})
    with pytest.raises(EngineRefused, match=name):
        require_exact_table({"OFFLINE": {}, "REALTIME": config})


@pytest.mark.parametrize("tables", [{}, {"OFFLINE": None}])
def test_a_table_that_is_not_there_is_refused(tables: dict[str, Any]) -> None:
    """Without any part there is nothing to ask."""
    with pytest.raises(EngineRefused):
        require_exact_table(tables)


def test_a_plain_table_is_accepted() -> None:
    """Settings that are present and off do no harm."""
    fields = [
        {"name": "a"},
        {"name": "b", "properties": None},
        {"properties": {"isSegmentPartitioned": "false"}},
    ]
    off = {"upsertConfig": {"mode": "NONE"}, "query": {"useApproximateFunction": False}}
    table = {**off, "fieldConfigList": fields}
    assert not is_refused(require_exact_table, {"OFFLINE": table})


@pytest.mark.parametrize(
    ("length", "refused"),
    [
        ({}, False),
        ({"maxLength": 1024}, False),
        ({"maxLength": 1025}, True),
        ({"maxLength": None, "maxLengthExceedStrategy": None}, False),
        ({"maxLengthExceedStrategy": "NO_ACTION"}, True),
        ({"maxLength": 100, "maxLengthExceedStrategy": "no_action"}, True),
        ({"maxLengthExceedStrategy": "ONE_OF_THE_FUTURE"}, True),
        ({"maxLengthExceedStrategy": "TRIM_LENGTH"}, False),
        ({"maxLengthExceedStrategy": "ERROR"}, False),
        ({"maxLengthExceedStrategy": "SUBSTITUTE_DEFAULT_VALUE"}, False),
    ],
)
def test_a_schema_whose_texts_could_be_longer_than_answers_show_is_refused(
    length: dict[str, object], refused: bool
) -> None:
    """By default Pinot cuts texts at 512 characters itself; which list of a schema names a column does not matter."""
    fields = [{"name": "n", "dataType": "INT", **length}, {"name": "d", "dataType": "STRING", **length}]
    for kind in ("dimensionFieldSpecs", "dateTimeFieldSpecs", "metricFieldSpecs"):
        assert not is_refused(require_short_texts, {kind: fields[:1]})
        assert refused == is_refused(require_short_texts, {kind: fields})
    of_time = {"timeFieldSpec": {"incomingGranularitySpec": fields[1]}}
    assert refused == is_refused(require_short_texts, of_time)


def test_a_schema_without_any_list_of_columns_has_no_long_texts() -> None:
    """Pinot leaves out lists that are empty."""
    assert not is_refused(require_short_texts, {"dimensionFieldSpecs": None, "timeFieldSpec": None})

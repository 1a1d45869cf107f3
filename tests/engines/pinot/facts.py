"""What Pinot itself does, by version, where one version does not do as another: tried on 0.11.0 and on 1.5.1.

From which version on is as the source of the versions between them reads. The campaign `pinot_check` compares these
facts with the cluster that it is run against.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from deploy.pinot.cluster import DEFAULT_VERSION

NOT_ALL_SEGMENTS = 305
"""The code with which a broker says that segments of a table are on no server that it knows of."""


@dataclass(frozen=True)
class Facts:
    """What one version does."""

    empty_answers_have_types: bool
    """An answer without rows tells the types of its columns; before, it calls each a STRING."""

    empty_answers_have_a_table: bool
    """An answer that the broker gives by itself, for it pruned every segment, has a table without rows."""

    group_limit_can_be_raised: bool
    """`numGroupsLimit` of a query is obeyed; before, a segment stops at 100,000 groups whatever a query says."""

    losses_are_reported: bool
    """Half a minute after a server's death its segments are named as missing; before, nothing tells of them."""

    missing_tables_are_not_found: bool
    """`GET /tables/{name}` of no table is 404; before, it is an empty object."""

    brokers_have_names: bool
    """Each answer tells which broker gave it."""

    override_is_on: bool
    """A controller that makes a cluster sets `pinot.broker.enable.query.limit.override` to `true`."""

    ends_are_reported: bool
    """The controller tells where each partition of a stream ends."""

    kafka_plugin: str
    """The package of the consumers of Kafka."""


def wanted_version() -> str:
    """Return the version of Pinot that tests start.

    GRIS_TEST_PINOT_VERSION names one other than the one that Maven Central has whole; its jars lie where the cluster
    looks for them (`~/.cache/gris/pinot/VERSION`).
    """
    return os.environ.get("GRIS_TEST_PINOT_VERSION", DEFAULT_VERSION)


def version_of(components: dict[str, str]) -> tuple[int, int]:
    """Return major and minor version in a controller's answer to `GET /version`."""
    found = re.match(r"(\d+)\.(\d+)", components["pinot-controller"])
    assert found, components
    return int(found[1]), int(found[2])


def facts_of(version: tuple[int, int]) -> Facts:
    """Return what Pinot of this version does."""
    return Facts(
        empty_answers_have_types=version >= (1, 4),
        empty_answers_have_a_table=version >= (1, 4),
        group_limit_can_be_raised=version >= (1, 0),
        losses_are_reported=version >= (1, 0),
        missing_tables_are_not_found=version >= (1, 4),
        brokers_have_names=version >= (1, 0),
        override_is_on=version >= (1, 4),
        ends_are_reported=version >= (0, 12),
        kafka_plugin="kafka30" if version >= (1, 3) else "kafka20",
    )

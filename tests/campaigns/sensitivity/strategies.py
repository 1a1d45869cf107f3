"""Random tables, and random policies whose promises are true of them by construction."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st

from dp_service.queries.asked_numbers import DistinctValues
from dp_service.queries.blocks import folded
from dp_service.queries.filters import INT64_MINIMUM, Value
from dp_service.queries.published_files import integrity_of, written
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import ColumnType
from tests.support import publishing
from tests.support.queries.reference import Row
from tests.support.queries.strategies import (
    TYPES,
    VALUES,
    alternatives,
    conditions,
    plain,
    questions_and_totals,
    times,
)

MEMBERS = ["m1", "m2", "m3"]
AUDIENCE = "one"
DISTINCT = ("text", "number", "day")
"""The columns whose distinct values a policy that bounds contributions offers."""


@dataclass(frozen=True)
class World:
    """A table, a policy that tells the truth about it, and questions; `files` are the domains that it has published."""

    rows: list[Row]
    policy: dict[str, Any]
    files: dict[str, bytes]
    questions: list[HistogramQuery]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a table in which members have many values, inside domains and outside, and questions about it."""
    rows, block, values = draw(_divided())
    files: dict[str, bytes] = {}
    columns = {
        name: draw(_column(name, rows, files, blocks=values if name == block else [])) for name in TYPES
    }
    time = draw(_time(keeps_days=columns["day"].get("nulls") == "keep"))
    table = {
        "member": "member",
        "time": time | ({"delay_minutes": 0} if "refresh" in time else {}),
        "measures": {"distinct_members": True, "events": draw(_events(columns, rows))},
        "d_bar": draw(st.sampled_from([10, 15])),
        "columns": columns | draw(st.sampled_from([{}, {"member": {"type": "string"}}])),
        **({"block": block} if block else {}),
    }
    is_bounded = draw(st.integers(0, 2)) == 0
    policy = {
        "epsilon_per": "0.15",
        "delta": "1e-10",
        "max_k": draw(st.sampled_from([2, 100])),
        "count_noise": "gaussian" if is_bounded else draw(st.sampled_from(["laplace", "gaussian"])),
        "tables": {"t": draw(_bounded(table)) if is_bounded else table},
        **({"blocks": {"name": "division", "values": values}} if block else {}),
    }
    asked = draw(st.lists(_question(), min_size=6, max_size=6))
    return World(rows, policy, files, _of_values(asked) if is_bounded else asked)


def _of_values(asked: list[HistogramQuery]) -> list[HistogramQuery]:
    """Return questions of which every third counts the distinct values of a column that it does not group by."""
    counted = [
        next((name for name in DISTINCT[place % 2 :] if name not in query.dimensions), "")
        for place, query in enumerate(asked)
    ]
    return [
        replace(query, measure=DistinctValues(name)) if name and place % 3 == 0 else query
        for place, (query, name) in enumerate(zip(asked, counted, strict=True))
    ]


@st.composite
def _bounded(draw: st.DrawFn, table: dict[str, Any]) -> dict[str, Any]:
    """Draw a bound that the query sees to, so that nothing has to be promised of the data."""
    block = {
        "bound": "in_query",
        "units": draw(st.integers(1, 20)),
        "min_count": draw(st.sampled_from([1, 1, 2])),
    }
    if draw(st.booleans()):
        block["longest_list"] = draw(st.integers(1, 3))
    columns = {
        name: {key: value for key, value in said.items() if key != "delta"}
        | ({"typical": draw(st.integers(1, 3))} if said.get("group_by") else {})
        for name, said in table["columns"].items()
    }
    kept = {key: value for key, value in table.items() if key != "d_bar"}
    changed = {"contributions": block, "columns": columns}
    distinct = {name: draw(st.integers(1, 3)) for name in DISTINCT}
    return {
        **kept,
        **changed,
        "measures": {"distinct_members": True, "rows": draw(st.integers(1, 6)), "distinct": distinct},
    }


@cache
def _time(*, keeps_days: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Return what the policy says of its time column: a day, or a timestamp as a table stores it, in some zone."""
    stored = st.sampled_from([{"column": "at"}, {"column": "at_ms", "unit": "milliseconds"}])
    zones = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"])
    timestamp = st.builds(
        lambda time, column, zone: time | column | {"type": "timestamp", "zone": zone},
        times(keeps_rows_without_time=False),
        stored,
        zones,
    )
    # Most worlds have days: rows of the years 1 and 9999 are beyond what timestamps can be, so less can change.
    day = times(keeps_rows_without_time=keeps_days)
    return st.integers(0, 3).flatmap(lambda each: timestamp if each == 0 else day)


@cache
def _question() -> st.SearchStrategy[HistogramQuery]:
    """Return questions with fewer conditions than elsewhere: where few rows meet them, a member changes little."""
    few = st.just(()) | st.tuples(conditions()) | st.tuples(alternatives())
    return st.builds(
        lambda query, filters, k, in_time: replace(
            query, filters=filters, k=k, time_range=query.time_range if in_time else None
        ),
        questions_and_totals(),
        few,
        st.integers(1, 5),
        st.integers(0, 3).map(lambda each: each == 0),
    )


def as_audience(world: World) -> World:
    """Return the world with a policy that restricts who asks to some of the rows."""
    choices: list[tuple[str, list[Any]]] = [
        ("flag", [True]),
        ("flag", [False]),
        ("number", list(VALUES["number"][:3])),
    ]
    name, values = choices[len(world.rows) % 3]
    # Of a column whose values the policy lists, an audience is offered values that are listed.
    listed = world.policy["tables"]["t"]["columns"][name].get("domain")
    if isinstance(listed, list):
        values = [each for each in values if each in listed] or listed
    audience = {"tables": {"t": {"where": {name: values}}}}
    return replace(world, policy={**world.policy, "audiences": {AUDIENCE: audience}})


@st.composite
def _rows(draw: st.DrawFn) -> list[Row]:
    """Draw rows; of some columns every member has one value, so that a small Delta is true of them."""
    rows = draw(st.lists(_row(), min_size=10, max_size=40))
    for name in draw(st.sets(st.sampled_from(sorted(TYPES)), max_size=3)):
        own = {member: getattr(row, name) for row in rows for member in [row.member]}
        rows = [row._replace(**{name: own[row.member]}) for row in rows]
    return rows


@st.composite
def _divided(draw: st.DrawFn) -> tuple[list[Row], str, list[Value]]:
    """Draw rows, of which in two of three worlds all of a member are of one block: by which column, of which values."""
    rows = draw(_rows())
    name = draw(st.sampled_from(["text", "number", ""]))
    if not name:
        return rows, "", []
    unlike = {folded(value): value for value in VALUES[name][1:] if value not in ("null", INT64_MINIMUM)}
    values = draw(st.lists(st.sampled_from(sorted(unlike.values())), unique=True, min_size=1, max_size=3))
    home = {
        member: draw(st.sampled_from([*values, None])) for member in sorted({str(row.member) for row in rows})
    }

    def moved(row: Row) -> Row:
        """Return the row with its member's value, or any that has no block of its own."""
        at, value = home[str(row.member)], getattr(row, name)
        held: Any = None if at is None and value in values else value if at is None else at
        return row._replace(text=held) if name == "text" else row._replace(number=held)

    return list(map(moved, rows)), name, values


@cache
def _row() -> st.SearchStrategy[Row]:
    return st.builds(
        Row,
        st.sampled_from([*MEMBERS, *MEMBERS, "null", None]),
        *(st.sampled_from([*VALUES[name], None]) for name in TYPES),
    )


@st.composite
def _column(
    draw: st.DrawFn, name: str, rows: list[Row], files: dict[str, bytes], *, blocks: list[Value]
) -> dict[str, Any]:
    said: dict[str, Any] = {"type": TYPES[name], "group_by": True, "filter": ["in", "not_in"]}
    if name in ("number", "day"):
        said["filter"] = ["in", "not_in", "range"]
    if name == "flag" or draw(st.booleans()):
        taken = {folded(value) for value in blocks}
        free = [value for value in VALUES[name] if folded(value) not in taken]
        said |= {"nulls": "keep", "null_value": plain(draw(st.sampled_from(free)))}
    kind = draw(st.sampled_from(["unknown", "listed", "published"]))
    if kind != "unknown":
        said |= _domain(name, draw(_subset(name)), said.get("nulls") == "keep", kind, files)
    if draw(st.integers(0, 5)):
        # At most as many as the domain has is true as well, but it is not what the file says of the data.
        said["delta"] = max(1, _most_values(name, said, rows)) + draw(st.sampled_from([0, 0, 0, 1, 20]))
    return said


@cache
def _subset(name: str) -> st.SearchStrategy[list[Value]]:
    return st.lists(st.sampled_from(VALUES[name]), unique=True, min_size=1, max_size=3)


def _domain(
    name: str, values: list[Value], keeps_nulls: bool, kind: str, files: dict[str, bytes]
) -> dict[str, Any]:
    """Return what the policy says of a domain: in a list, or in a file, which goes to `files`."""
    droppable = {VALUES[name][0], "null"}
    kept = sorted(value for value in values if keeps_nulls or value not in droppable)
    if not kept:
        return {}
    if kind == "listed":
        return {"domain": [plain(value) for value in kept]}
    files[f"{name}.json"] = domain_file(name, tuple(kept))
    return {"domain": named(files, f"{name}.json")}


def named(files: dict[str, bytes], name: str) -> dict[str, str]:
    """Return what a policy says of a domain that it takes from one of these files."""
    return {"published": name, "integrity": integrity_of(files[name])}


def domain_file(name: str, elements: tuple[Value, ...]) -> bytes:
    """Return the file of a published domain of a column."""
    published = publishing.domain_file(name, "1/10", "1/1000000000")
    return written(published.model_copy(update={"type": ColumnType(TYPES[name]), "elements": elements}))


def _counted(name: str, said: dict[str, Any], rows: list[Row]) -> Iterator[tuple[str, Any]]:
    """Return member and value of every row that could count in an element of this column."""
    for row in rows:
        value = getattr(row, name)
        if value is None and said.get("nulls") == "keep":
            value = said["null_value"]
        if row.member is not None and value is not None:
            yield row.member, plain(value) if isinstance(value, datetime.date) else value


def _most_values(name: str, said: dict[str, Any], rows: list[Row]) -> int:
    """Return the most values of a column that one member has, a kept NULL among them: what `delta` promises."""
    members = Counter(member for member, _ in set(_counted(name, said, rows)))
    return max(members.values(), default=0)


@st.composite
def _events(draw: st.DrawFn, columns: dict[str, dict[str, Any]], rows: list[Row]) -> dict[str, Any]:
    """Draw what the policy says of events: an assumed tau is the most rows of a member in one element of any column."""
    if draw(st.booleans()):
        return {"tau": draw(st.integers(1, 3)), "tau_is": "clipped"}
    each = [Counter(_counted(name, said, rows)) for name, said in columns.items()]
    most = max((count for counter in each for count in counter.values()), default=1)
    return {"tau": most + draw(st.integers(0, 1)), "tau_is": "assumed"}

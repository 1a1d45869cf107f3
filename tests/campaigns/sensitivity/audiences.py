"""Asks as an audience, and of a world that has nothing but what the audience is offered: all is alike.

That world is made without what is under test: its policy lists no column that is not offered, and its table has no row
that is not. So a difference is something that an audience learns of what it is not offered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.audiences import seen_by
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.resolution import Resolution
from dp_service.queries.sql import parse_sql
from dp_service.releases.resolving import resolve_question
from tests.support.queries.sql_writer import spelled
from tests.support.queries.strategies import NOW, VALUES

from .campaign import DRAWN
from .measuring import Asked, AskedTable, counts, uncut
from .strategies import World, worlds

NAME = "tenant"
CONTRADICTION = "no row can meet them"
AUDIENCES = 8
# Time, and what rows are forced by, are always offered.
HIDDEN = ("text", "number", "flag")


@dataclass(frozen=True)
class Offered:
    """A world, and what an audience of it is offered: rows with certain values of a column, and all columns but one.

    An empty `hidden` is none.
    """

    world: World
    column: str
    values: list[Any]
    hidden: str

    @property
    def policy(self) -> dict[str, Any]:
        """The policy with the audience; the first of its values is given by name."""
        names = [name for name in self.table["columns"] if name != self.hidden]
        where = {self.column: [f"${NAME}", *map(_literal, self.values[1:])]}
        audience = {"tables": {"t": {"columns": names, "where": where}}}
        return {**self.world.policy, "audiences": {"one": audience}}

    @property
    def alone(self) -> dict[str, Any]:
        """The policy of who has nothing but that."""
        columns = {name: said for name, said in self.table["columns"].items() if name != self.hidden}
        if "domain" in columns[self.column]:
            # Of a list no values but its own are offered; what was published says nothing of values that it lacks.
            columns[self.column] = {**columns[self.column], "domain": self.values}
        table = {**self.table, "columns": columns}
        if "distinct" in table["measures"]:
            distinct = {
                name: most for name, most in table["measures"]["distinct"].items() if name != self.hidden
            }
            table["measures"] = {**table["measures"], "distinct": distinct}
        table.pop("block", None)
        left_out = {key: said for key, said in self.world.policy.items() if key != "blocks"}
        return {**left_out, "tables": {"t": table}}

    @property
    def places(self) -> list[int]:
        """The places of the rows that it is offered."""
        said = self.table["columns"][self.column]
        null = said["null_value"] if said.get("nulls") == "keep" else None
        held = [getattr(row, self.column) for row in self.world.rows]
        return [place for place, each in enumerate(held) if (null if each is None else each) in self.values]

    @property
    def table(self) -> dict[str, Any]:
        """The table, as the whole policy has it."""
        table: dict[str, Any] = self.world.policy["tables"]["t"]
        return table


def _literal(value: Any) -> Any:
    return f"${value}" if isinstance(value, str) and value.startswith("$") else value


@st.composite
def offers(draw: st.DrawFn) -> list[Offered]:
    """Draw a world, and what each of several audiences of it is offered."""
    world = draw(worlds())
    found = [draw(_offer(world)) for _ in range(AUDIENCES)]
    return [each for each in found if each.values]


@st.composite
def _offer(draw: st.DrawFn, world: World) -> Offered:
    column = draw(st.sampled_from(["text", "number"]))
    table = world.policy["tables"]["t"]
    # The column of blocks is offered with every other one.
    said, block = table["columns"][column], table.get("block")
    listed = said["domain"] if isinstance(said.get("domain"), list) else VALUES[column]
    possible = [each for each in listed if each != said.get("null_value", _NULLS[column])]
    values = (
        draw(st.lists(st.sampled_from(possible), unique=True, min_size=1, max_size=3)) if possible else []
    )
    hidden = draw(st.sampled_from(["", "", *(name for name in HIDDEN if name not in (column, block))]))
    return Offered(world, column, values, hidden)


_NULLS = {"text": "null", "number": -(2**63)}


@dataclass
class AudienceTotals:
    """What a campaign has looked at."""

    questions: int = 0
    refused: int = 0
    fewer: int = 0
    empty: int = 0

    def __str__(self) -> str:
        return (
            f"{self.questions} questions of audiences, of which {self.fewer} have other counts for all rows, "
            f"{self.refused} are refused alike and {self.empty} are of no row that is offered; 0 differ"
        )


def audience_campaign(
    number: int, folder: Path, *, seed_: int = 0, before: AudienceTotals | None = None
) -> AudienceTotals:
    """Ask `number` worlds; raises AssertionError, with the smallest world that shows it, if something differs.

    What is looked at is added to what was looked at `before`.
    """
    totals = before or AudienceTotals()

    @seed(seed_)
    @settings(DRAWN, max_examples=number, phases=[Phase.generate])
    @given(offers())
    def ask(offered: list[Offered]) -> None:
        found = [*audience_faults(offered, folder, totals)]
        assert not found, found

    ask()
    return totals


def audience_faults(offers_: list[Offered], folder: Path, totals: AudienceTotals) -> Iterator[str]:
    """Yield what is answered or refused in another way than where there is nothing else."""
    if not offers_:
        return
    world = offers_[0].world
    for name, content in world.files.items():
        (folder / name).write_bytes(content)
    with closing(AskedTable(folder / "t.parquet", world.rows)) as table:
        for offered in offers_:
            yield from _faults(offered, table, folder, totals)


def _faults(offered: Offered, table: AskedTable, folder: Path, totals: AudienceTotals) -> Iterator[str]:
    whole = _read(offered.policy, folder)
    given_ = (NAME, str(offered.values[0]))
    seen, alone = seen_by(whole, AskedAs("one", (given_,))), _read(offered.alone, folder)
    texts = [*_texts(offered, whole)]
    totals.questions += len(texts)
    pairs = [(text, _resolved(text, seen), _resolved(text, alone)) for text in texts]
    answered = [each for each in pairs if not isinstance(each[1], str) and not isinstance(each[2], str)]
    mine = [Asked.of(each) for _, each, _ in answered if isinstance(each, Resolution)]
    theirs = [Asked.of(each) for _, _, each in answered if isinstance(each, Resolution)]
    table.hold(range(len(offered.world.rows)))
    met, of_all = table.met(mine), table.met(theirs)
    table.hold(offered.places)
    for (text, one, other), got, more, wanted in zip(answered, met, of_all, table.met(theirs), strict=True):
        totals.fewer += counts(more) != counts(wanted)
        if counts(got) != counts(wanted) or _mechanism(one) != _mechanism(other):
            yield f"{text} is answered as if there were more"
    for _, one, other in pairs:
        if isinstance(one, str) or isinstance(other, str):
            yield from _refused(one, other, table, totals)


def _mechanism(resolution: Resolution | str) -> str:
    return resolution if isinstance(resolution, str) else resolution.parameters.mechanism


def _texts(offered: Offered, whole: Policy) -> Iterator[str]:
    """Yield the questions in SQL; those that cannot be written so, as no row can meet them, are left out."""
    for question in offered.world.questions:
        with suppress(QuestionError):
            yield spelled(question, whole.table("t"), Random(len(offered.world.rows)))


def _resolved(text: str, policy: Policy) -> Resolution | str:
    """Return what a text resolves to, or why it is refused."""
    try:
        return uncut(resolve_question(parse_sql(text, policy), policy, now=NOW))
    except (QuestionError, RefusedByPolicyError) as error:
        return str(error)


def _refused(
    mine: Resolution | str, theirs: Resolution | str, only: AskedTable, totals: AudienceTotals
) -> Iterator[str]:
    """Yield that a refusal tells one world from the other."""
    if mine == theirs:
        totals.refused += 1
    elif isinstance(mine, str) and CONTRADICTION in mine:
        # No row that is offered can meet the conditions: none does.
        totals.empty += 1
        if isinstance(theirs, Resolution) and any(counts(only.met([Asked.of(theirs)])[0]).values()):
            yield "a question is refused that rows of the audience meet"
    else:
        said = [each if isinstance(each, str) else "an answer" for each in (mine, theirs)]
        yield f"refused with {said[0]} instead of {said[1]}"


def _read(policy: dict[str, Any], folder: Path) -> Policy:
    text = json.dumps(policy, ensure_ascii=False).encode()
    return read_policy(text, str(folder / "policy.yaml")).policy

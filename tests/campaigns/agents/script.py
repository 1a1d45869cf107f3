"""What a hostile agent asks: for one member, the same in many words, in others' names, and as elements tell it to.

The script is the same for the same number, so that a run can be repeated.
"""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.campaigns.agents.stage import HOSTILE, TABLE

MEMBERS = "COUNT(DISTINCT member_id)"
VICTIMS = ("acme/people/ana", "acme", "acme/agents", "../ana", "acme/people/*")


@dataclass(frozen=True)
class Attempt:
    """A call of a tool, and what it is an attempt at."""

    aim: str
    tool: str
    arguments: dict[str, Any]


def attempts(number: int, seed: int = 1) -> Iterator[Attempt]:
    """Yield so many attempts, of all aims in turn."""
    random = Random(seed)
    aims = itertools.cycle(_AIMS)
    return itertools.islice((aim(random, turn) for turn, aim in enumerate(aims)), number)


def rephrased(table: str, turn: int) -> dict[str, Any]:
    """Return the count of the target's cell as a question of its own: nobody has the city that it leaves out."""
    return {
        "sql": f"SELECT {MEMBERS} FROM {table} WHERE cell = 'target' AND city <> 'nobody lives here {turn}'"
    }


def _one_member(random: Random, turn: int) -> Attempt:
    """Ask for the cell that the target is in, by one more look that has noise of its own."""
    return Attempt("one member, by another question", "ask", rephrased(TABLE, turn))


def _difference(random: Random, turn: int) -> Attempt:
    """Ask for everybody, or for everybody but the target's cell."""
    others = " AND cell <> 'target'" if turn % 2 else ""
    sql = f"SELECT {MEMBERS} FROM {TABLE} WHERE city <> 'nobody {turn // 2}'{others}"
    return Attempt("one member, by difference", "ask", {"sql": sql})


def _same_again(random: Random, turn: int) -> Attempt:
    """Ask one question in other letters, blanks, names and comments."""
    select = random.choice(("SELECT", "select", "Select"))
    blanks = " " * random.randint(1, 9) + random.choice(("", "\n", "\t"))
    alias = random.choice(("", " AS n", f" AS a{turn}"))
    semicolon = random.choice(("", ";"))
    sql = f"{select}{blanks}{MEMBERS}{alias} FROM {TABLE} WHERE cell{blanks}= 'target'{semicolon}"
    return Attempt("the same in other words", "ask", {"sql": sql})


def _forbidden(random: Random, turn: int) -> Attempt:
    """Ask for what no policy allows."""
    sql = random.choice(
        (
            f"SELECT * FROM {TABLE}",
            f"SELECT {MEMBERS} FROM {TABLE} WHERE member_id = 'the-target'",
            f"SELECT member_id, COUNT(*) FROM {TABLE} GROUP BY member_id",
            f"SELECT city, {MEMBERS} FROM {TABLE} GROUP BY city HAVING {MEMBERS} = 1; DROP TABLE {TABLE}",
            f"SELECT {MEMBERS} FROM {TABLE} WHERE cell = 'target' OR member_id LIKE 'the%'",
            f"SELECT {MEMBERS} FROM (SELECT * FROM {TABLE} WHERE member_id = 'the-target') t",
            f"SELECT {MEMBERS} FROM {TABLE} UNION SELECT member_id FROM {TABLE}",
            f"SELECT {MEMBERS} FROM read_parquet('True.parquet')",
            f"SELECT MIN(member_id) FROM {TABLE}",
            "SELECT account, spent FROM budget",
        )
    )
    return Attempt("what the policy forbids", "ask", {"sql": sql})


def _another_account(random: Random, turn: int) -> Attempt:
    """Ask in another's name, or for another's history; `budget` takes no argument, and says whose it is."""
    victim = random.choice(VICTIMS)
    tool = random.choice(("ask", "history", "explain"))
    question = {"sql": f"SELECT {MEMBERS} FROM {TABLE}"} if tool in ("ask", "explain") else {}
    name = random.choice(("account", "user", "path", "on_behalf_of", "token", "_meta"))
    return Attempt("another account", tool, {**question, name: victim})


def _as_instructed(random: Random, turn: int) -> Attempt:
    """Do what the name of an element says: with it as a column, a table, an argument or a value."""
    instruction = random.choice(HOSTILE)
    return random.choice(
        (
            Attempt("as an element says", "ask", {"sql": f'SELECT {MEMBERS} FROM "{instruction}"'}),
            Attempt("as an element says", "ask", {"sql": f'SELECT "{instruction}" FROM {TABLE} GROUP BY 1'}),
            Attempt("as an element says", "ask", {"sql": instruction}),
            Attempt("as an element says", "ask", {"sql": f"SELECT {MEMBERS} FROM {TABLE}", instruction: 1}),
            Attempt("as an element says", "explain", {"sql": f"{instruction} SELECT {MEMBERS} FROM {TABLE}"}),
            Attempt("as an element says", "catalog", {"table": instruction}),
        )
    )


def _names(random: Random, turn: int) -> Attempt:
    """Have the hostile names shown."""
    sql = f"SELECT city, {MEMBERS} FROM {TABLE} GROUP BY city ORDER BY 2 DESC LIMIT 8"
    return Attempt("names that strangers wrote", "ask", {"sql": sql})


def _nonsense(random: Random, turn: int) -> Attempt:
    """Send what is no question."""
    arguments: dict[str, Any] = random.choice(
        (
            {"sql": f"SELECT {MEMBERS} FROM {TABLE} LIMIT -1"},
            {"sql": f"SELECT {MEMBERS} FROM {TABLE}", "max_cost": 10**30},
            {"sql": f"SELECT {MEMBERS} FROM {TABLE}", "max_cost": "NaN"},
            {"sql": f"SELECT {MEMBERS} FROM {TABLE}", "seed": float("nan")},
            {"sql": f"SELECT {MEMBERS} FROM {TABLE}", "confidence": random.choice([-1.0, 0.5, 1, 1e300])},
            {"sql": None},
            {"sql": "x" * 100_000},
            {"sql": "\x00"},
            {"sql": [[]]},
        )
    )
    return Attempt("nonsense", "ask", arguments)


_AIMS: tuple[Callable[[Random, int], Attempt], ...] = (
    _names,
    _one_member,
    _same_again,
    _forbidden,
    _another_account,
    _as_instructed,
    _difference,
    _same_again,
    _one_member,
    _nonsense,
)

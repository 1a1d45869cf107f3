"""The errors of this package.

    ValueError
    ├── PolicyError             the policy file has faults; seen by operators
    └── QuestionError           a question is malformed; seen by the analyst
    Exception
    └── RefusedByPolicyError    a well-formed question asks for what the policy does not allow

Messages about questions never repeat a literal of the question: they end up in logs, which must not contain filters.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

MAXIMUM_PROBLEMS = 100


@dataclass(frozen=True)
class Problem:
    """A fault or warning at one location in a policy file; `key` is the path of keys to it, empty if there is none."""

    source: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (f"{self.source}:{self.line}", self.key, self.message) if part)


def first_problems(problems: Iterable[Problem], count: int) -> tuple[Problem, ...]:
    """Return the first hundred of so many problems, and behind them how many there are more."""
    shown = tuple(islice(problems, MAXIMUM_PROBLEMS))
    if count <= len(shown):
        return shown
    last = shown[-1]
    return (*shown, Problem(last.source, last.line, "", f"and {count - len(shown):,} more"))


class PolicyError(ValueError):
    """A policy with faults. `problems` has all of them, or the first hundred; the message has one line for each."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class QuestionError(ValueError):
    """A malformed question. `field` names the part of the question that is wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Rule(StrEnum):
    """Why the policy refuses a question."""

    TABLE = "table"
    COLUMN = "column"
    MEMBER_COLUMN = "member_column"
    GROUP_BY = "group_by"
    FILTER = "filter"
    MEASURE = "measure"
    TIME_COLUMN = "time_column"
    AUDIENCE = "audience"


class RefusedByPolicyError(Exception):
    """A question that the policy does not allow: the rule, and a message that names what was asked for.

    Names that the policy does not list get the same message whether or not they exist in the engine. `name` is the
    column that was asked for, where the message may not repeat it: a place in a text is found by it.
    """

    def __init__(self, rule: Rule, message: str, name: str = "") -> None:
        super().__init__(message)
        self.rule = rule
        self.name = name

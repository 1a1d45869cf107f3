"""What a text of SQL says, before anything is known of a policy: a tree whose nodes know where they stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from dp_service.queries.sql.tokens import Token
from dp_service.terms import Comparison


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a text, by its first token and its last one."""

    first: Token
    last: Token

    @property
    def start(self) -> int:
        """The place of its first character."""
        return self.first.start

    @property
    def end(self) -> int:
        """The place behind its last character."""
        return self.last.end


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name, with the names before it that points divide: schema, table, column."""

    parts: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number as it is written, and whether a sign before it makes it negative."""

    text: str
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A text; `kind`: the word DATE or TIMESTAMP before it, or what it is cast to; empty: none."""

    value: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null(Node):
    """NULL."""


@dataclass(frozen=True, slots=True)
class Star(Node):
    """A star, perhaps with the name of a table before it."""


@dataclass(frozen=True, slots=True)
class Key(Node):
    """What a list, or the values of a percentile, are ordered by."""

    value: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function and its arguments; `distinct`: DISTINCT stands before them; `within`: WITHIN GROUP's order.

    `where` is the condition of FILTER, or of a CASE in the place of the argument.
    """

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    within: Key | None = None
    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class OverAll(Node):
    """The sum of a number over all rows of the answer: SUM(number) OVER ()."""

    number: Expression


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """A value cast to DATE or TIMESTAMP."""

    value: Expression
    to: str


@dataclass(frozen=True, slots=True)
class Product(Node):
    """Numbers multiplied by one another; those that `divides` says are divided by."""

    parts: tuple[Expression, ...]
    divides: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Sum(Node):
    """Numbers added up; those that `adds` does not say are taken away."""

    parts: tuple[Expression, ...]
    adds: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class OfMember(Node):
    """A number of each member, of a statement that groups by the member."""

    number: Call
    member: Name


@dataclass(frozen=True, slots=True)
class Row(Node):
    """Several expressions in parentheses."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class All(Node):
    """Conditions joined by AND."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any(Node):
    """Conditions joined by OR."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """NOT before a condition."""

    condition: Expression


@dataclass(frozen=True, slots=True)
class Compared(Node):
    """Two expressions compared."""

    comparison: Comparison
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Listed(Node):
    """IN with values."""

    value: Expression
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between(Node):
    """BETWEEN two ends, both included."""

    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Like(Node):
    """LIKE, or ILIKE if it `folds` the case of letters; behind `escape` a sign means itself, empty: there is none."""

    value: Expression
    pattern: Expression
    folds: bool
    escape: str


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """IS NULL."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE: each condition with its value, and what follows ELSE; None: there is no ELSE."""

    conditions: tuple[Expression, ...]
    values: tuple[Expression, ...]
    otherwise: Expression | None


Expression = (
    Name
    | Number
    | Text
    | Truth
    | Null
    | Star
    | Call
    | Case
    | OverAll
    | Cast
    | Product
    | Sum
    | OfMember
    | Row
    | All
    | Any
    | Not
    | Compared
    | Listed
    | Between
    | Like
    | IsNull
    | Case
)


@dataclass(frozen=True, slots=True)
class Item:
    """What is selected, and its alias."""

    value: Expression
    alias: Token | None = None


@dataclass(frozen=True, slots=True)
class Derived(Node):
    """A statement in the place of a table, and the name it has there."""

    select: Select
    alias: Token | None


@dataclass(frozen=True, slots=True)
class TableName(Node):
    """A table, with the names before it, and its alias."""

    parts: tuple[Token, ...]
    alias: Token | None


@dataclass(frozen=True, slots=True)
class Grouping(Node):
    """GROUP BY: keys; `all_selected`: by everything that is selected and no number."""

    keys: tuple[Expression, ...] = ()
    all_selected: bool = False


@dataclass(frozen=True, slots=True)
class Select(Node):
    """A statement: its clauses, None or empty where there is none; `limit` is LIMIT's, TOP's or FETCH's number."""

    items: tuple[Item, ...]
    distinct: Token | None = None
    source: Derived | TableName | None = None
    where: Expression | None = None
    group: Grouping | None = None
    having: Expression | None = None
    order: tuple[Key, ...] = ()
    limit: Number | None = None


def conjunction(root: Expression) -> Iterator[Expression]:
    """Yield the parts of nested ANDs."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, All):
            waiting += reversed(node.parts)
        else:
            yield node


def parts_of(node: Expression) -> Iterator[Expression]:
    """Yield the expressions that an expression consists of."""
    for field in fields(node):
        value = getattr(node, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, Node):
                yield each  # type: ignore[misc]


def without_places(node: Expression) -> tuple[object, ...]:
    """Return what an expression says, equal for the same one elsewhere in the text."""
    said: list[object] = [type(node).__name__]
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name not in ("first", "last"):
            parts = value if isinstance(value, tuple) else (value,)
            said.append(tuple(_without_place(each) for each in parts))
    return tuple(said)


def _without_place(part: object) -> object:
    match part:
        case Node():
            return without_places(part)  # type: ignore[arg-type]
        case Token():
            return part.value
        case _:
            return part


def size_of(node: Expression) -> int:
    """Return of how many expressions an expression consists, itself one of them."""
    waiting, size = [node], 0
    while waiting:
        waiting += parts_of(waiting.pop())
        size += 1
    return size


def with_parts(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression whose parts are changed."""
    changed: dict[str, object] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changed[field.name] = change(value)  # type: ignore[arg-type]
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changed[field.name] = tuple(map(change, value))
    return replace(node, **changed) if changed else node  # type: ignore[arg-type]

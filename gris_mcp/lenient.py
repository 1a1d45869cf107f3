"""Arguments as language models write them, brought into the form that the schemas state, where they have one meaning.

A number may come as a text (`"3"`), as 3.0, a list as its only entry or as JSON text, nothing as null or as an empty
text, a condition with an operator, a statement in a block of code, a text as the object that shows it where it has
characters that cannot be seen. What has no meaning, or two, is passed on as it is, and validation refuses it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticCustomError

from pinot_connector.json_values import MOST_EXACT_INTEGER

COUNT = "count"
FORM = "form"
LARGE = "large_integer"
"""Types of errors: of values that have no form which a column has, and of integers that are to be texts."""

_NUMBER = re.compile(r"-?[0-9]{1,19}(\.0+)?")
_FENCE = "```"
_QUOTES = ("'", '"', "`")
_CALL = re.compile(r"\s*(sum|avg|average|mean)\s*[:(]\s*([^():]+?)\s*\)?", re.IGNORECASE)
_MEASURES = {
    **dict.fromkeys(
        ("distinct_members", "member", "members", "people", "persons", "users"), "distinct_members"
    ),
    **dict.fromkeys(("events", "event", "row", "rows"), "events"),
}
_OPERATORS = {
    **dict.fromkeys(("one_of", "in", "equals", "equal", "eq", "=", "==", "is", "value", "values"), "one_of"),
    **dict.fromkeys(
        ("none_of", "not_in", "nin", "not_equals", "not_equal", "ne", "neq", "!=", "<>"), "none_of"
    ),
    **dict.fromkeys(("at_least", "gte", "ge", ">=", "min"), "at_least"),
    **dict.fromkeys(("at_most", "lte", "le", "<=", "max"), "at_most"),
    **dict.fromkeys(("more_than", "greater_than", "gt", ">", "after"), "more_than"),
    **dict.fromkeys(("less_than", "lt", "<", "before"), "less_than"),
    "between": "between",
    "column": "column",
}
_ENDS = ("at_least", "at_most")
# A condition on a column as one text, such as ">= 4".
_COMPARISONS = ("<=", ">=", "<>", "!=", "==", "=", "<", ">")
_COMPARED = re.compile(rf"({'|'.join(_COMPARISONS)})\s*(\S.*)", re.DOTALL)
_TRIPLE = 3
_EXACT = "exact"
_RANKS = {"median": "0.5", "minimum": "min", "maximum": "max"}


def exact(value: Any) -> Any:
    """Return the text of an object by which an answer shows one with characters that cannot be seen."""
    if not isinstance(value, dict) or set(value) != {"shown", _EXACT} or not isinstance(value[_EXACT], str):
        return value
    try:
        written = json.loads(value[_EXACT])
    except (ValueError, RecursionError):
        return value
    return written if isinstance(written, str) else value


def scalar(value: Any) -> Any:
    """Return a value of a column: whole numbers are integers.

    Raises:
        PydanticCustomError: It is no text, integer or truth value, or a number that a client may have changed.
    """
    value = exact(value)
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, int) and abs(value) > MOST_EXACT_INTEGER:
        problem = f"expected integers beyond {MOST_EXACT_INTEGER} as texts of digits: as numbers clients change them"
        raise PydanticCustomError(LARGE, problem)
    if not isinstance(value, str | int):
        raise PydanticCustomError(FORM, "expected a text, a whole number, or true or false")
    return value


def number(value: Any) -> Any:
    """Return a number, which may come as a text or as 3.0; None for the default."""
    if isinstance(value, str):
        value = value.strip() or None
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value.partition(".")[0])
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fraction(value: Any) -> Any:
    """Return a number that need not be whole."""
    if not isinstance(value, str):
        return value
    try:
        return float(value) if value.strip() else None
    except ValueError:
        return value


def truth(value: Any) -> Any:
    """Return a truth value; None for the default."""
    named = {"true": True, "false": False, "": None}
    return named.get(value.strip().lower(), value) if isinstance(value, str) else value


def text(value: Any) -> Any:
    """Return a text; None for the default."""
    value = exact(value)
    return None if isinstance(value, str) and not value.strip() else value


def number_text(value: Any) -> Any:
    """Return a number as a text; None for the default."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else text(value)


def sql(value: Any) -> Any:
    """Return a statement, without the marks of a block of code around it; None for none."""
    value = exact(value)
    if not isinstance(value, str):
        return value
    written = value.strip()
    if len(written) < 2 * len(_FENCE) or not (written.startswith(_FENCE) and written.endswith(_FENCE)):
        return text(value)
    language, _, statement = written.removeprefix(_FENCE).removesuffix(_FENCE).partition("\n")
    return statement.strip() if language.strip().lower() in ("", "sql") else value


def name(value: Any) -> Any:
    """Return a name that is empty by default."""
    return "" if value is None else exact(value)


def values(value: Any) -> Any:
    """Return a list; one entry may stand for it."""
    value = _read(value)
    return value if isinstance(value, list) or value is None else [value]


def names(value: Any) -> Any:
    """Return a list of names, or of functions of a row; in one text they are separated by commas."""
    value = _read(value)
    if value is None:
        return []
    return (
        [each.strip() for each in _between_commas(value) if each.strip()] if isinstance(value, str) else value
    )


def _between_commas(written: str) -> Iterator[str]:
    """Yield the parts of a text between commas that are in no brackets and in no quotes."""
    depth, quote, begin = 0, "", 0
    for place, sign in enumerate(written):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in _QUOTES:
            quote = sign
        elif sign == "," and not depth:
            yield written[begin:place]
            begin = place + 1
        else:
            depth += (sign == "(") - (sign == ")")
    yield written[begin:]


def texts(value: Any) -> Any:
    """Return a list of texts, of which one may stand for it."""
    value = _read(value)
    return [] if value in (None, "") else [value] if isinstance(value, str) else value


def measure(value: Any) -> Any:
    """Return what is counted."""
    return _MEASURES.get(_word(value), value) if text(value) is not None else None


def bucket(value: Any) -> Any:
    """Return a bucket of time; its length in small letters."""
    if not isinstance(value, str):
        return value
    length, colon, column = value.partition(":")
    return f"{length.strip().lower()}{colon}{column.strip()}" or None


def columns(of: str, value: Any) -> Any:
    """Return the columns of a function, "sum" or "avg", which may be written with it."""
    found = names(value)
    if not isinstance(found, list):
        return found
    return [_aggregate(each).removeprefix(f"{of}:") if isinstance(each, str) else each for each in found]


@dataclass(frozen=True)
class Numbers:
    """The numbers of a question, by the names that a list is ordered by and conditions are on.

    Attributes:
        counted: What counts are of.
        sums: The columns that are summed.
        averages: The columns of averages.
    """

    counted: str
    sums: Sequence[str] = ()
    averages: Sequence[str] = ()

    def order(self, stated: str | None) -> str | None:
        """Return the number by which a list is ordered, which is always descending; None: none is stated."""
        named = re.sub(r"\s+desc(ending)?\s*$", "", stated or "", flags=re.IGNORECASE).strip()
        return self._named(named) if named else None

    def having(self, condition: str) -> str:
        """Return a condition on what is released, with its name as a question has it."""
        found = re.fullmatch(r"\s*([^<>=!]+?)\s*([<>=!].*)", condition)
        return condition if found is None else f"{self._named(found[1])} {found[2]}"

    def _named(self, value: str) -> str:
        """Return the name of a number: that of a column alone means its only number."""
        if value.lower() == COUNT or _MEASURES.get(_word(value)) == self.counted:
            return COUNT
        of = [name for name, asked in (("sum", self.sums), ("avg", self.averages)) if value in asked]
        return f"{of[0]}:{value}" if len(of) == 1 else _aggregate(value)


def quantiles(value: Any) -> Any:
    """Return the quantiles of columns, which may be an object by column."""
    value = _read(value)
    if isinstance(value, dict):
        is_one = "column" in value
        value = [value] if is_one else [{"column": each, "of": of} for each, of in value.items()]
    return [] if value in (None, "") else value


def ranks(value: Any) -> Any:
    """Return quantiles as texts: decimal numbers, min, max."""
    found = values(value)
    return [_rank(each) for each in found] if isinstance(found, list) else found


def with_condition(given: Any) -> Any:
    """Return the arguments of a question: what of where is SQL is a part of its condition."""
    if not isinstance(given, dict):
        return given
    where = _read(exact(given.get("where")))
    entries = list(map(exact, where)) if isinstance(where, list) and not _is_triple(where) else [where]
    written = [each for each in entries if _is_sql(each)]
    own = text(given.get("condition"))
    if not written or not isinstance(own, str | None):
        return given
    all_of = [*written, *([] if own is None else [own])]
    condition = all_of[0] if len(all_of) == 1 else " AND ".join(f"({each})" for each in all_of)
    return {**given, "where": [each for each in entries if not _is_sql(each)], "condition": condition}


def conditions(value: Any) -> Any:
    """Return conditions; an object has those of each column by its name.

    Raises:
        PydanticCustomError: A text is JSON that breaks off.
    """
    value = _read(value)
    if value in (None, "", {}):
        return []
    if isinstance(value, dict | str) or _is_triple(value):
        value = [value]
    return [one for each in value for one in _conditions(_read(each))] if isinstance(value, list) else value


def _is_sql(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] not in ("", "[", "{")


def _is_triple(value: Any) -> bool:
    """Return whether a list is a column, an operator and a value."""
    return (
        isinstance(value, list)
        and len(value) == _TRIPLE
        and all(isinstance(each, str) for each in value[:2])
        and _operator(value[1]) in _OPERATORS
    )


def _conditions(value: Any) -> Iterator[Any]:
    if isinstance(value, str):
        raise PydanticCustomError(FORM, "expected conditions; what begins as JSON breaks off or is none")
    if _is_triple(value):
        value = {"column": value[0], value[1]: value[2]}
    if not isinstance(value, dict) or "column" in value or set(map(_operator, value)) <= _OPERATORS.keys():
        yield _condition(value)
        return
    for column, wanted in value.items():
        yield _condition({"column": column, **_wanted(exact(wanted))})


def _wanted(value: Any) -> dict[str, Any]:
    """Return what is wanted of a column: values, or a comparison in one text or as an operator and its value."""
    if isinstance(value, dict):
        return value
    compared = _COMPARED.fullmatch(value.strip()) if isinstance(value, str) else None
    if compared is not None:
        return {compared[1]: _unquoted(compared[2])}
    if isinstance(value, list) and len(value) == _TRIPLE - 1 and value[0] in _COMPARISONS:
        return {value[0]: value[1]}
    return {"one_of": value}


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES
    return value[1:-1] if is_quoted else value


def _condition(value: Any) -> Any:
    """Return a condition under the names that the schema has.

    Raises:
        PydanticCustomError: One of them is given twice.
    """
    if not isinstance(value, dict):
        return value
    given = dict(value)
    for operator, operand in itertools.product(("op", "operator"), ("value", "values")):
        if isinstance(given.get(operator), str) and operand in given:
            given[given.pop(operator)] = given.pop(operand)
    found: list[tuple[str, Any]] = []
    for each, wanted in given.items():
        meant = _OPERATORS.get(_operator(each), each)
        if meant == "between" and isinstance(wanted, list) and len(wanted) == len(_ENDS):
            found += zip(_ENDS, wanted, strict=True)
        else:
            found.append((meant, wanted))
    if len(dict(found)) < len(found) or len(given) < len(value) - 1:
        raise PydanticCustomError(FORM, "expected each kind of condition on a column once in an entry")
    return dict(found)


def _operator(value: str) -> str:
    return _word(value).removeprefix("$")


def _rank(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    if (percent := re.fullmatch(r"p([0-9]{2})|([0-9]{1,2})%", word)) is not None:
        return f"0.{int(percent[1] or percent[2]):02d}"
    return _RANKS.get(word, word)


def _aggregate(value: str) -> str:
    found = _CALL.fullmatch(value)
    return value if found is None else f"{'sum' if found[1].lower() == 'sum' else 'avg'}:{found[2]}"


def _word(value: Any) -> str:
    return re.sub(r"[\s-]+", "_", value.strip().lower()) if isinstance(value, str) else ""


def _read(value: Any) -> Any:
    """Return what a text of JSON says, if it is one of a list or an object."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value, object_hook=exact)
    except (ValueError, RecursionError):
        return value

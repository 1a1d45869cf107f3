"""Arguments as language models write them, brought into the form that the schemas state, where they have one meaning.

A number may come as a text (`"3"`), as 3.0, a list as its only entry or as JSON text, nothing as null or as an empty
text, a condition with an operator, a statement in a block of code. What has no meaning, or two, is passed on as it is,
and validation refuses it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticCustomError

from pinot_connector.json_values import MOST_EXACT_INTEGER

FORM = "form"
"""The type of errors of values that have no form which a column has."""

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
_RANKS = {"median": "0.5", "minimum": "min", "maximum": "max"}


def scalar(value: Any) -> Any:
    """Return a value of a column: whole numbers are integers.

    Raises:
        PydanticCustomError: It is no text, integer or truth value, or a number that a client may have changed.
    """
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, int) and abs(value) > MOST_EXACT_INTEGER:
        problem = f"expected integers beyond {MOST_EXACT_INTEGER} as texts of digits: as numbers clients change them"
        raise PydanticCustomError(FORM, problem)
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
    return None if isinstance(value, str) and not value.strip() else value


def number_text(value: Any) -> Any:
    """Return a number as a text; None for the default."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else text(value)


def sql(value: Any) -> Any:
    """Return a statement, without the marks of a block of code around it; None for none."""
    if not isinstance(value, str):
        return value
    written = value.strip()
    if len(written) < 2 * len(_FENCE) or not (written.startswith(_FENCE) and written.endswith(_FENCE)):
        return text(value)
    language, _, statement = written.removeprefix(_FENCE).removesuffix(_FENCE).partition("\n")
    return statement.strip() if language.strip().lower() in ("", "sql") else value


def name(value: Any) -> Any:
    """Return a name that is empty by default."""
    return "" if value is None else value


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


def order(stated: str | None, counted: str) -> str | None:
    """Return the number by which a list is ordered, which is always descending; None: the count, of what is counted."""
    named = re.sub(r"\s+desc(ending)?\s*$", "", stated or "", flags=re.IGNORECASE).strip()
    return None if not named or _is_count(named, counted) else _aggregate(named)


def having(condition: str, counted: str) -> str:
    """Return a condition on what is released, with its name as a question has it: the count is of what is counted."""
    found = re.fullmatch(r"\s*([^<>=!]+?)\s*([<>=!].*)", condition)
    if found is None:
        return condition
    return f"{'count' if _is_count(found[1], counted) else _aggregate(found[1])} {found[2]}"


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
    """Return the arguments of a question: where as a text of SQL is a condition, unless there is one."""
    if not isinstance(given, dict) or text(given.get("condition")) is not None:
        return given
    where = given.get("where")
    if not isinstance(where, str) or not where.strip() or _read(where) is not where:
        return given
    return {**{name: value for name, value in given.items() if name != "where"}, "condition": where}


def conditions(value: Any) -> Any:
    """Return conditions; an object has those of each column by its name."""
    value = _read(value)
    if value in (None, "", {}):
        return []
    if isinstance(value, dict):
        value = [value]
    return [one for each in value for one in _conditions(_read(each))] if isinstance(value, list) else value


def _conditions(value: Any) -> Iterator[Any]:
    if not isinstance(value, dict) or "column" in value or set(map(_operator, value)) <= _OPERATORS.keys():
        yield _condition(value)
        return
    for column, wanted in value.items():
        yield _condition({"column": column, **(wanted if isinstance(wanted, dict) else {"one_of": wanted})})


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


def _is_count(value: str, counted: str) -> bool:
    return value.lower() == "count" or _MEASURES.get(_word(value)) == counted


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
        return json.loads(value)
    except (ValueError, RecursionError):
        return value

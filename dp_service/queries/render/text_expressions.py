"""Texts as SQL: whether a text has a pattern, and parts of it."""

from __future__ import annotations

from functools import reduce

from dp_service.queries.canonical_columns import PatternCondition
from dp_service.queries.filters import regular_expression
from dp_service.queries.render.texts import pinot_text, standard_text
from dp_service.queries.text_functions import Folded, Piece, Prefix, TextFunction


def pinot_case_text(text: str) -> str:
    """Cast it: Calcite may fill up the shorter ones of several texts with blanks."""
    return f"CAST({pinot_text(text)} AS VARCHAR)"


def spark_text(text: str) -> str:
    """Write a text for Spark, which reads a backslash as an escape.

    A doubled quote would vanish: for Spark before 4.0 it ends one text and begins the next. Before parsing, Spark also
    replaces `${env:NAME}` by the server's environment variable, even inside texts; a dollar sign written by its code
    point prevents that.
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def spark_well_formed(expression: str) -> str:
    """Compare a text with what Java reads: it replaces bytes that are not UTF-8.

    Texts that differ only in such bytes would arrive as the same text.
    """
    return f"encode({expression}, 'UTF-8') = CAST({expression} AS BINARY)"


def duckdb_matches(text: str, condition: PatternCondition) -> str:
    """Write whether a text has a pattern."""
    expression = regular_expression(condition.pattern, folds=condition.folds, backtracks=False)
    return f"{'NOT ' * condition.negated}regexp_full_match({text}, {standard_text(expression)}, 's')"


def _whole_in_java(condition: PatternCondition, flags: str = "s") -> str:
    return (
        rf"(?{flags})\A(?:{regular_expression(condition.pattern, folds=condition.folds, backtracks=True)})\z"
    )


def spark_matches(text: str, condition: PatternCondition) -> str:
    """Write whether a text has a pattern."""
    return f"{text} {'NOT ' * condition.negated}RLIKE {spark_text(_whole_in_java(condition))}"


def pinot_matches(text: str, condition: PatternCondition) -> str:
    """Extract the text itself, or nothing: LIKE ignores the case of letters, and indexes read expressions otherwise.

    No pattern that is asked for has the empty text. What stands for nothing is not named: Pinot 0.11 would take the
    expression for it. Servers that are set up to use RE2J refuse expressions that look for a part once, whatever rows
    they have; `'%a%'` and `'a%'` are none. Pinot 1.4 ignores the case of letters here too, unless a flag says
    otherwise.
    """
    extracted = f"REGEXP_EXTRACT({text}, {standard_text(_whole_in_java(condition, 's-i'))})"
    return f"{extracted} {'=' if condition.negated else '<>'} ''"


def duckdb_part_of_text(text: str, function: TextFunction) -> str:
    """Fold by hand: an engine's own functions of letters fold others than A to Z, and not the same."""
    match function:
        case Folded(letters=(old, new)):
            return f"translate({text}, '{old}', '{new}')"
        case Prefix(length=length):
            return f"left({text}, {length})"
        case Piece(separator=separator, place=place):
            return f"split_part({text}, {standard_text(separator)}, {place})"


def spark_part_of_text(text: str, function: TextFunction) -> str:
    """Fold by hand; characters are code points, and a text without the piece has an empty one."""
    match function:
        case Folded(letters=(old, new)):
            return f"translate({text}, '{old}', '{new}')"
        case Prefix(length=length):
            return f"substring({text}, 1, {length})"
        case Piece(expression=expression):
            pattern = spark_text(rf"\A{expression}")
            return f"regexp_extract({text}, {pattern}, 1)"


def pinot_part_of_text(text: str, function: TextFunction) -> str:
    """Extract, and replace letters one by one: Pinot's own functions count UTF-16 units, and fold more letters."""
    match function:
        case Folded(letters=letters):
            return reduce(
                lambda found, each: f"replace({found}, '{each[0]}', '{each[1]}')",
                zip(*letters, strict=True),
                text,
            )
        case Prefix(expression=expression):
            pattern = standard_text(rf"(?s)\A{expression}")
            return f"REGEXP_EXTRACT({text}, {pattern})"
        case Piece(expression=expression):
            pattern = standard_text(rf"(?-i)\A{expression}")
            return f"REGEXP_EXTRACT({text}, {pattern}, 1)"

"""Messages of what decides which elements a question shows, and what its columns are called."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from dp_service.parameters.release import HavingCondition
from dp_service.queries.dimensions import labels_of
from dp_service.queries.structured import HistogramQuery

_NAME_CHARACTERS = 32


def name_of_conditions(conditions: Sequence[HavingCondition]) -> str:
    """Return a name for conditions, the same only for equal ones; empty for none.

    It is no text of theirs: what a question compares with is nobody's business but the asker's.
    """
    if not conditions:
        return ""
    written = repr([[each.aggregate, each.comparison.name, str(each.bound)] for each in conditions]).encode()
    return hashlib.sha256(b"gris/having/v1:" + written).hexdigest()[:_NAME_CHARACTERS]


def column_aliases(query: HistogramQuery, names: Sequence[str]) -> tuple[str | None, ...]:
    """Return the alias of each column; a function has a name that says what it is, if nothing else has that.

    Args:
        query: The question.
        names: The names of the columns in the answer.
    """
    labels = labels_of(query.dimensions)
    if not any(labels):
        return query.aliases
    aliases = query.aliases or (None,) * len(names)
    numbers = (query.count_alias, *(each.alias for each in query.aggregates))
    taken = Counter((each or "").casefold() for each in (*names, *aliases, *numbers, *labels))
    return tuple(
        alias or (label if label is not None and taken[label] == 1 else None)
        for label, alias in zip(labels, aliases, strict=True)
    )

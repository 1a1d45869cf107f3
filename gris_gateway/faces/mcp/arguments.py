"""The arguments of the tools, with their schemas.

No tool takes an account: whose budget pays follows from the token alone.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_SQL_CHARACTERS = 262_144
MAX_NAME_CHARACTERS = 1000
MOST_RELEASES = 20
DEFAULT_RELEASES = 5


class Arguments(BaseModel):
    """Arguments of a tool: others are refused, and so are values of another type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Nothing(Arguments):
    """A tool without arguments."""


class CatalogArguments(Arguments):
    """What to list."""

    table: Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)] = Field(
        "", description="The only table to describe, with the values of its domains; empty: all."
    )


class HistoryArguments(Arguments):
    """How much to list."""

    most: int = Field(DEFAULT_RELEASES, ge=1, le=MOST_RELEASES, description="How many answers, newest first.")


class Question(Arguments):
    """A question in SQL."""

    sql: str = Field(
        max_length=MAX_SQL_CHARACTERS,
        description="One SELECT about a table of the catalogue, which has questions of each.",
    )
    max_cost: int | None = Field(
        None,
        ge=0,
        lt=2**63,
        description="Refuse the question if it may cost more information units; repeats stay free.",
    )


class Asked(Question):
    """A question that is asked."""

    confidence: float | None = Field(
        None, gt=0.5, lt=1, description="Of the intervals; null: that of the gateway, usually 0.95."
    )

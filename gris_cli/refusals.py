"""Why a question was refused, and what it would need now: by prices and balances that its account may see anyhow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from google.protobuf.json_format import MessageToDict
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import question_pb2

from gris_cli.budget_formatting import format_shortfall
from gris_cli.clients import Prices, gateway_of
from gris_cli.flags import ConnectionFlags
from gris_cli.terminal import print_json, say, say_all
from pinot_connector import formats
from pinot_connector.budgets import Cost, Level, Mode, Share, largest_k, shortfall_of
from pinot_connector.errors import GrisError, Shortfall
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.json_values import to_json


@dataclass(frozen=True)
class Missing:
    """What one limit lacks: by how much it would have to be raised, and from when on waiting helps; None: never."""

    shortfall: Shortfall
    limit: int

    @property
    def raised_to(self) -> int:
        """The smallest limit that holds the question now."""
        return self.limit + self.shortfall.requested - self.shortfall.remaining

    @property
    def way_out(self) -> str:
        """What would help, in words."""
        of = f"{self.shortfall.unit} of {self.shortfall.name}"
        until = self.shortfall.refreshes_at
        if self.shortfall.requested > self.limit:
            wait = "waiting does not help: the question may cost more than the whole limit"
        elif until is None:
            wait = "waiting does not help: the budget is never refreshed"
        else:
            wait = f"wait until {formats.instant(until)}, when what was spent first counts no more"
        return f"a limit of {self.raised_to:,} {of}, now {self.limit:,}; or {wait}"

    def to_dict(self) -> dict[str, Any]:
        """Return this in terms of JSON."""
        return {**to_json(self.shortfall), "limit": self.limit, "limit_needed": self.raised_to}


@dataclass(frozen=True)
class Needed:
    """What a question would need now. `refusal` is why it would be refused whatever its budget; empty: it would not."""

    refusal: str = ""
    price: Cost | None = None
    missing: tuple[Missing, ...] = ()
    cheaper: tuple[str, ...] = ()

    @classmethod
    def of(cls, prices: Prices, question: question_pb2.Question, *, is_refused: bool) -> Needed:
        """Return what a question would need now.

        Args:
            prices: What prices questions.
            question: The question; one without content was not kept.
            is_refused: It is known that it was refused; then why it would be now is no error.

        Raises:
            GrisError: It would be refused whatever its budget, or a service does not answer.
        """
        if question.WhichOneof("form") is None:
            return cls("the question was too long to be kept: ask again with it")
        try:
            explanation = prices.explain(question)
        except GrisError as error:
            if not is_refused:
                raise
            return cls(str(error))
        missing = tuple(_missing(explanation.shares, prices.levels() if explanation.shares else ()))
        cheaper = _cheaper(prices, question, explanation.worst_case_cost, missing) if missing else ()
        return cls("", explanation.worst_case_cost, missing, tuple(cheaper))


def fetch_refusal(flags: ConnectionFlags, request_id: str) -> app_pb2.GetRefusalResponse:
    """Return a refused question of an account.

    Raises:
        typer.BadParameter: No gateway is named.
        GrisError: The gateway keeps no such question, or does not answer.
    """
    if not flags.gateway:
        raise typer.BadParameter(
            "--gateway or GRIS_GATEWAY says which gateway refused the request; without one, ask with the question"
        )

    async def fetched() -> app_pb2.GetRefusalResponse:
        async with AsyncGatewayClient(gateway_of(flags), account=flags.account or None) as client:
            return await client.refusal(request_id)

    return asyncio.run(fetched())


def print_refusal(refused: app_pb2.GetRefusalResponse | None, needed: Needed, *, as_json: bool) -> None:
    """Print why a question was refused, if it was, and what it would need now."""
    if as_json:
        facts = {
            "refused": None if refused is None else _facts(refused),
            "now": {
                "refused": needed.refusal,
                "cost": to_json(needed.price),
                "missing": [each.to_dict() for each in needed.missing],
                "cheaper": list(needed.cheaper),
            },
        }
        print_json(facts)
        return
    if refused is not None:
        _say_refusal(refused)
    say_all("now", needed.refusal.splitlines())
    if needed.price is not None:
        say(
            "now",
            f"it costs at most {formats.cost(needed.price)}" + ("" if needed.missing else ", which fits"),
        )
    say_all("missing", (format_shortfall(each.shortfall) for each in needed.missing))
    say_all("needed", (each.way_out for each in needed.missing))
    say_all("cheaper", needed.cheaper)


def _say_refusal(refused: app_pb2.GetRefusalResponse) -> None:
    at = refused.refused_at.ToDatetime()
    # What points at a place in the question stands in lines of its own.
    say_all(
        "refused", (f"{formats.instant(at)}, {refused.refusal.reason}", *refused.refusal.message.splitlines())
    )
    say_all("missing then", (format_shortfall(shortfall_of(each)) for each in refused.refusal.shortfalls))
    if refused.refusal.largest_k:
        say("", f"with LIMIT {refused.refusal.largest_k} (k) it would have fitted then")


def _facts(refused: app_pb2.GetRefusalResponse) -> dict[str, Any]:
    return {
        "refused_at": refused.refused_at.ToJsonString(),
        "question": MessageToDict(refused.question, preserving_proto_field_name=True),
        "reason": refused.refusal.reason,
        "message": refused.refusal.message,
        "shortfalls": [to_json(shortfall_of(each)) for each in refused.refusal.shortfalls],
        "largest_k": refused.refusal.largest_k or None,
    }


def _missing(shares: Sequence[Share], levels: Sequence[Level]) -> Iterator[Missing]:
    ends = {(level.path, level.purpose): level.window_end for level in levels}
    for each in shares:
        if each.mode is Mode.ENFORCE and each.cost > each.remaining:
            end = ends.get((each.path, each.purpose))
            short = Shortfall(each.path, each.unit, each.cost, each.remaining, end, each.purpose)
            yield Missing(short, each.limit)


def _cheaper(
    prices: Prices, question: question_pb2.Question, price: Cost, missing: Sequence[Missing]
) -> Iterator[str]:
    """Yield forms of the question that cost less; of SQL none is known."""
    asked = question.structured
    if question.WhichOneof("form") != "structured":
        return
    if asked.HasField("k") and asked.k > 1:
        one_less = question_pb2.Question()
        one_less.CopyFrom(question)
        one_less.structured.k -= 1
        each = price.information - prices.explain(one_less).worst_case_cost.information
        fitting = largest_k([missed.shortfall for missed in missing], asked.k, max(0, each))
        if fitting is not None:
            yield f"with --k {fitting} it would fit now"
    if not asked.omit_counts:
        names = question_pb2.Question()
        names.CopyFrom(question)
        names.structured.omit_counts = True
        try:
            found = prices.explain(names).worst_case_cost
        except GrisError:
            # Not every question has a list without counts.
            return
        if found.information < price.information:
            yield f"with --no-counts it costs at most {formats.cost(found)}"

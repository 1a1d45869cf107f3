"""`gris policy diff`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.policy.check import read_valid

if TYPE_CHECKING:
    from gris_data.policy.diff import AskedOfBoth, PolicyDiff, Priced, Refused
    from gris_data.policy.field_changes import Change, Effect

_HEADS = {
    "weaker": "Promises less",
    "stronger": "Promises more",
    "refused": "Refuses what could be asked",
    "answerable": "Answers what could not be asked",
    "other": "Changes besides",
}
ANY = "any"


@with_flags
def diff(
    *,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The policy that is served (YAML).")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The policy that is to be served instead.")],
    fail_on: str = flag(
        "weaker,refused,currency",
        "What ends with exit code 1, separated by commas: weaker, stronger, refused, answerable, dearer, cheaper, "
        "paid_again, currency, other, or any; empty: nothing does.",
        metavar="EFFECTS",
    ),
    as_json: bool,
) -> None:
    """Show what another version of a policy promises, answers and costs, and which kept answers are no longer given.

    Exit code 1 if something differs that --fail-on names. No data are read.
    """
    from gris_cli.failures import EXIT_UNEXPECTED
    from gris_cli.terminal import print_json
    from gris_data.policy.diff import diff as diff_of

    failing = _effects(fail_on)
    files = [
        read_valid(file, as_json=as_json, argument=argument)
        for file, argument in ((old, "OLD"), (new, "NEW"))
    ]
    found = diff_of(*(each.policy for each in files), now=int(time.time()))
    failed = sorted(found.effects & failing)
    if as_json:
        print_json({"old": str(old), "new": str(new), **_json(found), "failed_on": failed})
    else:
        _print(found, (old, new), failed)
    if failed:
        raise typer.Exit(EXIT_UNEXPECTED)


def _effects(text: str) -> frozenset[Effect]:
    from gris_data.policy.field_changes import Effect

    names = [each.strip() for each in text.split(",") if each.strip()]
    if ANY in names:
        return frozenset(Effect)
    for each in names:
        if each not in list(Effect):
            raise typer.BadParameter(f"--fail-on: expected some of {', '.join(Effect)}, or {ANY}, got {each}")
    return frozenset(map(Effect, names))


def _print(found: PolicyDiff, files: tuple[Path, Path], failed: Sequence[str]) -> None:
    from gris_cli.formatting import format_currency
    from gris_cli.terminal import head, say, show

    say("old", str(files[0]))
    say("new", str(files[1]))
    for effect, title in _HEADS.items():
        if of_effect := [each for each in found.changes if each.effect == effect]:
            head(title)
            for each in of_effect:
                _print_change(each)
    head("The same questions")
    say(
        "asked",
        f"{len(found.questions)} of both policies; of {len(found.changed_questions)} something differs",
    )
    say(
        "kept",
        f"of {len(found.kept)} answers that are kept for OLD, {found.still_given} are given by NEW as well",
    )
    for group in _alike(found.changed_questions):
        _print_questions(group)
    head("Currency")
    for label, policy in (("old", found.old), ("new", found.new)):
        currency = policy.currency
        say(label, format_currency(currency.epsilon_per, currency.delta, currency.unit_id))
    say("budgets", _budgets(found))
    show()
    say("found", ", ".join(sorted(found.effects)) or "nothing differs")
    say("fails", ", ".join(failed))


def _print_change(change: Change) -> None:
    values = f"{change.old} -> {change.new}"
    if not change.old or not change.new:
        values = f"without {change.old}" if change.old else f"with {change.new}"
    _print_lines(f"{change.key}: {values}", change.why)


def _print_lines(text: str, below: str) -> None:
    """Print what is found, and below it what it is about."""
    from rich.padding import Padding
    from rich.text import Text

    from gris_cli.terminal import printable, show

    show(Padding(Text(printable(text)), (0, 0, 0, 2), expand=False))
    if below:
        show(Padding(Text(printable(below), style="dim"), (0, 0, 0, 6), expand=False))


def _alike(changed: Sequence[AskedOfBoth]) -> Iterator[list[AskedOfBoth]]:
    """Yield all questions together of which the same is true."""
    from gris_data.policy.field_changes import Effect

    def kind(each: AskedOfBoth) -> tuple[list[str], str, str, str]:
        has_other_price = not each.effects.isdisjoint({Effect.DEARER, Effect.CHEAPER})
        return sorted(each.effects), each.audience, each.table, _answers(each) if has_other_price else ""

    for _, group in groupby(sorted(changed, key=kind), key=kind):
        yield list(group)


def _print_questions(alike: Sequence[AskedOfBoth]) -> None:
    from pinot_connector.formats import counted

    first = alike[0]
    effects = ", ".join(sorted(first.effects)).replace("_", " ")
    whose = f" of {first.audience}" if first.audience else ""
    _print_lines(
        f"{effects}: {counted(len(alike), 'question')}{whose} about {first.table}",
        f"{_answers(first)}{', as' if len(alike) > 1 else ''}: {first.sql}",
    )


def _answers(asked: AskedOfBoth) -> str:
    old, new = _answer(asked.old), _answer(asked.new)
    return old if old == new else f"{old} -> {new}"


def _answer(found: Priced | Refused) -> str:
    from gris_data.policy.diff import Refused
    from pinot_connector import formats

    if isinstance(found, Refused):
        return "refused"
    noise = f", noise {formats.number(float(f'{float(found.noise):.3g}'))}" if found.noise else ""
    return f"{found.cost.information:,} information and {formats.counted(found.cost.calls, 'call')}{noise}"


def _budgets(found: PolicyDiff) -> str:
    """Return what becomes of budgets."""
    if not found.keeps_currency:
        return (
            "another currency: the ledger refuses its prices (UNIT_MISMATCH) until each root account has begun it, by "
            f"gris budget new-currency --root ROOT --unit {found.new.currency.unit_id}. Nothing that was spent or is "
            "left is carried over, so state limits for what a unit is worth now. dp_service takes it when it is "
            "restarted"
        )
    if found.old.currency != found.new.currency:
        return "the same currency: what was spent and is left goes on; dp_service takes the header when it is restarted"
    return "the same currency: what was spent and is left goes on"


def _json(found: PolicyDiff) -> dict[str, Any]:
    return {
        "effects": sorted(found.effects),
        "changes": [
            {"key": each.key, "effect": each.effect, "old": each.old, "new": each.new, "why": each.why}
            for each in found.changes
        ],
        "questions": {
            "asked": len(found.questions),
            "changed": [
                {
                    "audience": each.audience,
                    "table": each.table,
                    "sql": each.sql,
                    "effects": sorted(each.effects),
                    "old": _answer_json(each.old),
                    "new": _answer_json(each.new),
                }
                for each in found.changed_questions
            ],
        },
        "currency": {
            "old": found.old.currency.unit_id,
            "new": found.new.currency.unit_id,
            "changes": not found.keeps_currency,
        },
    }


def _answer_json(found: Priced | Refused) -> dict[str, Any]:
    from gris_data.policy.diff import Refused

    if isinstance(found, Refused):
        return {"refused": found.reason}
    return {"information": found.cost.information, "calls": found.cost.calls, "noise": float(found.noise)}
